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


def threads(process: int) -> list[Path]:
    """The folders of a process's threads; of one that has ended those that go on without its first thread."""
    with suppress(OSError):
        return list(Path(f"/proc/{process}/task").iterdir())
    return []


def own_time() -> float:
    """Seconds of a clock that stands still while this process waits for a core."""
    return time.monotonic() - waited()


def counted(passed: float, waiting: float, used: float) -> float:
    """Return the seconds that count for a sandbox.

    Of the seconds that passed on the wall, processes of the sandbox waited for a core for some; and cores
    worked for it for the used seconds, all cores together.

    Examples
    --------
    Asleep, kept from working by others, and at work on four cores:

    >>> counted(2.0, 0.0, 0.0), counted(2.0, 1.5, 0.5), counted(2.0, 0.0, 8.0)
    (2.0, 0.5, 8.0)
    """
    return max(passed - waiting, used, passed / MAX_STRETCH)


def fair_niceness(busy: int) -> int:
    """Return the niceness at which so many busy threads get together what one gets."""
    # Each step takes a fifth off a thread's share.
    return min(19, round(math.log(max(1, busy), 1.25)))


class SandboxClock:
    """Seconds that count for a sandbox with so many cores, by what each look at its processes finds."""

    def __init__(self, time: Callable[[], float] = time.monotonic, cores: int = 1) -> None:
        self.time, self.cores = time, cores
        self.looked = self.started = time()
        self.seconds = self.waiting = 0.0
        self.busy = 0  # threads that worked between the last two looks, or want to
        self._seen: dict[int, tuple[float, float]] = {}
        self._ran: dict[int, float] = {}

    def __call__(self) -> float:
        """Seconds so far; those since the last look are counted as on the wall."""
        return self.seconds + self.time() - self.looked

    def look(self, processes: Sequence[int]) -> None:
        """Count what has passed since the last look; the sandbox consists of these processes now."""
        now = self.time()
        times = {one: (_used(one), waited(one)) for one in processes}
        changes = [
            [
                max(0.0, seconds - before)
                for seconds, before in zip(new, self._seen.get(one, (0.0, 0.0)), strict=True)
            ]
            for one, new in times.items()
        ]
        passed = now - self.looked
        at_work = {thread: one for process in processes for thread, one in _at_work(process).items()}
        self.busy = sum(ready or ran > self._ran.get(thread, 0.0) for thread, (ran, ready) in at_work.items())
        self._ran = {thread: ran for thread, (ran, _) in at_work.items()}
        # Threads that are more than there are cores wait for one another, and not for other people's.
        for_itself = passed * max(0.0, 1.0 - self.cores / max(1, self.busy))
        waiting = min(passed, max((waiting for _, waiting in changes), default=0.0))
        waiting = max(0.0, waiting - for_itself)
        self.seconds += counted(passed, waiting, sum(used for used, _ in changes))
        self.waiting += waiting
        self.looked, self._seen = now, times

    @property
    def starved(self) -> bool:
        """True if the sandbox had to wait for a core so long that alone it might get further."""
        return self.waiting > STARVED * (self.time() - self.started)


def _used(process: int) -> float:
    """Seconds that cores worked for a process."""
    with suppress(psutil.Error):
        times = psutil.Process(process).cpu_times()
        return float(times.user + times.system)
    return 0.0


def _at_work(process: int) -> dict[int, tuple[float, bool]]:
    """For each thread of a process the seconds that it has worked, and whether it wants to go on now."""
    at_work = {}
    for folder in threads(process):
        with suppress(OSError, ValueError, IndexError):
            ran = int((folder / "schedstat").read_text().split()[0]) / 1e9
            # The state stands behind the name, which may hold anything.
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            at_work[int(folder.name)] = (ran, state == "R")
    return at_work


def slow_down(processes: Sequence[int], busy: int) -> None:
    """Leave the others their share of the cores, however many threads work here."""
    # Counted from what this process has, and so had the sandbox.
    niceness = min(19, os.getpriority(os.PRIO_PROCESS, 0) + fair_niceness(busy))
    # Linux keeps a niceness for each thread.
    for one in (int(each.name) for process in processes for each in threads(process)) if busy > 1 else ():
        with suppress(OSError):
            if os.getpriority(os.PRIO_PROCESS, one) < niceness:
                os.setpriority(os.PRIO_PROCESS, one, niceness)
