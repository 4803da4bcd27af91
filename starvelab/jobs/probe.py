"""The probe of `watch`: which stage of a PyTorch `DataLoader` costs most, by timing a sample of its batches.

The loader keeps its dataset, its order, its random numbers and its workers; only `worker_init_fn` is another
one while they start.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from ..measure.datasets import is_stream
from ..measure.protocols import Batch
from ..measure.training_step import cuda_in_use
from .budget import Budget
from .fetches import PROBES, TimedFetch, TimingStart, register
from .stages import StageCosts, StageSamples

# Any: loaders and iterators of whatever kind; those of PyTorch are recognized before they are used.
AnyLoader: TypeAlias = Any
AnyIterator: TypeAlias = Any

SHARE = 0.05  # of the time, at most, for all that a probe does

# Workers that persist report to the number that they were started with, whoever goes over the loader.
_numbers: WeakKeyDictionary[AnyIterator, int] = WeakKeyDictionary()


class Probe:
    """Times a sample of the batches of one training loop.

    Parameters
    ----------
    device : str, optional
        Where the loop copies its batches; a sample of them is copied there once more.
    """

    def __init__(self, device: object = None) -> None:
        self.device, self.samples, self.reason = device, StageSamples(), ""
        self.number = register(self)
        # Half of it is left for what batches cost that are not timed, and for what a clock does not see. The
        # other half is for what workers do, and for copies where there are any.
        self.share = SHARE / 2 if device is None else SHARE / 4
        self.copies = Budget(self.share)
        self.workers, self.stream = 0, False
        self.pinned = False
        self.asked = self.unpacked = 0.0

    def source_of(self, loader: AnyLoader) -> AnyIterator:
        """The iterator of a loader, whose batches are timed where that is possible."""
        older = getattr(loader, "_iterator", None)
        with self.starting(loader):
            source = iter(loader)
        self.attach(source, loader.dataset if not self.reason else None, older=older)
        return source

    @contextmanager
    def starting(self, loader: AnyLoader) -> Iterator[None]:
        """Workers that this loader starts meanwhile time their batches."""
        self.reason = _reason(loader)
        if self.reason:
            yield
            return
        own = loader.worker_init_fn
        loader.worker_init_fn = TimingStart(own, self.number, self.share)
        try:
            yield
        finally:
            loader.worker_init_fn = own

    def attach(self, source: AnyIterator, dataset: object, *, older: AnyIterator = None) -> None:
        """The iterator that a loader made; `older` is the one that it had before, with its workers."""
        if self.reason:
            return
        if not _is_of_torch(source):
            self.reason = f"its iterator is a {type(source).__name__} and not PyTorch's own"
            return
        if source is older and source not in _numbers:
            self.reason = "its persistent workers had started before"
            return
        self.workers, self.stream = source._num_workers, is_stream(dataset)
        self.pinned = source._pin_memory  # then a thread unpacks
        if source is older:
            PROBES[_numbers[source]] = self
        elif self.workers:
            _numbers[source] = self.number
        else:
            fetcher = source._dataset_fetcher
            fetcher.fetch = TimedFetch(fetcher, Budget(self.share), self._prepared)

    def asks(self) -> None:
        """The loop asks for a batch."""
        self.asked = time.monotonic()

    def _prepared(self, batch: Batch, items: float, collate: float) -> Batch:
        self.samples.add(items, collate)
        return batch

    def arrived(
        self, items: float, collate: float, packing: float, packed: float, unpacking: float, taken: float
    ) -> None:
        """A batch came from a worker: seconds that its stages took, and when it was packed and unpacked."""
        # Where the loop asked later than that, the batch lay ready: how long its way was cannot be told.
        waited, reading = self.asked <= packed, 0.0
        if not waited and not self.pinned:
            # Then the loop did nothing else since, and a batch that is no tensor is long to read.
            reading = max(unpacking - max(self.asked, self.unpacked), 0.0)
        self.samples.add(items, collate, packing, reading + taken, unpacking - packed if waited else None)
        self.unpacked = unpacking + taken

    def received(self, batch: Batch) -> None:
        """The loop has its batch."""
        if self.unpacked >= self.asked and not self.pinned:
            # What the loop does after unpacking, such as asking a worker for another batch.
            self.samples.finish(time.monotonic() - self.unpacked)
        self.copy(batch)

    def copy(self, batch: Batch) -> None:
        """Copy a batch to the device once more, if its turn has come."""
        if self.device is None or not self.copies.allows():
            return
        _wait_for_device()  # what the loop ordered before is no part of the copy
        begun = time.perf_counter()
        if not _copied(batch, self.device):
            self.device = None
            return
        _wait_for_device()
        taken = time.perf_counter() - begun
        self.samples.copies.append(taken)
        self.copies.spend(taken)

    def costs(self) -> StageCosts:
        """What was found so far."""
        return self.samples.costs(self.workers, stream=self.stream, reason=self.reason)


def _reason(loader: AnyLoader) -> str:
    """Why a loader cannot be probed; empty if it can."""
    data = sys.modules.get("torch.utils.data")
    if data is None or not isinstance(loader, data.DataLoader):
        return f"a probe needs a PyTorch DataLoader, and this is a {type(loader).__name__}"
    if not hasattr(getattr(data, "_DatasetKind", None), "create_fetcher"):
        return "this version of PyTorch has no fetcher that could be timed"
    return ""


def _is_of_torch(source: object) -> bool:
    dataloader = sys.modules.get("torch.utils.data.dataloader")
    return dataloader is not None and isinstance(source, dataloader._BaseDataLoaderIter)


def _wait_for_device() -> None:
    cuda = cuda_in_use()
    if cuda is not None:
        cuda.synchronize()


def _copied(batch: Batch, device: object) -> bool:
    """Copy all that can be copied; whether there was anything."""
    if hasattr(batch, "to"):
        batch.to(device)
        return True
    if isinstance(batch, Mapping):
        batch = list(batch.values())
    if isinstance(batch, list | tuple):
        copied = [_copied(part, device) for part in batch]
        return any(copied)
    return False
