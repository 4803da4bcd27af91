"""Your own torch Dataset in place of the lab's images.

A dataset has items, and perhaps a `transform` that is called once for each. What happens before the transform
counts as reading and decoding together.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from ..errors import InputError, UnknownNameError, check_names
from ..units import Quantity, Unchecked
from .devices import VirtualAccelerator, VirtualLink
from .input_pipeline import check_counts
from .item_times import DECODE, READ, ItemTimes
from .own_loader import Stream, is_stream
from .own_transform import Arguments, TimedTransform, innermost, transform_of
from .preparation import CACHED_BYTES, CACHED_SAMPLES, memory_size
from .protocols import PARTS, Accelerator, Batch, Sample, WaitForStorage
from .training_step import TrainingStep

# What a dataset does itself, beside its transform: reading and decoding, and all else under this name.
ITEM = "__getitem__"
OWN_STAGES = (READ, DECODE, ITEM)
# The rungs by what is cached: a decoded sample is what the dataset hands to its transform.
DECODED, PROCESSED = PARTS.index("transform"), PARTS.index("collate")


class Dataset(Protocol):
    """A map-style dataset, of PyTorch or of any other kind."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Sample: ...


@dataclass(frozen=True)
class Items:
    """The items of a dataset, under the name that reports call them by."""

    name: str
    dataset: Dataset

    def __len__(self) -> int:
        return len(self.dataset)


@dataclass(frozen=True, kw_only=True)
class DatasetPipeline:
    """A torch Dataset behind PyTorch's DataLoader.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        If it has a `transform`, as those of torchvision do, that becomes a rung of its own, and each step of
        a `Compose` is timed.
    batch_size, workers, prefetch : int
    in_order : bool
    collate_fn : callable, optional
    pinned : bool
    link : VirtualLink, optional
    accelerator : VirtualAccelerator or CudaAccelerator, optional
    step_time : quantity [time], optional
        In place of `accelerator`: what a step takes there.
    step : callable, optional
        In place of both: a function that trains on one batch. It is called, and trains for real.
    """

    dataset: Dataset
    batch_size: int = 32
    workers: int = 2
    prefetch: int = 2
    in_order: bool = True
    collate_fn: Callable[[list[Sample]], Batch] | None = None
    pinned: bool = True
    link: VirtualLink | None = None
    accelerator: Accelerator = None  # type: ignore[assignment]  # given, or made from step_time
    step_time: Quantity | None = None
    step: Callable[[Batch], object] | None = None

    loader = "torch"
    storage = None

    def __post_init__(self) -> None:
        if is_stream(self.dataset):
            object.__setattr__(self, "dataset", Stream(self.dataset))
        if not has_items(self.dataset):
            raise InputError(
                "A DatasetPipeline needs a dataset with items and a length, got "
                f"{type(self.dataset).__name__}. Pass one."
            )
        if len(self.dataset) == 0:
            raise InputError("A dataset to measure needs items, and this one has none. Check its path.")
        check_counts(self)
        if sum(given is not None for given in (self.accelerator, self.step_time, self.step)) != 1:
            raise InputError(
                "A dataset needs an accelerator or the step_time of one, and not both. "
                'Pass for example step_time="30 ms": a time that you measured, or expect. Or pass '
                "step=train_step: a function that trains on one batch."
            )
        if self.step is not None:
            # The accelerator holds it alone: a pipeline travels to its workers, and a model need not.
            object.__setattr__(self, "accelerator", TrainingStep(self.step))
            object.__setattr__(self, "step", None)
        elif self.step_time is not None:
            object.__setattr__(self, "accelerator", VirtualAccelerator(step_time=self.step_time))
            object.__setattr__(self, "step_time", None)

    @classmethod
    def around(cls, dataset: Dataset, **options: Unchecked) -> DatasetPipeline:
        """The pipeline of a dataset; an unknown option is rejected by name."""
        known = [f.name for f in dataclasses.fields(cls)][1:]
        for name in options:
            if name not in known:
                raise UnknownNameError(f"A dataset has no option {name!r}. There is: {', '.join(known)}.")
        return cls(dataset=dataset, **options)

    def replace(self, **changes: Unchecked) -> DatasetPipeline:
        """A copy with some fields changed; a `step` or `step_time` takes the place of the accelerator."""
        check_names(changes, [f.name for f in dataclasses.fields(self)], "A pipeline of a dataset")
        if {"step", "step_time"} & changes.keys():
            changes = {"accelerator": None, **changes}
        return dataclasses.replace(self, **changes)

    @property
    def worker_count(self) -> int:
        """Workers beside the training loop."""
        return self.workers

    @property
    def samples(self) -> Items:
        """The dataset as reports call it."""
        return Items(type(innermost(self.dataset)).__name__, self.dataset)

    @property
    def transforms(self) -> tuple[DatasetStage, ...]:
        """Reading, decoding and all else that the dataset does itself, and each step of its transform."""
        before = " + ".join(PARTS[: DECODED if self.has_transform else PROCESSED])
        steps = (DatasetStage(name, PARTS[DECODED]) for name in self.timed_transform().seconds)
        return *(DatasetStage(name, before) for name in OWN_STAGES), *steps

    def timed_transform(self) -> TimedTransform:
        """The transform of the dataset with the time of each step."""
        return TimedTransform(self.dataset, taken=(*OWN_STAGES, "collate"))

    @property
    def has_transform(self) -> bool:
        """Whether the transform can be told from what comes before it."""
        return transform_of(self.dataset) is not None

    @property
    def rungs(self) -> tuple[int, ...]:
        """Where the caching ladder can stand."""
        top = tuple(range(PROCESSED, len(PARTS)))
        return (0, DECODED, *top) if self.has_transform else (0, *top)

    @cached_property
    def batch_bytes(self) -> int:
        """Bytes of a batch, judged by the first item."""
        return self.batch_size * memory_size(self.dataset[0])

    def preparer(self, storage: WaitForStorage) -> DatasetPreparer:  # noqa: ARG002  # a dataset reads for itself
        """What one worker works with."""
        return DatasetPreparer(self)


