"""What sources, preparers, loaders and devices offer each other, and what passes between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from ..errors import WorkerError

# Any: stored bytes, an image, an array, or whatever else a transform or a dataset makes of a sample.
Sample: TypeAlias = Any
# Any: an array, a tensor, or what a `collate_fn` makes of samples.
Batch: TypeAlias = Any
# Takes the number of bytes read, and returns when the pipeline's storage would have delivered them.
WaitForStorage: TypeAlias = Callable[[int], None]

# The parts of an input pipeline in the order in which a sample meets them, which are the rungs of its ladder.
PARTS = ("read", "decode", "transform", "collate", "copy", "compute")
# The parts that a worker does to single samples. A transform belongs to the second or the third.
SAMPLE_PARTS = PARTS[:3]
# What one cached rung of one worker may hold, in samples and in bytes: sizes vary, so one would not do.
CACHED_SAMPLES = 12
CACHED_BYTES = 96e6


class NamedPart(Protocol):
    """Something that a worker does to a sample: its name in `stage_times`, and the part it belongs to."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def part(self) -> str:
        """One of the parts, or several joined by " + "."""


@dataclass(frozen=True)
class Work:
    """What a worker did for one batch."""

    start: float  # on the monotonic clock [s]
    end: float
    rung: int  # parts that came from the worker's cache
    seconds: dict[str, float]  # CPU time and waits of each part or transform, over the whole batch


@dataclass(frozen=True)
class Delivery:
    """A batch as the training loop gets it; worker -1 is the training loop itself."""

    number: int
    worker: int
    array: Batch
    work: Work


@dataclass(frozen=True)
class Passage:
    """When one batch was copied to a device and computed on [s], on the monotonic clock."""

    copy_start: float
    copied: float
    step_start: float
    step_end: float


class Preparer(Protocol):
    """Prepares samples inside a worker, and keeps a few of each rung."""

    def no_seconds(self) -> dict[str, float]:
        """A zero for each part or transform whose time is taken."""

    def sample(self, index: int, rung: int, seconds: dict[str, float]) -> Sample:
        """One sample, the first `rung` parts from the cache; what it takes is added to `seconds`."""


class BatchPreparer(Preparer, Protocol):
    """A preparer that also joins samples, for loaders that do not bring their own way."""

    def batch(self, number: int, rung: int = 0, out: np.ndarray | None = None) -> tuple[np.ndarray, Work]:
        """Batch `number`, written into `out` where there is one."""


class Loader(ABC):
    """Batches without end, from workers or from the training loop itself."""

    workers: int
    ahead: int  # batches that are ordered before the loop asks for them
    rung: int  # parts that the workers take from their caches

    @abstractmethod
    def next(self) -> Delivery:
        """Wait for the next batch."""

    def lost_worker(self, error: BaseException | None) -> WorkerError | None:  # noqa: ARG002
        """The loss of a worker that an error of the loop stands for; None where it is something else."""
        return None

    @abstractmethod
    def close(self) -> None:
        """End the workers and give their memory back."""


class DeviceRun(ABC):
    """A device that trains on the batches of one run."""

    def warm_up(self, batch: Batch) -> None:  # noqa: B027  # a simulated device needs none
        """Train a few steps that are not measured."""

    @abstractmethod
    def take(self, batch: Batch, *, resident: bool = False) -> None:
        """Order the copy of a batch unless it is `resident`, and a step; returns when the loop may go on."""

    def keep(self, batch: Batch) -> Batch:
        """A batch that stays valid when the loader delivers the next one, which may write over an array."""
        return np.array(batch) if isinstance(batch, np.ndarray) else batch

    @abstractmethod
    def now(self) -> float:
        """When everything ordered so far is done, on the monotonic clock [s]."""

    @abstractmethod
    def finish(self) -> Sequence[Passage]:
        """Wait for the last step; the times of every batch."""

    def close(self) -> None:  # noqa: B027  # most hold nothing
        """Give the memory back."""


def memory_size(value: Sample | Batch) -> int:
    """Bytes that a sample or a batch takes in memory, as far as its type tells."""
    if hasattr(value, "getbands"):  # an image of Pillow, which is not imported for this question
        return int(value.width * value.height * len(value.getbands()))
    if isinstance(value, Mapping):
        return sum(memory_size(each) for each in value.values())
    if isinstance(value, list | tuple):
        return sum(memory_size(each) for each in value)
    return len(value) if isinstance(value, bytes) else int(getattr(value, "nbytes", 0))
