"""Looks at the memory of a training job's workers and of its own process."""

from __future__ import annotations

import math
import os
import time

import numpy as np

from starvelab.host import free_shared_memory, has_processes
from starvelab.units import data_size

from ..contents import BatchContents
from ..finding.memory import MemoryUse
from ..host import free_memory
from ..torch_internals import is_collated, length_of, persists, prefetch_of, worker_numbers
from .growth import Looks

# Times as long as the last look took, until the next close one, and until the next one at all [s].
PAUSE, GLANCE = 100, 0.1
# Batches of each worker after whose hand-over PyTorch tidies up: until then one that was not made in shared
# memory may leave as much as it is in its own. Of twice as many, half are without that.
UNTIDY = 2 * 128


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

    def use(self, batch_size: int | None, contents: BatchContents | None = None) -> MemoryUse | None:
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
            batch_size,
            *self.free,
        )
