"""A DataLoader as people have it, brought to what a caching ladder can run.

Its dataset, batch size, workers, prefetching, order, collate function and pinning stay as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from ..units import Unchecked
from .protocols import Batch, Sample

# Any: a DataLoader or what has the same attributes, and a dataset of the user's; `is_loader` looks at them.
TorchLoader: TypeAlias = Any
TorchDataset: TypeAlias = Any

MAX_ORDER = 10_000  # indices of the sampler's order that are kept
ENDLESS = 1 << 40  # items of a stream: it begins anew whenever it ends


def is_loader(given: object) -> bool:
    """Whether it is a DataLoader, or has what one has."""
    return all(hasattr(given, name) for name in ("dataset", "num_workers", "collate_fn", "batch_sampler"))


def is_stream(dataset: object) -> bool:
    """Whether a dataset gives its items one after the other only, as an IterableDataset does."""
    data = sys.modules.get("torch.utils.data")
    if data is not None and isinstance(dataset, data.IterableDataset):  # it has a __getitem__ that raises
        return True
    return hasattr(dataset, "__iter__") and not hasattr(dataset, "__getitem__")


def options_of(loader: TorchLoader) -> dict[str, Unchecked]:
    """The fields of a `DatasetPipeline` that runs the same batches."""
    alone = loader.batch_sampler is None  # the dataset makes whole batches
    options: dict[str, Unchecked] = {
        "dataset": loader.dataset,
        "batch_size": 1 if alone else _batch_size(loader),
        "workers": loader.num_workers,
        "in_order": getattr(loader, "in_order", True),
        "collate_fn": _First(loader.collate_fn) if alone else loader.collate_fn,
        "pinned": loader.pin_memory,
    }
    if loader.prefetch_factor:
        options["prefetch"] = loader.prefetch_factor
    if not is_stream(loader.dataset):
        with _random_numbers_kept(loader):
            options["dataset"] = Ordered(loader.dataset, _order(loader))
    return options


def _batch_size(loader: TorchLoader) -> int:
    size = loader.batch_size or getattr(loader.batch_sampler, "batch_size", None)
    return int(size) if size else len(next(iter(loader.batch_sampler)))


def _order(loader: TorchLoader) -> list[int]:
    """The indices in the order of the sampler."""
    if loader.batch_sampler is None:
        return list(islice(loader.sampler, MAX_ORDER))
    indices = (index for batch in loader.batch_sampler for index in batch)
    return list(islice(indices, MAX_ORDER))


@contextmanager
def _random_numbers_kept(loader: TorchLoader) -> Iterator[None]:
    """A sampler that draws leaves the random numbers of the program as they were."""
    import torch

    generators = [
        one
        for one in (getattr(loader, "generator", None), getattr(loader.sampler, "generator", None))
        if one is not None
    ]
    states = [one.get_state() for one in generators]
    with torch.random.fork_rng(devices=[]):
        yield
    for one, state in zip(generators, states, strict=True):
        one.set_state(state)


@dataclass(frozen=True)
class _First:
    """For a dataset whose items are batches: what the loader makes of the only one."""

    collate: Callable[[Sample], Batch]

    def __call__(self, items: list[Sample]) -> Batch:
        return self.collate(items[0])


@dataclass(frozen=True)
class Ordered:
    """The items of a dataset in the order of a sampler."""

    dataset: TorchDataset
    order: list[int]

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: int) -> Sample:
        return self.dataset[self.order[index]]


class Stream:
    """The items of an IterableDataset, one after the other: an index says nothing.

    Each worker has an iterator of its own, as in a DataLoader.
    """

    def __init__(self, dataset: TorchDataset) -> None:
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

    def restart(self) -> None:
        """Begin anew with the next item."""
        self.iterator = None

    def __getstate__(self) -> dict[str, object]:
        return {"dataset": self.dataset, "iterator": None}  # an iterator cannot be sent to a worker
