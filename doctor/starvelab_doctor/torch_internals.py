"""PyTorch's private parts, all in this file: what a DataLoader's iterator keeps, and where a clock fits in.

Each function asks whether the part is there, so that a PyTorch without it is only watched less closely.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import length_hint
from types import ModuleType
from typing import Any, TypeAlias
from weakref import ref

SINGLE = "_SingleProcessDataLoaderIter"  # the iterator of a DataLoader without workers
# Any: a DataLoader, its iterator and its fetcher; they are recognized before they are used.
TorchLoader: TypeAlias = Any
TorchIterator: TypeAlias = Any
Fetcher: TypeAlias = Any


def _start(begin: Callable[[Any], object], own: Callable[[int], object] | None, worker: int) -> None:
    """Begin something in a worker before it makes its fetcher, and then call the user's own function."""
    from torch.utils.data import get_worker_info

    begin(get_worker_info())
    if own is not None:
        own(worker)


@contextmanager
def workers_begin_with(
    loader: TorchLoader,
    begin: Callable[[Any], object],  # Any: what PyTorch says of a worker
) -> Iterator[None]:
    """Let workers that a loader starts meanwhile call `begin` first."""
    own = loader.worker_init_fn
    loader.worker_init_fn = partial(_start, begin, own)
    try:
        yield
    finally:
        loader.worker_init_fn = own


def is_iterator(source: object) -> bool:
    """True for an iterator that a DataLoader of PyTorch made."""
    dataloader = sys.modules.get("torch.utils.data.dataloader")
    return dataloader is not None and isinstance(source, dataloader._BaseDataLoaderIter)


def is_at_start(iterator: TorchIterator) -> bool:
    """True until the iterator gave its first batch, also where it is used again."""
    return bool(iterator._num_yielded == 0)


def description_of(iterator: TorchIterator) -> tuple[str, int, int | None, int]:
    """Return the kind of a loader's data, how many items it has, its batch size and its workers."""
    dataset, size = iterator._dataset, getattr(iterator._index_sampler, "batch_size", None)
    return type(dataset).__name__, length_hint(dataset), size, iterator._num_workers


def is_pinned(iterator: TorchIterator) -> bool:
    """True where a thread copies each batch to pinned memory."""
    return bool(iterator._pin_memory)


def pinned(batch: Any) -> Any:  # Any: whatever a loader gives
    """Return a batch in pinned memory, where a loader's own thread would put it."""
    from torch.utils.data._utils import pin_memory

    return pin_memory.pin_memory(batch)  # type: ignore[no-untyped-call]  # of PyTorch


def worker_numbers(source: object) -> tuple[int, ...]:
    """Return the process numbers of the workers; none for what is no iterator of PyTorch."""
    return tuple(process.pid for process in getattr(source, "_workers", None) or ())


def prefetch_of(source: object) -> int | None:
    """Return how many batches each worker has ahead; None for what is no iterator of PyTorch."""
    return getattr(source, "_prefetch_factor", None)


def persists(source: object) -> bool | None:
    """Return whether the workers of an iterator stay for the next pass; None for what is none of PyTorch."""
    return getattr(source, "_persistent_workers", None)


def is_stream(source: object) -> bool:
    """True for an iterator of PyTorch over an iterable dataset, all of which each worker goes over."""
    return getattr(source, "_dataset_kind", None) == 1


def is_iterable(dataset: object) -> bool:
    """True if a dataset gives its items one after the other only, as an IterableDataset does."""
    data = sys.modules.get("torch.utils.data")
    if data is not None and isinstance(dataset, data.IterableDataset):  # it has a __getitem__ that raises
        return True
    return hasattr(dataset, "__iter__") and not hasattr(dataset, "__getitem__")


def is_collated(source: object) -> bool:
    """True for an iterator of PyTorch whose batches its own function makes, in shared memory at once."""
    collate = getattr(sys.modules.get("torch.utils.data"), "default_collate", None)
    return collate is not None and getattr(source, "_collate_fn", None) is collate


def length_of(source: TorchLoader | TorchIterator) -> int | None:
    """Return how many batches a pass of a loader or of its iterator has; None where nothing tells."""
    try:
        return len(source._index_sampler)
    except Exception:  # of a sampler's own class, which may have no length
        return None


def ready_batches(source: object) -> int | None:
    """Count the batches that wait for the loop; None where no queue tells."""
    queue = getattr(source, "_data_queue", None)
    if queue is None:
        return None
    try:
        waiting: int = queue.qsize()
    except NotImplementedError:  # on macOS
        return None
    return waiting + early_batches(source)


def early_batches(source: object) -> int:
    """Count the batches that the iterator holds since they arrived before their turn."""
    # Of such a batch it keeps the worker and the data, of others the worker.
    return sum(len(task) > 1 for task in getattr(source, "_task_info", {}).values())


def fetcher_of(iterator: TorchIterator) -> Fetcher:
    """Return what fetches the batches of an iterator without workers."""
    return iterator._dataset_fetcher


def time_indices(iterator: TorchIterator, spent: Callable[[float], object]) -> None:
    """Tell what each batch's indices take the loop [s]; a sampler may begin a pass by drawing all of them."""
    original, it = getattr(type(iterator), "_next_index", None), ref(iterator)
    if original is None:
        return

    def timed() -> object:
        begun, source = time.perf_counter(), it()
        try:
            return original(source)
        finally:
            if not is_at_start(source):
                spent(time.perf_counter() - begun)

    iterator._next_index = timed


def change_fetchers(dataset: object, change: Callable[[Fetcher], None]) -> None:
    """Change each fetcher that is made for a dataset in this process from now on."""
    from torch.utils.data import _DatasetKind

    original: Any = _DatasetKind.create_fetcher  # Any: of PyTorch

    def create_fetcher(kind: int, given: object, *others: object) -> Fetcher:
        fetcher = original(kind, given, *others)
        if given is dataset:  # a loader within the dataset has fetchers of its own
            change(fetcher)
        return fetcher

    _DatasetKind.create_fetcher = staticmethod(create_fetcher)  # type: ignore[method-assign]


@contextmanager
def replaced_iterators(
    dataloader: ModuleType,
    following: Callable[[Callable[[TorchIterator], object]], Callable[[TorchIterator], object]],
    beginning: Callable[[Callable[..., None]], Callable[..., None]],
    restarting: Callable[[Callable[..., None]], Callable[..., None]] = lambda original: original,
) -> Iterator[None]:
    """Replace `__next__` and `__init__` of the iterators of PyTorch's module, and what begins one again."""
    from unittest.mock import patch  # loaded here: only `starvelab-doctor` replaces anything

    base, alone = dataloader._BaseDataLoaderIter, dataloader._SingleProcessDataLoaderIter
    several = dataloader._MultiProcessingDataLoaderIter
    with (
        patch.object(base, "__next__", following(base.__next__)),
        patch.object(alone, "__init__", beginning(alone.__init__)),
        patch.object(several, "__init__", beginning(several.__init__)),
        patch.object(several, "_reset", restarting(several._reset)),
    ):
        yield
