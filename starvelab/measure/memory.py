"""Memory of processes: what they start with, what grows with each batch, and what is a copy or a queue.

A forked process that uses an object copies the page around it: it has more for itself, and filled no more.
What goes on growing by as much for each batch is a leak, or a cache or buffer that is not full yet.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import reduction
from typing import Any

import numpy as np

from ..host import memory_lines
from ..tables import count_of
from ..units import Q_, Quantity, data_size, format_quantity

MAX_LOOKS = 512  # at the same processes; then every second one is forgotten
BLOCKS, MIN_LOOKS = 6, 2  # of the batches, of each of which the least memory counts; looks in each
STUDENT = 2.776  # of the t distribution, for 95 % of what five differences say
MIN_SECONDS = 6.0  # at first much is loaded
MIN_GROWTH = 4e6  # bytes, of all processes together: allocators take as much now and then
STEADY = 2 / 3  # of the growth at first, that what does not end has at last
LONG = 30 * 86400.0  # seconds
ROOM = 0.7  # of what is free, for more workers and their batches


@dataclass(frozen=True)
class Growth:
    """Growth that goes on, of some processes together."""

    batch: tuple[float, float, float]  # bytes for each: the 95 % interval around what is likely
    looks: int
    seconds: float  # in which the looks were taken
    # Seconds until all memory is full, at worst and at best; None where they end before, or nobody tells.
    full: tuple[float, float] | None

    @property
    def end(self) -> str:
        """Say what it comes to, roughly."""
        if self.full is None:
            return "they end with the pass before that fills the memory"
        if self.full[0] > LONG:
            return "that takes months to fill the memory"
        worst, best = map(duration, self.full)
        span = worst if worst == best else f"{worst} to {best}"
        return f"memory is full in {span} if that goes on"


def duration(seconds: float) -> str:
    """Write a time roughly: 41 minutes."""
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} s"


@dataclass(frozen=True)
class Room:
    """Memory for more workers of a loader than it has, and for the batches ahead of them [B]."""

    workers: int  # that it has
    each: float = 0.0  # what one of them has for itself; without any, at least the items of a batch
    batch: float = 0.0  # in shared memory
    ready: float = 0.0  # batches that lie there already
    free: float = math.inf  # when it had so many workers
    shared: float = math.inf  # of that, for shared memory

    def _most(self, ahead: int) -> tuple[float, float]:
        """Return the most workers with so many batches ahead of each: by memory, and by shared memory."""
        queue = max(ahead * self.batch, 1.0)
        lying = self.ready * self.batch
        by_memory = (ROOM * self.free + self.workers * self.each + lying) / (self.each + queue)
        return by_memory, (ROOM * self.shared + lying) / queue

    def workers_for(self, ahead: int) -> float:
        """Return the most workers that find room with so many batches ahead of each."""
        most = min(self._most(ahead))
        return most if most == math.inf else int(most)

    def ahead_for(self, wanted: int, now: int) -> int:
        """Return how many batches ahead of each worker find room, of those wanted: as now at least."""
        return next((each for each in range(wanted, now, -1) if self.workers_for(each) >= self.workers), now)

    def reason(self, ahead: int) -> str:
        """Say why no more workers find room."""
        by_memory, by_shared = self._most(ahead)
        each, batch, free = (
            format_quantity(data_size(size), 2)
            for size in (self.each, self.batch, min(self.free, self.shared))
        )
        queue = f"{count_of(ahead, 'batch')} of {batch} ahead"
        if by_shared <= by_memory:
            return (
                f"more find no room, since each needs {queue} in /dev/shm, of which {free} are free: a "
                "container gets more by --shm-size."
            )
        least = "" if self.workers else "at least "
        return (
            f"more find no room, since each takes {least}{each} and {queue}, and {free} of memory are free."
        )


class Pickled:
    """What is pickled for processes that start: no fork needs it, and each other process needs all of it."""

    def __init__(self) -> None:
        self.seconds, self.bytes = 0.0, 0  # in all, and for the process that got most

    def add(self, more: Pickled) -> None:
        """Count what another one counted."""
        self.seconds, self.bytes = self.seconds + more.seconds, max(self.bytes, more.bytes)

    @property
    def found(self) -> tuple[Quantity, Quantity] | None:
        """The two with their units; None where nothing was pickled."""
        return (Q_(1e3 * self.seconds, "ms"), data_size(self.bytes)) if self.seconds else None

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what is pickled while this lasts."""
        original = reduction.dump

        def dump(obj: object, file: Any, protocol: int | None = None) -> None:  # Any: a file or a pipe
            begun, before = time.perf_counter(), file.tell() if file.seekable() else 0
            original(obj, file, protocol)
            self.seconds += time.perf_counter() - begun
            self.bytes = max(self.bytes, file.tell() - before if file.seekable() else 0)

        reduction.dump = dump
        try:
            yield
        finally:
            reduction.dump = original


