"""Time as it counts for a student: that in which others had the cores is not the student's.

Linux keeps for each process how long it was ready to run and waited for a core. Where it does not say, time
is what a clock on the wall shows.
"""

import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

MAX_STRETCH = 10.0  # seconds on the wall for one that counts
MAX_UNSEEN = 2.0  # seconds since the last look, which comes late on a busy machine, that count as on the wall
STARVED = 0.05  # of its time, that a submission waited for a core
ALARM = 0.01  # seconds that an interruption may be early
Read = Callable[[int], tuple[tuple[float, float], dict[int, tuple[float, bool]]]]
UNKNOWN = (OSError, ValueError, IndexError)  # where the kernel does not say, or the process has ended


class CellTimeoutError(Exception):
    """A cell took longer than it may."""


def waited(process: int | str = "self") -> float:
    """Seconds that a process was ready to run, and waited for a core."""
    with suppress(*UNKNOWN):
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


@contextmanager
def time_limit(seconds: float | None, error: type[BaseException] = CellTimeoutError) -> Iterator[None]:
    """Interrupt what takes longer. Code that catches this is ended from outside, by its deadline."""
    if seconds is None:
        yield
        return
    begun, start = time.monotonic(), own_time()

    def stop(*_: object) -> None:
        # As `counted` does outside: else a very busy machine would end the process before the cell.
        passed = time.monotonic() - begun
        left = seconds - max(own_time() - start, passed / MAX_STRETCH)
        if left > ALARM:  # other processes used the cores meanwhile
            signal.setitimer(signal.ITIMER_REAL, left)
            return
        raise error(f"This took longer than {seconds:g} s.")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


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


def used(process: int) -> float:
    """Seconds that cores worked for a process."""
    with suppress(*UNKNOWN):
        # The times in user mode and in the kernel, counted from behind the name, which may hold anything.
        times = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
    return 0.0


def read(process: int) -> tuple[tuple[float, float], dict[int, tuple[float, bool]]]:
    """Return the seconds that a process worked and waited; by thread those at work, and if it goes on now."""
    at_work = {}
    for folder in threads(process):
        with suppress(*UNKNOWN):
            ran = int((folder / "schedstat").read_text().split()[0]) / 1e9
            # The state stands behind the name, which may hold anything.
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            at_work[int(folder.name)] = (ran, state == "R")
    return (used(process), waited(process)), at_work


class SandboxClock:
    """Seconds that count for a sandbox with so many cores, by what each look at its processes finds."""

    def __init__(self, time: Callable[[], float] = time.monotonic, cores: int = 1, read: Read = read) -> None:
        self.time, self.cores, self.read = time, cores, read
        self.looked = self.started = time()
        self.seconds = self.waiting = self.work = 0.0
        self.busy = 0  # threads that worked between the last two looks, or want to
        self._seen: dict[int, tuple[float, float]] = {}  # of each process: seconds at work, and waited
        self._seen_before: dict[int, tuple[float, float]] = {}  # one look earlier
        self._ran: dict[int, float] = {}

    def __call__(self) -> float:
        """Seconds so far; the first of those since the last look are counted as on the wall."""
        unseen = self.time() - self.looked
        return self.seconds + min(unseen, MAX_UNSEEN + unseen / MAX_STRETCH)

    def look(self, processes: Sequence[int]) -> None:
        """Count what has passed since the last look; the sandbox consists of these processes now."""
        now = self.time()
        passed, self.looked = now - self.looked, now
        readings = {one: self.read(one) for one in processes}
        seen = {one: times for one, (times, _) in readings.items()}
        # A look may miss a process: what it did meanwhile is not counted at once in the next one.
        before = {one: at for one, at in seen.items() if one in self._seen_before} | self._seen
        self._seen_before, self._seen = self._seen, seen
        work, waits = 0.0, [0.0]
        for one, (worked, waited_for) in self._seen.items():
            work += max(0.0, worked - before.get(one, (0.0, 0.0))[0])
            waits.append(waited_for - before.get(one, (0.0, 0.0))[1])
        at_work = {thread: one for _, threads in readings.values() for thread, one in threads.items()}
        self.busy = sum(ready or ran > self._ran.get(thread, 0.0) for thread, (ran, ready) in at_work.items())
        self._ran = {thread: ran for thread, (ran, _) in at_work.items()}
        # Threads that are more than there are cores wait for one another, and not for other people's.
        for_itself = passed * max(0.0, 1.0 - self.cores / max(1, self.busy))
        waiting = max(0.0, min(passed, max(waits)) - for_itself)
        self.seconds += counted(passed, waiting, work)
        self.work += work
        self.waiting += waiting

    @property
    def starved(self) -> bool:
        """True if the sandbox had to wait for a core so long that alone it might get further."""
        return self.waiting > STARVED * (self.time() - self.started)


def fair_niceness(busy: int) -> int:
    """Return the niceness at which so many busy threads get together what one gets."""
    # Each step takes a fifth off a thread's share.
    return min(19, round(math.log(max(1, busy), 1.25)))


def slow_down(processes: Sequence[int], busy: int) -> None:
    """Leave the others their share of the cores, however many threads work here."""
    # Counted from what this process has, and so had the sandbox.
    niceness = min(19, os.getpriority(os.PRIO_PROCESS, 0) + fair_niceness(busy))
    # Linux keeps a niceness for each thread.
    for one in (int(each.name) for process in processes for each in threads(process)) if busy > 1 else ():
        with suppress(OSError):
            if os.getpriority(os.PRIO_PROCESS, one) < niceness:
                os.setpriority(os.PRIO_PROCESS, one, niceness)
