"""An error in the work for one student becomes a message about that student, and the class goes on.

Every step that is done for each student stands in `with one_student(...)`. An error that concerns everybody,
such as a full disk, still ends the command, and so does an interruption by a person.
"""

import errno
import signal
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager

from ..errors import GraderError
from ..sandbox import clock

READ_TIMEOUT = 60.0  # seconds; an honest submission is read in less than one
# Errors of the operating system that the next student would meet as well.
FOR_EVERYBODY = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}


class CannotWriteError(GraderError, OSError):
    """Nothing can be written for anybody: the gradebook is locked or gone, or the disk is full."""


class _TimeIsUp(BaseException):
    """Not an Exception: the code that reads archives takes every Exception for a damaged file."""


@contextmanager
def one_student(
    student: str, failed: MutableMapping[str, str], what: str, seconds: float | None = None
) -> Iterator[None]:
    """Do a step for one student. An error of any kind is written down, and the next student can follow.

    Examples
    --------
    >>> failed = {}
    >>> with one_student("ada", failed, "The page could not be made"):
    ...     1 / 0
    >>> failed
    {'ada': 'The page could not be made: ZeroDivisionError: division by zero'}
    """
    try:
        with time_limit(seconds):
            yield
    except CannotWriteError:
        raise
    except TimeoutError as error:
        failed[student] = f"{what}: {error}"
    # SystemExit as well: nbgrader ends Python at times. An interruption by a person goes through.
    except (Exception, SystemExit) as error:
        if isinstance(error, OSError) and error.errno in FOR_EVERYBODY:
            raise CannotWriteError(
                f"{what} ({student}): {error}. What was done before is kept. Make room, or "
                "get the right to write there, and start again."
            ) from error
        failed[student] = f"{what}: {reason(error)}"


def reason(error: BaseException) -> str:
    """The kind of an error and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Interrupt what takes longer, where the system can: in the main thread, and not on Windows."""
    can = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    try:
        with clock.time_limit(seconds if can else None, _TimeIsUp):
            yield
    except _TimeIsUp:
        raise TimeoutError(f"it took longer than {seconds:g} s.") from None