class Process:
    """A process whose memory is looked at."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.own: int | None = None  # bytes that no other process has, but for files
        self.part = 0.0  # of the shared memory that it sees, what no other process sees

    def look(self) -> None:
        """Look at what it alone has, which takes a millisecond for each 50 MB."""
        if sys.platform != "linux":
            import psutil  # loaded here: a browser's Python lacks it

            with suppress(psutil.Error):  # it ended
                self.own = int(psutil.Process(self.number).memory_full_info().uss)
            return
        known = memory_lines(self.number, "smaps_rollup")
        seen = memory_lines(self.number, "status").get("RssShmem", 0)
        if "Pss_Shmem" in known:
            self.own = known["Private_Dirty"] + known["Swap"]
            # What is shared with one other process counts half there, and what nobody shares as a whole.
            self.part = max(0.0, 2 * known["Pss_Shmem"] / seen - 1) if seen else 0.0

    def filled(self) -> int | None:
        """Return the bytes that it filled, also before it was forked; None where the system does not tell."""
        if sys.platform != "linux":  # nothing is forked there
            return self.own
        known = memory_lines(self.number, "status")
        if "RssAnon" not in known or self.own is None:
            return None
        return known["RssAnon"] + known["VmSwap"] + round(self.part * known["RssShmem"])


class Looks:
    """Looks at the memory of the same processes, which end after a number of batches, if that is known."""

    def __init__(self, processes: tuple[int, ...], end: int | None = None) -> None:
        self.processes, self.end = [Process(number) for number in processes], end
        self.rows: list[tuple[float, int, int, int]] = []  # seconds, batches, for themselves, filled [bytes]
        self.every, self.number = 1, -1

    def add(self, batches: int, *, closely: bool) -> None:
        """Look at them after so many batches; closely, it is seen as well what they have for themselves."""
        self.number += 1
        if closely:
            for process in self.processes:
                process.look()
        if self.number % self.every:
            return
        own = [process.own for process in self.processes if process.own is not None]
        filled = [size for process in self.processes if (size := process.filled()) is not None]
        if not own or not len(own) == len(filled) == len(self.processes):  # they end, or nobody tells
            return
        self.rows.append((time.monotonic(), batches, sum(own), sum(filled)))
        if len(self.rows) == MAX_LOOKS:
            del self.rows[1::2]
            self.every *= 2

    @property
    def length(self) -> int:
        """How long they were looked at, in looks of the shortest distance."""
        return len(self.rows) * self.every

    def growth(self, since: int, free: int | None, *, explained: float = 0.0) -> Growth | None:
        """Return how they grow after so many batches, while so much is free [B]; None where nothing tells.

        Nothing does where each batch adds no more than is `explained` [B].
        """
        rows = np.array([row for row in self.rows if row[1] >= since], dtype=float).reshape(-1, 4)
        for part in (rows, rows[len(rows) // 2 :]):  # what filled at first may hide what grows later
            seconds, batches = np.ptp(part[:, :2], axis=0) if len(part) else (0.0, 0.0)
            batch = steady_growth(part[:, 1], part[:, 3]) if seconds >= MIN_SECONDS else None
            if batch is None or batch[0] <= explained:
                continue
            ends = self.end is not None and batch[2] * (self.end - part[-1, 1]) < (free or 0)
            full = None
            if free is not None and not ends:
                full = free * seconds / batches / batch[2], free * seconds / batches / batch[0]
            return Growth(batch, len(part), float(seconds), full)
        return None


def steady_growth(batches: np.ndarray, filled: np.ndarray) -> tuple[float, float, float] | None:
    """Return the bytes that each batch adds, by the least of each block; None where nothing tells."""
    edges = np.linspace(batches[0], batches[-1], BLOCKS + 1)
    blocks = np.clip(np.searchsorted(edges, batches, "right") - 1, 0, BLOCKS - 1)
    if np.bincount(blocks, minlength=BLOCKS).min() < MIN_LOOKS:
        return None
    least = [min(np.flatnonzero(blocks == number), key=filled.__getitem__) for number in range(BLOCKS)]
    steps, grown = np.diff(filled[least]) / np.diff(batches[least]), filled[least[-1]] - filled[least[0]]
    if steps.min() <= 0 or grown < MIN_GROWTH or steps[-2:].mean() < STEADY * steps[:2].mean():
        return None
    likely, reach = float(steps.mean()), STUDENT * float(steps.std(ddof=1)) / len(steps) ** 0.5
    return (likely - reach, likely, likely + reach) if likely > reach else None