@dataclass(frozen=True)
class DatasetStage:
    """What a worker does to an item, by name, and the part of the pipeline that it belongs to."""

    name: str
    part: str


class DatasetPreparer:
    """Fetches items, and keeps a few of each rung."""

    def __init__(self, pipe: DatasetPipeline) -> None:
        self.dataset, self.transform, self.times = pipe.dataset, pipe.timed_transform(), ItemTimes()
        self.kept: list[tuple[Arguments, Sample]] = []

    def no_seconds(self) -> dict[str, float]:
        """Nothing spent yet."""
        return dict.fromkeys((*OWN_STAGES, *self.transform.seconds, "collate"), 0.0)

    def sample(self, index: int, rung: int, seconds: dict[str, float]) -> Sample:
        """One item; with a decoded or a processed one from the cache."""
        if rung and not self.kept:
            self._fill()
        before = time.perf_counter()
        if rung == 0:
            with self.transform.in_place(self._transformed), self.times.watching():
                item = self.dataset[index % len(self.dataset)]
        else:
            decoded, item = self.kept[index % len(self.kept)]
            if rung == DECODED:
                # Its work is what counts; the item that goes on is one that was made the whole way.
                self.transform.again(decoded)
        own = time.perf_counter() - before
        for name, spent in self.transform.take_seconds().items():
            seconds[name] += spent
            own -= spent
        parts = self.times.split(own) if rung == 0 else {}
        for name, spent in {**parts, ITEM: own - sum(parts.values())}.items():
            seconds[name] += spent
        return item

    def _transformed(self, *values: Sample, **named: Sample) -> Sample:
        # What a transform reads or decodes is its own time.
        with self.times.paused():
            return self.transform.apply(*values, **named)

    def _fill(self) -> None:
        held = 0
        for index in range(min(CACHED_SAMPLES, len(self.dataset))):
            decoded, item = self.transform.decoded_and_transformed(index)
            self.kept.append((decoded, item))
            held += memory_size(decoded) + memory_size(item)
            if held > CACHED_BYTES:
                break


def has_items(given: object) -> bool:
    """Whether it is a dataset: with items and a length, or a stream of items."""
    return is_stream(given) or (hasattr(given, "__getitem__") and hasattr(given, "__len__"))
