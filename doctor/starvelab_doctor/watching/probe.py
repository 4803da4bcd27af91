"""The probe of `watch`: which stage of a PyTorch `DataLoader` costs most, by timing a sample of its batches.

The loader keeps its dataset, its order, its random numbers and its workers; only `worker_init_fn` is another
one while they start. What calls the dataset and the collate function is replaced by one that looks at a clock
and changes nothing. From a worker the times travel with the batch, in the pickle that carries it: packing and
unpacking it are timed there, and the loop gets the batch alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from starvelab.measure.batches import Batch

from .. import torch_internals
from ..contents import Items, items_of
from ..finding.stages import StageCosts, StageSamples
from ..torch_internals import Fetcher, TorchIterator, TorchLoader

# Any: indices of whatever kind a sampler gives.
Index: TypeAlias = Any
# Of the time, at most, for batches that are timed. As much is left for what the others cost, and for what a
# clock does not see: a probe takes 5 %.
SHARE = 0.025
CARRYING = 1e-4  # seconds that the clocks beside a batch cost, on both sides together
# Who wants the times of a batch, by the number that travels with it: a pickle can carry no object of this
# process. A probe that nobody holds any more is forgotten.
PROBES: WeakValueDictionary[int, Probe] = WeakValueDictionary()
_free_numbers = count(1)


class TimedFetch:
    """A fetcher's `fetch` that times a sample of its batches.

    `deliver` takes a batch, what the dataset and the collate function took for it [s], and what its items
    are. It returns what is given in place of the batch.
    """

    def __init__(
        self, fetcher: Fetcher, share: float, deliver: Callable[[Batch, float, float, Items | None], object]
    ) -> None:
        self.fetcher, self.original, self.deliver = fetcher, fetcher.fetch, deliver
        self.share, self.next = share, 0.0  # of the time, and the moment from which on a batch is timed
        self.items: Items | None = None  # that the dataset gave for the first batch that was timed
        self.first = True  # modules are loaded and files opened for it

    def __call__(self, index: Index) -> object:
        """Return what the fetcher returns for these indices."""
        if self.first or time.perf_counter() < self.next:
            self.first = False
            return self.original(index)
        collate, moments = self.fetcher.collate_fn, [time.perf_counter()]

        def timed(items: object) -> Batch:
            moments.append(time.perf_counter())
            self.items = self.items or items_of(items, hasattr(self.fetcher.dataset, "__getitems__"))
            moments.append(time.perf_counter())
            batch = collate(items)
            moments.append(time.perf_counter())
            return batch

        self.fetcher.collate_fn = timed
        try:
            batch = self.original(index)
        finally:
            self.fetcher.collate_fn = collate
        asked, given, collates, collated = moments
        delivered = self.deliver(batch, given - asked, collated - collates, self.items)
        # What this one cost is paid for before the next one.
        self.next = asked + (time.perf_counter() - collated + collates - given + CARRYING) / self.share
        return delivered


@dataclass(frozen=True)
class TimedBatch:
    """A batch on its way to the loop, which unpacks the batch itself."""

    batch: Batch
    number: int  # of the probe that wants to know
    items: float  # what the dataset took [s]
    collate: float
    given: Items | None = None

    def __reduce__(self) -> tuple[Callable[..., Batch], tuple[object, ...]]:
        begun = time.thread_time()
        packed = bytes(ForkingPickler.dumps(self.batch))
        times = self.items, self.collate, time.thread_time() - begun, self.given
        return _arrive, (packed, self.number, *times)


def _arrive(
    packed: bytes,
    number: int,
    items: float,
    collate: float,
    packing: float,
    given: Items | None,
) -> Batch:
    """Called by the unpickler, in the process of the loop."""
    begun, batch = time.monotonic(), ForkingPickler.loads(packed)
    if (probe := PROBES.get(number)) is not None:
        probe.samples.items = given or probe.samples.items
        probe.arrive(items, collate, packing, begun, time.monotonic() - begun)
    return batch


def time_worker(worker: Any, number: int, share: float) -> None:  # Any: what PyTorch says of it
    """Let a worker time batches for a probe, in its part of the share of the time that all may take."""

    def deliver(batch: Batch, items: float, collate: float, given: Items | None) -> TimedBatch:
        return TimedBatch(batch, number, items, collate, given)

    def change(fetcher: Fetcher) -> None:
        fetcher.fetch = TimedFetch(fetcher, share / worker.num_workers, deliver)

    torch_internals.change_fetchers(worker.dataset, change)


class Probe:
    """Times a sample of the batches of one training loop."""

    def __init__(self) -> None:
        self.samples, self.number = StageSamples(), next(_free_numbers)
        PROBES[self.number] = self
        self.workers, self.pinned = 0, False
        self.asked = self.unpacked = 0.0
        self.sampling: float | None = None  # seconds of the sampler since then; None for a first batch

    @contextmanager
    def starting(self, iterator: TorchIterator, loader: TorchLoader) -> Iterator[None]:
        """Time the batches of an iterator that a loader makes meanwhile, in the workers that it starts."""
        start = partial(time_worker, number=self.number, share=SHARE)
        with torch_internals.workers_begin_with(loader, start):
            yield
        *_, self.workers = torch_internals.description_of(iterator)
        self.pinned = torch_internals.is_pinned(iterator)  # then a thread unpacks
        torch_internals.time_indices(iterator, self._sampled)
        if not self.workers:
            fetcher = torch_internals.fetcher_of(iterator)
            fetcher.fetch = TimedFetch(fetcher, SHARE, self._prepared)

    def ask(self) -> None:
        """Note that the loop asks for a batch."""
        self.asked, self.sampling = time.monotonic(), None

    def _sampled(self, seconds: float) -> None:
        self.sampling = (self.sampling or 0.0) + seconds

    def _prepared(self, batch: Batch, items: float, collate: float, given: Items | None) -> Batch:
        self.samples.add(items, collate)
        self.samples.items = given
        return batch

    def arrive(self, items: float, collate: float, packing: float, unpacking: float, taken: float) -> None:
        """Note a batch from a worker: seconds that its stages took, and when it was unpacked."""
        self.samples.add(items, collate, packing, taken)
        self.unpacked = unpacking + taken

    def receive(self) -> None:
        """Note that the loop has its batch."""
        if self.unpacked >= self.asked and not self.pinned:
            # What the loop does after unpacking, such as asking a worker for another batch.
            beyond = time.monotonic() - self.unpacked - (self.sampling or 0.0)
            self.samples.batches[3][-1] += max(beyond, 0.0)
        if self.sampling is not None:
            self.samples.indices.append(self.sampling)

    def costs(self) -> StageCosts:
        """Return what was found so far."""
        return self.samples.costs(self.workers)
