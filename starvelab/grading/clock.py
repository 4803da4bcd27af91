"""Time as it counts for a student: that in which others had the cores is not the student's.

Linux keeps for each process how long it was ready to run and waited for a core. Where it does not say, time
is what a clock on the wall shows.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

MAX_STRETCH = 10.0  # seconds on the wall for one that counts
STARVED = 0.05  # of its time, that a submission waited for a core


def waited(process: int | str = "self") -> float:
    """Seconds that a process was ready to run, and waited for a core."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9
    return 0.0


def own_time() -> float:
    """Seconds of a clock that stands still while this process waits for a core."""
    return time.monotonic() - waited()


def counted(passed: float, waiting: float, used: float) -> float:
    """Seconds that count for a sandbox.

    Parameters
    ----------
    passed : float
        Seconds on the wall.
    waiting : float
        Those of them for which a process of the sandbox waited for a core.
    used : float
        Seconds that cores worked for the sandbox, all cores together.

    Examples
    --------
    Asleep, kept from working by others, and at work on four cores:

    >>> counted(2.0, 0.0, 0.0), counted(2.0, 1.5, 0.5), counted(2.0, 0.0, 8.0)
    (2.0, 0.5, 8.0)
    """
    return max(passed - waiting, used, passed / MAX_STRETCH)


def fair_niceness(busy: int) -> int:
    """The niceness at which so many busy processes get together what one gets.

    Each step takes a fifth off a process's share.
    """
    return min(19, round(math.log(max(1, busy), 1.25)))


class SandboxClock:
    """Seconds that count for the processes of a sandbox, by what each look at them finds.

    Parameters
    ----------
    time : callable
        The clock on the wall.
    """

    def __init__(self, time: Callable[[], float] = time.monotonic) -> None:
        self.time = time
        self.looked = self.begun = time()
        self.seconds = self.waiting = 0.0
        self.busy = 0  # processes that worked between the last two looks
        self._seen: dict[int, tuple[float, float]] = {}

    def __call__(self) -> float:
        """Seconds so far; those since the last look are counted as on the wall."""
        return self.seconds + self.time() - self.looked

    def look(self, processes: Sequence[int]) -> None:
        """Count what has passed since the last look.

        Parameters
        ----------
        processes : sequence of int
            All that the sandbox consists of now.
        """
        now = self.time()
        found = {one: (_used(one), waited(one)) for one in processes}
        changes = []
        for one, (used, waiting) in found.items():
            used_before, waiting_before = self._seen.get(one, (0.0, 0.0))
            changes.append((max(0.0, used - used_before), max(0.0, waiting - waiting_before)))
        passed = now - self.looked
        waiting = min(passed, max((one for _, one in changes), default=0.0))
        self.seconds += counted(passed, waiting, sum(one for one, _ in changes))
        self.waiting += waiting
        self.busy = sum(used > 0 for used, _ in changes)
        self.looked, self._seen = now, found

    @property
    def starved(self) -> bool:
        """Whether the sandbox had to wait for a core so long that alone it might get further."""
        return self.waiting > STARVED * (self.time() - self.begun)


def _used(process: int) -> float:
    """Seconds that cores worked for a process."""
    with suppress(psutil.Error):
        times = psutil.Process(process).cpu_times()
        return times.user + times.system
    return 0.0


def slow_down(processes: Sequence[int], busy: int) -> None:
    """Leave the others their share of the cores, however many processes work here."""
    # Counted from what this process has, and so had the sandbox.
    niceness = min(19, os.getpriority(os.PRIO_PROCESS, 0) + fair_niceness(busy))
    for one in processes if busy > 1 else ():
        with suppress(OSError):
            if os.getpriority(os.PRIO_PROCESS, one) < niceness:
                os.setpriority(os.PRIO_PROCESS, one, niceness)
