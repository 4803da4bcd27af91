"""Datasets and DataLoaders of your own, in place of the lab's images.

What happens before a dataset's `transform` counts as reading and decoding together.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TypeAlias

from starvelab.errors import InputError
from starvelab.measure.batches import PARTS, Batch, ItemSource, Preparer, Sample, cached
from starvelab.model.parts import Accelerator, Samples, Workers
from starvelab.pipeline import Pipeline
from starvelab.units import Quantity, Unchecked

from .dataset_times import DECODE, READ, Arguments, Dataset, ItemTimes, TimedTransform, innermost

# Any: a DataLoader or what has the same attributes; `is_loader` looks at them.
TorchLoader: TypeAlias = Any
MAX_ORDER = 10_000  # indices of the sampler's order that are kept
ENDLESS = 1 << 40  # items of a stream: it begins anew whenever it ends
# What a dataset does itself, beside its transform: reading and decoding, and all else under this name.
ITEM = "__getitem__"
OWN_STAGES = (READ, DECODE, ITEM)
# The rungs by what is cached: a decoded sample is what the dataset hands to its transform.
DECODED, PROCESSED = PARTS.index("transform"), PARTS.index("collate")


class DatasetSource(ItemSource):
    """The items of a dataset, which PyTorch's DataLoader fetches.

    If it has a `transform`, as those of torchvision do, that becomes a rung of its own, and each step of a
    `Compose` is timed.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        Also an IterableDataset, or any object with items and a length.
    collate_fn : callable, optional
        How samples are joined, in place of PyTorch's own way.
    pinned : bool
        Whether batches are put into pinned memory, where there is a GPU.

    Raises
    ------
    InputError
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        collate_fn: Callable[[list[Sample]], Batch] | None = None,
        pinned: bool = True,
    ) -> None:
        self.dataset = Stream(dataset) if is_stream(dataset) else dataset
        self.collate_fn, self.pinned = collate_fn, pinned
        if not has_items(self.dataset):
            raise InputError(
                f"A dataset has items and a length, got {type(dataset).__name__}. Pass one that has."
            )
        self.name = type(innermost(self.dataset)).__name__
        if len(self.dataset) == 0:
            raise InputError("A dataset to measure needs items, and this one has none. Check its path.")

    def __len__(self) -> int:
        return len(self.dataset)

    @property
    def label(self) -> str:
        """What is prepared, in a sentence."""
        return f"{self.name} items"

    def timed_transform(self) -> TimedTransform:
        """The transform of the dataset with the time of each step."""
        return TimedTransform(self.dataset, taken=(*OWN_STAGES, "collate"))

    @property
    def stages(self) -> Mapping[str, str]:
        """What the dataset does itself and each step of its transform, and the parts that these belong to."""
        steps = dict.fromkeys(self.timed_transform().seconds, PARTS[DECODED])
        return {**dict.fromkeys(OWN_STAGES, " + ".join(PARTS[: self.rungs[1]])), **steps}

    @property
    def rungs(self) -> tuple[int, ...]:
        """Where the caching ladder can stand: a transform can be told from what comes before it."""
        below = (0,) if self.timed_transform().original is None else (0, DECODED)
        return (*below, *range(PROCESSED, len(PARTS)))

    def preparer(self, batch_size: int) -> Preparer:
        """Return what fetches the items in one worker."""
        return DatasetPreparer(self, batch_size)


class DatasetPreparer(Preparer):
    """Fetches items; the DataLoader joins them."""

    def __init__(self, source: DatasetSource, batch_size: int = 1) -> None:
        super().__init__((*source.stages, "collate"), batch_size)
        self.dataset, self.transform, self.times = source.dataset, source.timed_transform(), ItemTimes()
        self.kept: list[tuple[Arguments, Sample]] = []

    def sample(self, index: int, rung: int, seconds: dict[str, float]) -> Sample:
        """One item; with a decoded or a processed one from the cache."""
        if rung and not self.kept:
            self.kept = cached(self.decoded_and_transformed, len(self.dataset))
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
        steps = self.transform.take_seconds()
        own -= sum(steps.values())
        parts = self.times.split(own) if rung == 0 else {}
        for name, spent in {**steps, **parts, ITEM: own - sum(parts.values())}.items():
            seconds[name] += spent
        return item

    def _transformed(self, *values: Sample, **named: Sample) -> Sample:
        # What a transform reads or decodes is its own time.
        with self.times.paused():
            return self.transform.apply(*values, **named)

    def decoded_and_transformed(self, index: int) -> tuple[Arguments, Sample]:
        """Return what the transform is given for an item (nothing without a transform), and the item."""
        if self.transform.original is None:
            return ((), {}), self.dataset[index]
        with self.transform.noted() as given:
            item = self.dataset[index]
            if not given and isinstance(self.dataset, Stream):
                # A stream may ask for its transform once, when it starts: it starts anew with this one, and
                # once more without it.
                self.dataset.iterator = None
                item = self.dataset[index]
                self.dataset.iterator = None
        if not given:
            raise InputError(
                f"{type(self.dataset).__name__} has a transform and does not call it for item {index}. "
                "Set its transform to None, or call it in __getitem__."
            )
        return given[0], item


