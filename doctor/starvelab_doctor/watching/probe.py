"""The probe of `watch`: which stage of a PyTorch `DataLoader` costs most, by timing a sample of its batches.

The loader keeps its dataset, its order, its random numbers and its workers; only `worker_init_fn` is another
one while they start. What calls the dataset and the collate function is replaced by one that looks at a clock
and changes nothing. From a worker the times travel with the batch: in the pickle that carries it there are
clocks beside it, which are read when they are packed and when they are unpacked, and the loop gets the batch
alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary, WeakValueDictionary

from starvelab.measure.batches import Batch
from starvelab.measure.devices import wait_for_device

from .. import torch_internals
from ..contents import Items, items_of
from ..finding.stages import StageCosts, StageSamples
from ..torch_internals import Fetcher, TorchIterator, TorchLoader

# Any: indices of whatever kind a sampler gives.
Index: TypeAlias = Any
SHARE = 0.05  # of the time, at most, for all that a probe does
PRELOADS = 5  # pickles that say what the clocks beside a batch cost
READS = 4  # times what it computes meanwhile, that the loop reads: the rest waits for a worker's thread
# Who wants the times of a batch, by the number that travels with it: a pickle can carry no object of this
# process. A probe that nobody holds any more is forgotten.
PROBES: WeakValueDictionary[int, Probe] = WeakValueDictionary()
_free_numbers = count(1)
# Workers that persist report to the number that they were started with, whoever goes over the loader.
_numbers: WeakKeyDictionary[TorchIterator, int] = WeakKeyDictionary()


class Budget:
    """Says when the next measurement may be made, so that all of them stay below a share of the time.

    The first one is expected to take `cost` seconds, and each later one what the one before took.
    """

    def __init__(self, share: float, cost: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.share, self.expected, self.clock = share, cost, clock
        self.begun, self.spent = clock(), 0.0

    def allows(self) -> bool:
        """True if the time that passed pays for one more measurement."""
        return self.spent + self.expected <= self.share * (self.clock() - self.begun)

    def spend(self, cost: float) -> None:
        """Count the seconds that a measurement took."""
        self.spent += cost
        self.expected = cost


class TimedFetch:
    """A fetcher's `fetch` that times a sample of its batches.

    `deliver` takes a batch and what the dataset and the collate function took for it [s], and returns what is
    given in place of the batch. The clocks beside it cost `handover` seconds.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        budget: Budget,
        deliver: Callable[[Batch, float, float], object],
        handover: float = 0.0,
    ) -> None:
        self.fetcher, self.original, self.budget = fetcher, fetcher.fetch, budget
        self.deliver, self.handover = deliver, handover
        self.items: Items | None = None  # that the dataset gave for the last batch that was timed
        self.first = True  # modules are loaded and files opened for it

    def __call__(self, index: Index) -> object:
        """Return what the fetcher returns for these indices."""
        if self.first or not self.budget.allows():
            self.first = False
            return self.original(index)
        begun = time.perf_counter()
        collate, spans = self.fetcher.collate_fn, [0.0, 0.0, 0.0]

        def timed(items: object) -> Batch:
            spans[0] = time.perf_counter()
            self.items = self.items or items_of(items, hasattr(self.fetcher.dataset, "__getitems__"))
            looked = time.perf_counter()
            batch = collate(items)
            spans[2] = looked - spans[0]
            spans[1] = time.perf_counter()
            return batch

        self.fetcher.collate_fn = timed
        asked = time.perf_counter()
        try:
            batch = self.original(index)
        finally:
            self.fetcher.collate_fn = collate
        items, collating = spans[0] - asked, spans[1] - spans[0] - spans[2]
        delivered = self.deliver(batch, items, collating)
        self.budget.spend(time.perf_counter() - begun - items - collating + self.handover)
        return delivered


