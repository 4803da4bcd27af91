"""The timeline that every trace is brought to: who waited when on the host, and what the GPU did when.

All times are microseconds since one moment of the trace. Spans are arrays of two columns, start and end.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from ..spans import union
from ..torch_internals import SINGLE

# Kinds of work of a GPU; PAGEABLE is a copy from or to memory that is not pinned.
KERNEL, COPY, PAGEABLE = range(3)


@dataclass
class HostThread:
    """One thread of the training program."""

    waits: list[tuple[float, float]] = field(default_factory=list)  # each `next` of a DataLoader
    # Number, start and end of each mark.
    steps: list[tuple[float, float, float]] = field(default_factory=list)
    operations: array[float] = field(default_factory=lambda: array("d"))  # when each of them starts
    alone: int = 0  # waits for an iterator without workers

    def add_wait(self, name: str, start: float, end: float) -> None:
        """Add a wait, whose name holds that of the iterator."""
        self.waits.append((start, end))
        self.alone += SINGLE in name

    def merged_waits(self) -> np.ndarray:
        """Return the waits in order; one within another, of a loader that reads a loader, is part of it."""
        both = np.array(self.waits).reshape(-1, 2)
        return union(both[:, 0], both[:, 1])


@dataclass
class GpuWork:
    """The work of one GPU, piece by piece."""

    starts: array[float] = field(default_factory=lambda: array("d"))
    ends: array[float] = field(default_factory=lambda: array("d"))
    kinds: array[int] = field(default_factory=lambda: array("b"))
    # The number that a piece of work shares with the call that launched it; -1 where there is none.
    correlations: array[int] = field(default_factory=lambda: array("q"))

    def add(self, start: float, end: float, kind: int, correlation: int) -> None:
        """Add one kernel or copy."""
        self.starts.append(start)
        self.ends.append(end)
        self.kinds.append(kind)
        self.correlations.append(correlation)

    def spans(self, kinds: Collection[int] = (KERNEL, COPY, PAGEABLE)) -> np.ndarray:
        """Return when it was at work of some kinds."""
        those = np.isin(np.array(self.kinds), list(kinds))
        return union(np.array(self.starts)[those], np.array(self.ends)[those])


@dataclass
class Timeline:
    """A trace of one process."""

    rank: int | None = None  # its number among the processes of a distributed training
    threads: dict[object, HostThread] = field(default_factory=dict)
    gpus: dict[object, GpuWork] = field(default_factory=dict)
    # Correlation and start of each call that gave the GPU work.
    launches: tuple[array[int], array[float]] = field(default_factory=lambda: (array("q"), array("d")))

    def thread(self, key: object) -> HostThread:
        """Return the thread of that name, made when it is first met."""
        return self.threads.setdefault(key, HostThread())

    def gpu(self, key: object) -> GpuWork:
        """Return the GPU of that name, made when it is first met."""
        return self.gpus.setdefault(key, GpuWork())

    def loop(self) -> HostThread:
        """Return the thread of the training loop: where steps are marked, or else where most was waited."""
        with_waits = [thread for thread in self.threads.values() if thread.waits]
        marked = [thread for thread in with_waits if thread.steps]
        return max(
            marked or with_waits,
            key=lambda thread: sum(end - start for start, end in thread.waits),
            default=HostThread(),
        )
