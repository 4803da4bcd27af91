"""A live measurement that does not find what was planted is repeated: the machine may have been held up."""

import time
from collections.abc import Callable
from typing import TypeVar

# On a machine whose cores are lent out a thread may wake up late for many seconds on end.
PATIENCE = 40.0  # seconds
Result = TypeVar("Result")


def patiently(
    measure: Callable[[], Result], is_right: Callable[[Result], bool], seconds: float = PATIENCE
) -> Result:
    """What `measure` finds: the first that is right, or else the last within so many seconds."""
    until = time.monotonic() + seconds
    while not is_right(found := measure()) and time.monotonic() < until:
        time.sleep(1)
    return found
