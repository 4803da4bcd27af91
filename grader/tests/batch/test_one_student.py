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


KEPT = r"It failed \(ada\): .*What was done before is kept"


@pytest.mark.parametrize(("error", "kind", "text"), [
    (KeyboardInterrupt(), KeyboardInterrupt, None),
    (OSError(errno.ENOSPC, "No space"), CannotWriteError, KEPT),
    (OSError(errno.EROFS, "Read-only"), CannotWriteError, KEPT),
])  # fmt: skip
def test_an_interruption_and_a_full_or_read_only_disk_are_not_about_one_student(error, kind, text):
    failed = {}
    with pytest.raises(kind, match=text), one_student("ada", failed, "It failed"):
        raise error
    assert failed == {}


def test_what_takes_too_long_is_ended_even_by_code_that_takes_any_exception_for_damage():
    failed = {}
    with one_student("ada", failed, "It failed", seconds=0.05):
        while True:
            try:
                time.sleep(10)
            except Exception:
                continue
    assert failed == {"ada": "It failed: it took longer than 0.05 s."}