@dataclass(frozen=True)
class TimedBatch:
    """A batch on its way to the loop, which unpacks the batch itself."""

    batch: Batch
    number: int  # of the probe that wants to know
    items: float  # what the dataset took [s]
    collate: float
    given: tuple[object, ...] | None = None  # its items

    def __reduce__(self) -> tuple[Callable[..., Batch], tuple[object, ...]]:
        # A pickler goes through this tuple in its order, and so does who reads it: the clocks before and
        # after the batch tell what packing and unpacking it takes.
        times = (self.number, self.items, self.collate, self.given)
        return _arrive, (_Packing(), _UNPACKING, self.batch, _Packing(), *times)


class _Packing:
    """When it is packed: seconds of the CPU of that thread, and on the clock that all processes share."""

    def __reduce__(self) -> tuple[type[tuple[float, ...]], tuple[tuple[float, float]]]:
        return tuple, ((time.thread_time(), time.monotonic()),)


class _Unpacking:
    """When it is unpacked."""

    def __reduce__(self) -> tuple[Callable[[], float], tuple[()]]:
        return time.monotonic, ()


_UNPACKING = _Unpacking()


def _arrive(
    begun: tuple[float, float],
    unpacking: float,
    batch: Batch,
    done: tuple[float, float],
    number: int,
    items: float,
    collate: float,
    given: tuple[int, bool, int, float] | None,
) -> Batch:
    """Called by the unpickler, in the process of the loop."""
    probe = PROBES.get(number)
    if probe is not None:
        probe.samples.items = Items(*given) if given else probe.samples.items
        probe.arrive(items, collate, done[0] - begun[0], done[1], unpacking, time.monotonic() - unpacking)
    return batch


def _handover_cost() -> float:
    """Return the seconds that the clocks beside a batch cost, on both sides together."""
    costs = []
    for _ in range(PRELOADS):
        begun = time.perf_counter()
        ForkingPickler.loads(ForkingPickler.dumps(TimedBatch(None, 0, 0.0, 0.0)))
        costs.append(time.perf_counter() - begun)
    return max(costs[1:])


@dataclass(frozen=True)
class TimingStart:
    """A `worker_init_fn` that makes a worker time its batches, after the user's own one."""

    own: Callable[[int], object] | None
    number: int  # of the probe that wants to know
    share: float  # of the time of all workers together, which timing may take

    def __call__(self, worker: int) -> None:
        """Called in the worker before it makes its fetcher."""
        if self.own is not None:
            self.own(worker)
        from torch.utils.data import get_worker_info

        information = get_worker_info()
        assert information is not None  # this is a worker
        handover = _handover_cost()
        budget = Budget(self.share / information.num_workers, handover)

        def change(fetcher: Fetcher) -> None:
            def deliver(batch: Batch, items: float, collate: float) -> TimedBatch:
                given = fetch.items and tuple(fetch.items)  # the class need not travel with each batch
                return TimedBatch(batch, self.number, items, collate, given)

            fetch = fetcher.fetch = TimedFetch(fetcher, budget, deliver, handover)

        torch_internals.change_fetchers(information.dataset, change)


