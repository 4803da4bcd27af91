"""Memory of a training job: what its workers have, copy and leak, and when that fills the machine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from starvelab.tables import count_of
from starvelab.units import Quantity, data_size, format_quantity

LARGE_COPY = 50e6  # bytes that each worker copied, before it is worth a line
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
    free: int | None = None  # bytes beside them; None where nobody tells
    shared_free: int | None = None

    def room(self, batch: float, ready: float) -> Room:
        """Return the room for more workers, whose batches have so many bytes; so many lie there already."""
        free, shared = (math.inf if size is None else size for size in (self.free, self.shared_free))
        # One that copies what it shares with the training process goes on until it has all of it.
        own = self.each + (self.shared if self.copied.m_as("B") >= LARGE_COPY else data_size(0))
        return Room(self.workers, own.m_as("B") if self.workers else batch, batch, ready, free, shared)

    @property
    def summary(self) -> str:
        """Say what is worth a line; empty if nothing is."""
        parts = []
        if self.growth is not None:
            who = f"{count_of(self.workers, 'worker')} ({_short(self.each)} per worker)"
            parts.append(self._says(self.growth, who))
        if self.copied.m_as("B") >= LARGE_COPY:
            parts.append(
                f"Each worker copied {_short(self.copied)} of the objects of the training process, and may "
                f"copy {_short(self.shared)} more. A list of many objects is copied, one array is not."
            )
        if self.loop_growth is not None:
            beside = "" if self.workers else ", which prepares the batches,"
            parts.append(self._says(self.loop_growth, f"The training process{beside}"))
        return " ".join(parts)

    def _says(self, growth: Growth, who: str) -> str:
        each = _short(data_size(growth.batch[1]))
        end = "they end with the pass before that fills the memory"
        if growth.full is not None:
            span = " to ".join(dict.fromkeys(map(duration, growth.full)))
            end = f"memory is full in {span} if that goes on"
        return (
            f"{who} gained {each} for each batch, which is neither the copy of a list nor the queue: {end}. "
            f"This is from {growth.looks} looks in {duration(growth.seconds)}; a cache or a buffer that is "
            "not full yet looks the same."
        )


ROOM = 0.7  # of what is free, for more workers and their batches


@dataclass(frozen=True)
class Growth:
    """Growth that goes on, of some processes together."""

    batch: tuple[float, float, float]  # bytes for each: the 95 % interval around what is likely
    looks: int
    seconds: float  # in which the looks were taken
    # Seconds until all memory is full, at worst and at best; None where they end before, or nobody tells.
    full: tuple[float, float] | None


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

    def reason(self, ahead: int) -> str:
        """Say why no more workers find room."""
        by_memory, by_shared = self._most(ahead)
        sizes = self.each, self.batch, min(self.free, self.shared)
        each, batch, free = (format_quantity(data_size(size), 2) for size in sizes)
        of = "/dev/shm (docker run --shm-size)" if by_shared <= by_memory else "memory"
        return (
            f"more do not fit: each takes {each}, and {count_of(ahead, 'batch')} of {batch} ahead in "
            f"shared memory, and {free} of {of} are free."
        )
