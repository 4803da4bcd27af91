"""What every trace is brought to: who waited when on the host, and what the GPU did when.

All times are microseconds since one moment of the trace.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from .spans import union


@dataclass
class HostThread:
    """One thread of the training program.

    Attributes
    ----------
    waits : list of pair of float
        Start and end of each `next` of a DataLoader.
    steps : list of tuple of float
        Number, start and end of each step that the profiler marked.
    operations : array of float
        When each of its operations starts.
    """

    waits: list[tuple[float, float]] = field(default_factory=list)
    steps: list[tuple[float, float, float]] = field(default_factory=list)
    operations: array[float] = field(default_factory=lambda: array("d"))

    def merged_waits(self) -> np.ndarray:
        """The waits in order; one within another, of a loader that reads a loader, is part of it."""
        if not self.waits:
            return np.empty((0, 2))
        both = np.array(self.waits)
        return union(both[:, 0], both[:, 1])


@dataclass
class GpuWork:
    """What one GPU did.

    Attributes
    ----------
    starts, ends : array of float
    kinds : array of int
        KERNEL, COPY or PAGEABLE: a copy from or to memory that is not pinned.
    correlations : array of int
        The number that a piece of work shares with the call that launched it; -1 where there is none.
    """

    KERNEL: ClassVar[int] = 0
    COPY: ClassVar[int] = 1
    PAGEABLE: ClassVar[int] = 2

    starts: array[float] = field(default_factory=lambda: array("d"))
    ends: array[float] = field(default_factory=lambda: array("d"))
    kinds: array[int] = field(default_factory=lambda: array("b"))
    correlations: array[int] = field(default_factory=lambda: array("q"))

    def add(self, start: float, end: float, kind: int, correlation: int) -> None:
        """One kernel or copy."""
        self.starts.append(start)
        self.ends.append(end)
        self.kinds.append(kind)
        self.correlations.append(correlation)


@dataclass
class Timeline:
    """A trace of one process.

    Attributes
    ----------
    rank : int or None
        Its number among the processes of a distributed training.
    threads : mapping of thread to HostThread
    gpus : mapping of device to GpuWork
    launches : pair of array
        Correlation and start of each call that gave the GPU work.
    pageable_bytes : float
        What went to the GPU from memory that is not pinned.
    """

    rank: int | None = None
    threads: dict[object, HostThread] = field(default_factory=dict)
    gpus: dict[object, GpuWork] = field(default_factory=dict)
    launches: tuple[array[int], array[float]] = field(default_factory=lambda: (array("q"), array("d")))
    pageable_bytes: float = 0.0

    def thread(self, key: object) -> HostThread:
        """The thread of that name, made when it is first met."""
        return self.threads.setdefault(key, HostThread())

    def gpu(self, key: object) -> GpuWork:
        """The GPU of that name, made when it is first met."""
        return self.gpus.setdefault(key, GpuWork())

    def loop(self) -> HostThread:
        """The thread of the training loop: where the profiler marked steps, or else where most was waited."""
        with_waits = [thread for thread in self.threads.values() if thread.waits]
        marked = [thread for thread in with_waits if thread.steps]
        longest = sorted(
            marked or with_waits, key=lambda thread: sum(end - start for start, end in thread.waits)
        )
        return longest[-1] if longest else HostThread()