class Probe:
    """Times a sample of the batches of one training loop.

    A sample of them is copied once more to `device`, where the loop copies its batches.
    """

    def __init__(self, device: object = None) -> None:
        self.device, self.samples, self.reason = device, StageSamples(), ""
        self.number = next(_free_numbers)
        PROBES[self.number] = self
        # Half of it is left for what batches cost that are not timed, and for what a clock does not see. The
        # other half is for what workers do, and for copies where there are any.
        self.share = SHARE / 2 if device is None else SHARE / 4
        self.copies = Budget(self.share)
        self.workers, self.stream, self.pinned = 0, False, False
        self.fetch: TimedFetch | None = None  # of a loader without workers
        self.asked = self.unpacked = self.computed = 0.0
        self.sampling: float | None = None  # seconds of the sampler since then; None for a first batch

    def source_of(self, loader: TorchLoader) -> TorchIterator:
        """Return the iterator of a loader, whose batches are timed where that is possible."""
        older = torch_internals.persistent_iterator(loader)
        with self.starting(loader):
            source = iter(loader)
        self.attach(source, loader.dataset if not self.reason else None, older=older)
        return source

    @contextmanager
    def starting(self, loader: TorchLoader) -> Iterator[None]:
        """Let workers that this loader starts meanwhile time their batches."""
        self.reason = _reason(loader)
        if self.reason:
            yield
            return
        start = partial(TimingStart, number=self.number, share=self.share)
        with torch_internals.workers_begin_with(loader, start):
            yield

    def attach(self, source: TorchIterator, dataset: object, *, older: TorchIterator | None = None) -> None:
        """Time an iterator that a loader made; `older` is the one that it had before, with its workers."""
        if self.reason:
            return
        if not torch_internals.is_iterator(source):
            self.reason = f"its iterator is a {type(source).__name__} and not PyTorch's own"
            return
        if source is older and source not in _numbers:
            self.reason = "its persistent workers had started before"
            return
        *_, self.workers = torch_internals.description_of(source)
        self.stream = torch_internals.is_iterable(dataset)
        self.pinned = torch_internals.is_pinned(source)  # then a thread unpacks
        torch_internals.time_indices(source, self._sampled)
        if source is older:
            PROBES[_numbers[source]] = self
        elif self.workers:
            _numbers[source] = self.number
        else:
            fetcher = torch_internals.fetcher_of(source)
            self.fetch = fetcher.fetch = TimedFetch(fetcher, Budget(self.share), self._prepared)

    def ask(self) -> None:
        """Note that the loop asks for a batch."""
        self.asked, self.computed, self.sampling = time.monotonic(), time.thread_time(), None

    def _sampled(self, seconds: float) -> None:
        self.sampling = (self.sampling or 0.0) + seconds

    def _prepared(self, batch: Batch, items: float, collate: float) -> Batch:
        self.samples.add(items, collate)
        self.samples.items = self.fetch.items if self.fetch is not None else None
        return batch

    def arrive(
        self, items: float, collate: float, packing: float, packed: float, unpacking: float, taken: float
    ) -> None:
        """Note a batch from a worker: seconds that its stages took, and when it was packed and unpacked."""
        # Where the loop asked later than that, the batch lay ready: how long its way was cannot be told.
        waited, reading = self.asked <= packed, 0.0
        if not waited and not self.pinned:
            # Then the loop did nothing else since, and a batch that is no tensor is long to read.
            computed = time.thread_time() - self.computed
            reading = min(max(unpacking - max(self.asked, self.unpacked), 0.0), READS * computed)
        self.samples.add(items, collate, packing, reading + taken)
        self.unpacked, self.computed = unpacking + taken, time.thread_time()

    def receive(self, batch: Batch) -> None:
        """Note that the loop has its batch."""
        if self.unpacked >= self.asked and not self.pinned:
            # What the loop does after unpacking, such as asking a worker for another batch.
            self.samples.finish(max(time.monotonic() - self.unpacked - (self.sampling or 0.0), 0.0))
        if self.sampling is not None:
            self.samples.draw(self.sampling)
        if self.device is not None and self.copies.allows():
            self._copy(batch)

    def _copy(self, batch: Batch) -> None:
        """Copy a batch to the device once more."""
        wait_for_device()  # what the loop ordered before is no part of the copy
        begun = time.perf_counter()
        if not _copied(batch, self.device):
            self.device = None
            return
        wait_for_device()
        taken = time.perf_counter() - begun
        self.samples.copies.append(taken)
        self.copies.spend(taken)

    def costs(self, release: float = 0.0) -> StageCosts:
        """Return what was found so far; the release of a batch takes the loop so many seconds."""
        return self.samples.costs(self.workers, stream=self.stream, reason=self.reason, release=release)


def _reason(loader: TorchLoader) -> str:
    """Return why a loader cannot be probed; empty if it can."""
    if not torch_internals.is_loader(loader):
        return f"a probe needs a PyTorch DataLoader, and this is a {type(loader).__name__}"
    return (
        "" if torch_internals.has_fetchers() else "this version of PyTorch has no fetcher that could be timed"
    )


def _copied(batch: Batch, device: object) -> bool:
    """Copy all that can be copied; return whether there was anything."""
    if hasattr(batch, "to"):
        batch.to(device)
        return True
    if isinstance(batch, Mapping):
        batch = list(batch.values())
    return isinstance(batch, list | tuple) and sum(_copied(part, device) for part in batch) > 0
