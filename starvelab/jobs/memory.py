"""Memory of a training job: what its workers have, copy and leak, and when that fills the machine."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..host import free_memory, free_shared_memory, has_processes
from ..measure.memory import Growth, Looks, Room, duration
from ..tables import count_of
from ..units import Quantity, data_size, format_quantity
from .torch_internals import is_collated, length_of, persists, prefetch_of, worker_numbers

# Times as long as the last look took, until the next close one, and until the next one at all [s].
PAUSE, GLANCE = 100, 0.1
# Batches of each worker after whose hand-over PyTorch tidies up: until then one that was not made in shared
# memory may leave as much as it is in its own. Of twice as many, half are without that.
UNTIDY = 2 * 128
LARGE_COPY = 50e6  # bytes that each worker copied, before it is worth a line
LARGE_PART = 0.25  # of the memory that is free, that all workers have
_short = partial(format_quantity, digits=2)


@dataclass(frozen=True)
class MemoryUse:
    """Memory of the processes of a job."""

    workers: int
    each: Quantity  # the most that a worker had for itself, on average of all
    copied: Quantity  # what each copied of what it shares with the training process
    shared: Quantity  # and what it may still copy
    growth: Growth | None = None  # of all workers; None where there is none, or too few looks tell
    loop_growth: Growth | None = None  # of the training process
    batch_size: int | None = None
    large: bool = False  # the workers have much of the memory that is free
    free: int | None = None  # bytes beside them; None where nobody tells
    shared_free: int | None = None

    def room(self, batch: float, ready: float) -> Room:
        """Return the room for more workers, whose batches have so many bytes; so many lie there already."""
        free, shared = (math.inf if size is None else size for size in (self.free, self.shared_free))
        # One that copies what it shares with the training process goes on until it has all of it.
        own = self.each + (self.shared if self.copied.m_as("B") >= LARGE_COPY else data_size(0))
        return Room(self.workers, own.m_as("B") if self.workers else batch, batch, ready, free, shared)

    def __str__(self) -> str:
        return f"{self._each}, {count_of(self.workers, 'worker')}"

    @property
    def _each(self) -> str:
        return _short(self.each) if self.workers == 1 else f"{_short(self.each)} each"

    @property
    def summary(self) -> str:
        """Say what is worth a line; empty if nothing is."""
        parts = []
        who, has, one = f"The {self.workers} workers", "have", "Each worker"
        if self.workers == 1:
            who, has, one = "The only worker", "has", "The only worker"
        if self.growth is not None:
            parts.append(self._says(self.growth, f"{who}, with {self._each},"))
        elif self.large:
            parts.append(f"{who} {has} {self._each}.")
        if self.copied.m_as("B") >= LARGE_COPY:
            parts.append(
                f"{one} copied {_short(self.copied)} of the objects of the training process, and may "
                f"copy {_short(self.shared)} more: one array is not copied, a list of many objects is."
            )
        if self.loop_growth is not None:
            beside = "" if self.workers else ", which prepares the batches,"
            parts.append(self._says(self.loop_growth, f"The training process{beside}"))
        return " ".join(parts)

    def _says(self, growth: Growth, who: str) -> str:
        each = _short(data_size(growth.batch[1] / (self.batch_size or 1)))
        return (
            f"{who} gained {each} for each {'item' if self.batch_size else 'batch'}, which is neither the "
            f"copy of a list nor the queue: {growth.end}. That rests on {growth.looks} looks in "
            f"{duration(growth.seconds)}; a cache or a buffer that is not full yet looks the same."
        )


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
        new = bool(numbers) and numbers != self.numbers
        if new:
            self.numbers = numbers
            self.longest = self._longest
            length = None if persists(source) else length_of(source)
            self.workers = Looks(numbers, None if length is None else batches + length)
            self.ahead, self.collated = (prefetch_of(source) or 0) * len(numbers), is_collated(source)
        closely = new or begun >= self.next
        for looks in (self.workers, self.loop):
            looks.add(batches, closely=closely)
        if closely:
            self.free = free_memory(), free_shared_memory()
            self.next = begun + PAUSE * (time.perf_counter() - begun)
        self.glance = time.perf_counter() + GLANCE

    @property
    def _longest(self) -> Looks:
        return max(self.longest, self.workers, key=lambda looks: looks.length)

    def use(self, batch_size: int | None, size: float = 0.0) -> MemoryUse | None:
        """Return what was found, of batches of so many bytes; None where the system tells nothing."""
        if not self.loop.rows:
            return None
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
            batch_size,
            self.free[0] is not None and own.max() * count > LARGE_PART * self.free[0],
            *self.free,
        )
