"""What samples, preparers, loaders, devices and pipelines offer each other, and what passes between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from ..errors import WorkerError
from ..units import Quantity

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


@dataclass(frozen=True)
class Work:
    """What a worker did for one batch.

    Attributes
    ----------
    start, end : float
        Seconds on the monotonic clock.
    rung : int
        How many parts came from the worker's cache.
    seconds : dict of str to float
        CPU time and waits of each part or transform, over the whole batch [s].
    """

    start: float
    end: float
    rung: int
    seconds: dict[str, float]


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


class NamedPart(Protocol):
    """Something that a worker does, by the name that a measurement gives its time."""

    @property
    def name(self) -> str:
        """Its name in `stage_times`."""

    @property
    def part(self) -> str:
        """The part of the input pipeline that it belongs to."""


class Storage(Protocol):
    """A storage that all workers share."""

    @property
    def bandwidth(self) -> Quantity:
        """What it delivers to all of them together [data/time]."""

    @property
    def latency(self) -> Quantity:
        """What each request waits besides [time]."""

    @property
    def cached_fraction(self) -> float:
        """Share of the reads that the host's memory serves."""


class Link(Protocol):
    """The host-to-device link."""

    @property
    def overlapped(self) -> bool:
        """Whether a copy runs beside the accelerator's work."""

    def copy_time(self, size: float) -> float:
        """Seconds for so many bytes."""


class NamedSamples(Protocol):
    """Anything with a name and a number of samples."""

    @property
    def name(self) -> str:
        """How reports call the samples."""

    def __len__(self) -> int: ...


class StoredSamples(NamedSamples, Protocol):
    """Samples that can be read one by one."""

    @property
    def mean_size(self) -> Quantity:
        """Stored bytes of a sample [data], on average."""

    def read(self, index: int) -> Sample:
        """What is stored of one sample; an index past the last one begins anew."""


class Preparer(Protocol):
    """Makes batches inside a worker, and keeps a few samples of each rung."""

    def no_seconds(self) -> dict[str, float]:
        """A zero for each part or transform whose time is taken."""

    def sample(self, index: int, rung: int, seconds: dict[str, float]) -> Sample:
        """One sample, the first `rung` parts from the cache; what it takes is added to `seconds`."""


class BatchPreparer(Preparer, Protocol):
    """A preparer that also joins samples, for loaders that do not bring their own way."""

    def batch(self, number: int, rung: int = 0, out: np.ndarray | None = None) -> tuple[np.ndarray, Work]:
        """Batch `number`, written into `out` where there is one."""


class Loader(Protocol):
    """Batches without end, from workers or from the training loop itself."""

    workers: int
    ahead: int  # batches that are ordered before the loop asks for them

    @property
    def rung(self) -> int:
        """How many parts the workers take from their caches."""

    @rung.setter
    def rung(self, value: int) -> None: ...

    def next(self) -> Delivery:
        """Wait for the next batch."""

    def lost_worker(self, error: BaseException | None) -> WorkerError | None:
        """The loss of a worker that an error of the loop stands for; None where it is something else."""

    def close(self) -> None:
        """End the workers and give their memory back."""


class Device(Protocol):
    """What trains on the batches of one run."""

    def warm_up(self, batch: Batch) -> None:
        """Train a few steps that are not measured."""

    def take(self, batch: Batch, *, resident: bool = False) -> None:
        """Order the copy of a batch unless it is `resident`, and a step; returns when the loop may go on."""

    def keep(self, batch: Batch) -> Batch:
        """A batch that stays valid when the loader delivers the next one."""

    def now(self) -> float:
        """When everything ordered so far is done, on the monotonic clock [s]."""

    def finish(self) -> Sequence[Passage]:
        """Wait for the last step; the times of every batch."""

    def close(self) -> None:
        """Give the memory back."""


class Accelerator(Protocol):
    """A description of a device, from which each run opens one."""

    @property
    def in_flight(self) -> float:
        """Steps that may be under way when the loop asks for the next batch."""

    def open(self, pipe: Pipeline) -> Device:
        """The device at work behind that pipeline."""


class Pipeline(Protocol):
    """What `run` and `diagnose` can run: an `InputPipeline`, or a dataset behind PyTorch's DataLoader."""

    @property
    def samples(self) -> NamedSamples:
        """What is read."""

    @property
    def transforms(self) -> Sequence[NamedPart]:
        """What a worker does to a sample, where that is known."""

    @property
    def batch_size(self) -> int:
        """Samples of a batch."""

    @property
    def workers(self) -> int:
        """Workers asked for; see `worker_count`."""

    @property
    def worker_count(self) -> int:
        """Workers beside the training loop: none where it prepares by itself."""

    @property
    def loader(self) -> str:
        """Name of the loader: inline, threads, processes or torch."""

    @property
    def prefetch(self) -> int:
        """Batches ordered ahead of each worker."""

    @property
    def in_order(self) -> bool:
        """Whether batches are delivered in the order in which they were ordered."""

    @property
    def pinned(self) -> bool:
        """Whether batches are copied from pinned memory, where there is a GPU."""

    @property
    def storage(self) -> Storage | None:
        """A simulated storage in front of this machine's own."""

    @property
    def link(self) -> Link | None:
        """A simulated link; without it a copy takes no time."""

    @property
    def accelerator(self) -> Accelerator:
        """What consumes the batches."""

    @property
    def collate_fn(self) -> Callable[[list[Sample]], Batch] | None:
        """How a DataLoader joins samples; None for PyTorch's own way."""

    @property
    def rungs(self) -> tuple[int, ...]:
        """Where the caching ladder can stand."""

    @property
    def batch_bytes(self) -> int:
        """Bytes of a prepared batch."""

    def preparer(self, storage: WaitForStorage) -> Preparer:
        """What one worker works with."""


class ArrayPipeline(Pipeline, Protocol):
    """A pipeline whose batches are arrays of one known shape, for loaders that join samples themselves."""

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of a prepared batch."""

    @property
    def dtype(self) -> np.dtype[Any]:  # Any: NumPy's own way to say a type that is known at run time
        """Type of its values."""

    def preparer(self, storage: WaitForStorage) -> BatchPreparer:
        """What one worker works with."""
