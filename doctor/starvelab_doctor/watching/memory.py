"""Memory of a job's workers and of its own process: what they start with, what grows, and what is a copy.

A forked process that uses an object copies the page around it: it has more for itself, and filled no more.
What goes on growing by as much for each batch is a leak, or a cache or buffer that is not full yet.
"""

from __future__ import annotations

import math
import os
import time

import numpy as np

from starvelab.host import free_shared_memory, has_processes
from starvelab.units import data_size

from ..contents import BatchContents
from ..finding.memory import Growth, MemoryUse
from ..host import free_memory, memory_lines
from ..torch_internals import is_collated, length_of, persists, prefetch_of, worker_numbers

MAX_LOOKS = 512  # at the same processes; then every second one is forgotten
BLOCKS, MIN_LOOKS = 6, 2  # of the batches, of each of which the least memory counts; looks in each
STUDENT = 2.776  # of the t distribution, for 95 % of what five differences say
MIN_SECONDS = 6.0  # at first much is loaded
MIN_GROWTH = 4e6  # bytes, of all processes together: allocators take as much now and then
STEADY = 2 / 3  # of the growth at first, that what does not end has at last
# Times as long as the last look took, until the next close one, and until the next one at all [s].
PAUSE, GLANCE = 100, 0.1
# Batches of each worker after whose hand-over PyTorch tidies up: until then one that was not made in shared
# memory may leave as much as it is in its own. Of twice as many, half are without that.
UNTIDY = 2 * 128


class Process:
    """A process whose memory is looked at, where Linux tells."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.own: int | None = None  # bytes that no other process has, but for files
        self.part = 0.0  # of the shared memory that it sees, what no other process sees

    def look(self) -> None:
        """Look at what it alone has, which takes a millisecond for each 50 MB."""
        sizes = memory_lines(self.number, "smaps_rollup")
        seen = memory_lines(self.number, "status").get("RssShmem", 0)
        if "Pss_Shmem" in sizes:
            self.own = sizes["Private_Dirty"] + sizes["Swap"]
            # What is shared with one other process counts half there, and what nobody shares as a whole.
            self.part = max(0.0, 2 * sizes["Pss_Shmem"] / seen - 1) if seen else 0.0

    def filled(self) -> int | None:
        """Return the bytes that it filled, also before it was forked; None where nobody tells."""
        sizes = memory_lines(self.number, "status")
        if "RssAnon" not in sizes or self.own is None:
            return None
        return sizes["RssAnon"] + sizes["VmSwap"] + round(self.part * sizes["RssShmem"])


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


class MemoryMeter:
    """Looks at the workers and at the process of a training loop, in a hundredth of the time."""

    def __init__(self) -> None:
        self.loop, self.workers, self.longest = Looks((os.getpid(),)), Looks(()), Looks(())
        self.numbers: tuple[int, ...] = ()  # of the workers
        self.ahead, self.collated = 0, True  # batches of a full queue, and whether PyTorch made them
        self.free: tuple[int | None, int | None] = (None, None)  # bytes, and of these of shared memory
        self.next, self.glance = 0.0, math.inf  # moments of time.perf_counter

    def poll(self, source: object, batches: int) -> None:
        """Look at them after so many batches, the last of which this iterator gave."""
        if not has_processes():
            return
        begun, numbers = time.perf_counter(), worker_numbers(source)
        if numbers and numbers != self.numbers:
            self.numbers = numbers
            self.longest = self._longest
            length = None if persists(source) else length_of(source)
            self.workers = Looks(numbers, None if length is None else batches + length)
            self.ahead, self.collated = (prefetch_of(source) or 0) * len(numbers), is_collated(source)
        closely = begun >= self.next
        for looks in (self.workers, self.loop):
            looks.add(batches, closely=closely)
        if closely:
            self.free = free_memory(), free_shared_memory()
            self.next = begun + PAUSE * (time.perf_counter() - begun)
        self.glance = time.perf_counter() + GLANCE

    @property
    def _longest(self) -> Looks:
        return max(self.longest, self.workers, key=lambda looks: looks.length)

    def use(self, contents: BatchContents | None = None) -> MemoryUse | None:
        """Return what was found, of batches that hold so much; None where the system tells nothing."""
        if not self.loop.rows:
            return None
        size = contents.size.m_as("B") if contents is not None and contents.size is not None else 0.0
        looks = self._longest
        rows = np.array([row[1:] for row in looks.rows] or [(0, 0, 0)], dtype=float)
        count = max(len(looks.processes), 1)
        untidy = not self.collated and rows[-1, 0] - rows[0, 0] < UNTIDY * count
        own, shared = rows[:, 1] / count, (rows[:, 2] - rows[:, 1]) / count
        return MemoryUse(
            len(looks.processes),
            data_size(own.max()),
            data_size(max(0.0, shared[0] - shared[-1])),
            data_size(max(0.0, shared[-1])),
            looks.growth(int(rows[0, 0]) + self.ahead, self.free[0], explained=size * untidy),
            self.loop.growth(0, self.free[0]),
            *self.free,
        )
