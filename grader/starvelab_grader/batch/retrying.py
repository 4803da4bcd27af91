"""Writing into a gradebook that may be locked, or away for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.exc import InterfaceError, OperationalError

from .one_student import CannotWriteError

T = TypeVar("T")
WRITE_TIMEOUT = 60.0  # seconds
RETRY_INTERVAL = 0.2  # seconds


def retry(write: Callable[[], T], timeout: float = WRITE_TIMEOUT) -> T:
    """Try to write until it succeeds, or until the time is over.

    Parameters
    ----------
    write : callable
        Writes everything or nothing.
    timeout : float
        How long to try [s].

    Raises
    ------
    CannotWriteError
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            return write()
        except (OperationalError, InterfaceError) as error:
            if time.monotonic() > deadline:
                reason = str(getattr(error, "orig", error)).splitlines()[0]
                raise CannotWriteError(
                    f"The gradebook cannot be written: {reason}. Nothing is lost: what was graded is kept "
                    "beside it. Close what else uses the gradebook, and start again."
                ) from error
            time.sleep(RETRY_INTERVAL)
