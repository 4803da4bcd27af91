"""Devices of a run: simulated ones for what a laptop lacks, a GPU, or a training step of your own.

A simulated device keeps the time at which it will be free: it puts no load on the CPU, and adds no noise.
"""

from __future__ import annotations

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .batches import Batch, memory_size

WARM_UP = 2  # steps
# Of the numbers that workers share, those of the connections to a storage.
CONNECTIONS, MAX_CONNECTIONS = 2, 1024


@dataclass(frozen=True)
class VirtualStorage:
    """A storage that all workers share: reads come one after the other, and requests wait side by side."""

    bandwidth: float  # of all requests together [B/s]
    latency: float = 0.0  # of each read [s]
    cached_fraction: float = 0.0  # of the reads, which the host's memory serves at this machine's own speed
    request_bandwidth: float = inf  # of one request [B/s]
    read_rate: float = inf  # of all of them [1/s]
    connections: float = inf
    open: int = 1  # requests that each worker has open

    def busy(self, size: float) -> float:
        """Seconds in which it reads a sample, and none besides."""
        return max(size / self.bandwidth, 1 / self.read_rate)


@dataclass(frozen=True)
class VirtualLink:
    """The link to the accelerator; a copy runs beside the accelerator's work, or in between."""

    bandwidth: float  # B/s
    overlapped: bool = True


class Passage(NamedTuple):
    """When one batch was copied to a device and computed on [s], on the monotonic clock."""

    copy_start: float
    copied: float
    step_start: float
    step_end: float


# What trains on a batch as the DataLoader gives it; what it returns is not looked at.
Step: TypeAlias = Callable[[Batch], object]


class DeviceRun(ABC):
    """A device that trains on the batches of one run."""

    def __init__(self) -> None:
        self.passages: list[Passage] = []

    def warm_up(self, batch: Batch) -> None:  # noqa: B027  # a simulated device needs none
        """Train a few steps that are not measured."""

    @abstractmethod
    def take(self, batch: Batch, *, resident: bool = False) -> None:
        """Order the copy of a batch unless it is `resident`, and a step; returns when the loop may go on."""

    @abstractmethod
    def now(self) -> float:
        """When everything ordered so far is done, on the monotonic clock [s]."""

    def finish(self) -> Sequence[Passage]:
        """Wait for the last step; the times of every batch."""
        sleep_until(self.now())
        return self.passages


@dataclass(frozen=True)
class VirtualAccelerator:
    """An accelerator that takes a fixed time for each batch."""

    step_time: float  # s
    in_flight: float = 2


class VirtualRun(DeviceRun):
    """A simulated link and accelerator at work, and the training loop's waits for them."""

    def __init__(self, accelerator: VirtualAccelerator, link: VirtualLink | None) -> None:
        super().__init__()
        self.step_time, self.in_flight, self.link = accelerator.step_time, accelerator.in_flight, link
        self.free = self.link_free = 0.0  # on the monotonic clock [s]
        self.unfinished: deque[float] = deque()

    def take(self, batch: Batch, *, resident: bool = False) -> None:
        """Copy a batch unless it is `resident`, and step; returns when the loop may go on."""
        copy_start = copied = time.monotonic()
        if self.link is not None and not resident:
            waits_for = self.link_free if self.link.overlapped else self.free
            copy_start = max(copy_start, waits_for)
            copied = self.link_free = copy_start + memory_size(batch) / self.link.bandwidth
        step_start = max(copied, self.free)
        self.free = step_start + self.step_time
        self.passages.append(Passage(copy_start, copied, step_start, self.free))
        self.unfinished.append(self.free)
        if len(self.unfinished) >= self.in_flight:
            sleep_until(self.unfinished.popleft())

    def now(self) -> float:
        """When everything ordered so far is done, on the monotonic clock [s]."""
        return self.free


def sleep_until(deadline: float) -> None:
    """Sleep until that time of the monotonic clock [s]: errors of single sleeps do not add up."""
    left = deadline - time.monotonic()
    if left > 0:
        time.sleep(left)


class StorageClock:
    """The time at which a simulated storage is free again, shared by workers in threads or in processes.

    Of the array that all share, the first number is that time; from `CONNECTIONS` on stand the connections.
    """

    def __init__(
        self,
        storage: VirtualStorage | None,
        shared: np.ndarray | None = None,
        lock: AbstractContextManager[object] | None = None,
    ) -> None:
        self.storage, self.lock = storage, lock or threading.Lock()
        self.shared = np.zeros(1) if shared is None else shared
        self.misses_due = 0.0
        limited = 0 if storage is None or storage.connections == inf else int(storage.connections)
        self.connections = self.shared[CONNECTIONS : CONNECTIONS + limited]

    def __call__(self, size: int) -> None:
        """Wait until that many bytes would have come."""
        if self.storage is None:
            return
        with self.lock:
            # Every other read at one half, not half of them by chance: a simulated device adds no noise.
            self.misses_due += 1 - self.storage.cached_fraction
            if self.misses_due < 1 - 1e-9:
                return
            self.misses_due -= 1
            # Of limited connections one must be free, and bytes come one read after the other.
            free = self.connections.min() if self.connections.size else 0.0
            busy = self.storage.busy(size)
            ready = max(time.monotonic(), float(free), float(self.shared[0])) + busy
            self.shared[0] = ready
            # A request that is slower than all of them together has these bytes under way longer.
            ready += max(size / self.storage.request_bandwidth - busy, 0.0) + self.storage.latency
            if self.connections.size:
                self.connections[self.connections.argmin()] = ready
        sleep_until(ready)


# Any: `torch.cuda` and an event of it. PyTorch is not imported here, and declares no types of these.
Cuda: TypeAlias = Any


def cuda_in_use() -> Cuda | None:
    """`torch.cuda`, if this program has PyTorch loaded and works with a GPU."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


def wait_for_device() -> None:
    """Wait until a GPU that this program works with has done all that was ordered."""
    cuda = cuda_in_use()
    if cuda is not None:
        cuda.synchronize()


class StepRun(DeviceRun):
    """Runs a step of the user's own for each batch, and keeps its times; with a GPU, each is waited for."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step

    def warm_up(self, batch: Batch) -> None:
        """Train a few steps that are not measured."""
        for _ in range(WARM_UP):
            self.step(batch)
        self.now()

    def take(self, batch: Batch, *, resident: bool = False) -> None:  # noqa: ARG002  # the step copies
        """Train on a batch, and wait until that is done."""
        start = time.monotonic()
        self.step(batch)
        self.passages.append(Passage(start, start, start, self.now()))

    def now(self) -> float:
        """When everything ordered so far is done, on the monotonic clock [s]."""
        wait_for_device()
        return time.monotonic()