def is_loader(given: object) -> bool:
    """True if it is a DataLoader, or has the attributes of one."""
    return all(hasattr(given, name) for name in ("dataset", "num_workers", "collate_fn", "batch_sampler"))


def has_items(given: object) -> bool:
    """True if it is a dataset: with items and a length, or a stream of items."""
    return is_stream(given) or (hasattr(given, "__getitem__") and hasattr(given, "__len__"))


def is_stream(dataset: object) -> bool:
    """True if a dataset gives its items one after the other only, as an IterableDataset does."""
    data = sys.modules.get("torch.utils.data")
    if data is not None and isinstance(dataset, data.IterableDataset):  # it has a __getitem__ that raises
        return True
    return hasattr(dataset, "__iter__") and not hasattr(dataset, "__getitem__")


def of_loader(
    loader: TorchLoader,
    *,
    step: Callable[[Unchecked], object] | None = None,
    step_time: Quantity | str | None = None,
) -> Pipeline:
    """Describe a PyTorch `DataLoader` as it is, with its dataset, batch size, workers and order.

    Parameters
    ----------
    loader : torch.utils.data.DataLoader
    step : callable, optional
        A function that trains on one batch. It is called, and trains for real.
    step_time : quantity [time], optional
        In place of it: what a training step takes. A loader without either is measured alone: then a
        measurement says what it delivers, and a finding which part costs most, and nothing of an
        accelerator.

    Raises
    ------
    InputError
    """
    if step is not None and step_time is not None:
        raise InputError(
            "A training step is called, or its time is known: got step and step_time. Pass one of them."
        )
    return Pipeline(hardware=Accelerator(device=step, rate=step_time), **parts_of(loader))


def parts_of(loader: TorchLoader) -> dict[str, Unchecked]:
    """The fields of a pipeline that runs the same batches."""
    if not is_loader(loader):
        raise InputError(
            f"of_loader takes a DataLoader of PyTorch, got {type(loader).__name__}. Put a dataset into one: "
            "of_loader(DataLoader(dataset, batch_size=32))."
        )
    alone = loader.batch_sampler is None  # the dataset makes whole batches
    dataset = loader.dataset
    if not is_stream(dataset) and has_items(dataset):
        with _random_numbers_kept(loader):
            dataset = Ordered(dataset, _order(loader))
    collate = loader.collate_fn
    # Where items are batches, what the loader makes of the only one.
    collate_fn = (lambda items: collate(items[0])) if alone else collate
    workers = Workers(
        loader.num_workers,
        kind="torch",
        prefetch=loader.prefetch_factor or 2,
        in_order=getattr(loader, "in_order", True),
    )
    return {
        "dataset": Samples(source=DatasetSource(dataset, collate_fn=collate_fn, pinned=loader.pin_memory)),
        "batch_size": 1 if alone else _batch_size(loader),
        "workers": workers,
    }


def _batch_size(loader: TorchLoader) -> int:
    size = loader.batch_size or getattr(loader.batch_sampler, "batch_size", None)
    return int(size) if size else len(next(iter(loader.batch_sampler)))


def _order(loader: TorchLoader) -> list[int]:
    """The indices in the order of the sampler."""
    batches = loader.batch_sampler
    return list(islice(loader.sampler if batches is None else chain.from_iterable(batches), MAX_ORDER))


@contextmanager
def _random_numbers_kept(loader: TorchLoader) -> Iterator[None]:
    """A sampler that draws leaves the random numbers of the program as they were."""
    import torch

    both = (getattr(loader, "generator", None), getattr(loader.sampler, "generator", None))
    states = [(one, one.get_state()) for one in both if one is not None]
    with torch.random.fork_rng(devices=[]):
        yield
    for one, state in states:
        one.set_state(state)


@dataclass(frozen=True)
class Ordered:
    """The items of a dataset in the order of a sampler."""

    dataset: Dataset
    order: list[int]

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: int) -> Sample:
        return self.dataset[self.order[index]]


class Stream:
    """The items of an IterableDataset, one after the other, for each worker: an index says nothing."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.iterator: Iterator[Sample] | None = None

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, index: int) -> Sample:
        if self.iterator is not None:
            for item in self.iterator:
                return item
        self.iterator = iter(self.dataset)
        return next(self.iterator)

    def __getstate__(self) -> dict[str, object]:
        return {"dataset": self.dataset, "iterator": None}  # an iterator cannot be sent to a worker
