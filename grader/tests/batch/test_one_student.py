"""One student's error is a line about that student, and what concerns everybody ends the command."""

import errno
import time

import pytest

from starvelab_grader.batch.one_student import CannotWriteError, one_student


@pytest.mark.parametrize(("error", "line"), [
    (OverflowError("too large\nfor a float"), "It failed: OverflowError: too large"),
    (MemoryError(), "It failed: MemoryError"),
    (SystemExit(3), "It failed: SystemExit: 3"),
    (OSError(errno.ENAMETOOLONG, "Too long"), "It failed: OSError: [Errno 36] Too long"),
])  # fmt: skip
def test_an_error_of_any_kind_becomes_a_line(error, line):
    failed = {}
    with one_student("ada", failed, "It failed"):
        raise error
    assert failed == {"ada": line}


def test_a_person_can_still_interrupt():
    failed = {}
    with pytest.raises(KeyboardInterrupt), one_student("ada", failed, "It failed"):
        raise KeyboardInterrupt
    assert failed == {}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_full_disk_or_a_read_only_one_is_not_about_one_student(number):
    with (
        pytest.raises(CannotWriteError, match=r"It failed \(ada\): .*What was done before is kept"),
        one_student("ada", {}, "It failed"),
    ):
        raise OSError(number, "No space left on device")


def test_what_takes_too_long_is_ended_even_by_code_that_takes_any_exception_for_damage():
    failed = {}
    with one_student("ada", failed, "It failed", seconds=0.05):
        while True:
            try:
                time.sleep(10)
            except Exception:
                continue
    assert failed == {"ada": "It failed: it took longer than 0.05 s."}
