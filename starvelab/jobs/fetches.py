"""What a batch takes where it is prepared: a sample of batches is timed, in the workers themselves.

PyTorch's fetcher is what calls the dataset and the collate function. It is replaced by one that looks at a
clock and changes nothing. From a worker the times travel with the batch: in the pickle that carries it there
are clocks beside it, which are read when they are packed and when they are unpacked, and the loop gets the
batch alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakValueDictionary

from ..measure.protocols import Batch
from .budget import Budget

if TYPE_CHECKING:
    from .probe import Probe

# Any: PyTorch's own object, of which private parts are used; and indices of whatever kind a sampler gives.
Fetcher: TypeAlias = Any
Index: TypeAlias = Any

REHEARSALS = 5  # pickles that say what the clocks beside a batch cost

# Who wants the times of a batch, by the number that travels with it: a pickle can carry no object of this
# process. A probe that nobody holds any more is forgotten.
PROBES: WeakValueDictionary[int, Probe] = WeakValueDictionary()
_numbers = count(1)


def register(probe: Probe) -> int:
    """A number by which batches that come from workers find this probe."""
    number = next(_numbers)
    PROBES[number] = probe
    return number


class TimedFetch:
    """A fetcher's `fetch` that times a sample of its batches.

    Parameters
    ----------
    fetcher : object
        PyTorch's.
    budget : Budget
    deliver : callable
        Takes a batch and what the dataset and the collate function took for it [s], and gives what is
        returned in place of the batch.
    handover : float
        Seconds that the clocks beside a batch cost.
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
        self.first = True  # modules are loaded and files opened for it

    def __call__(self, index: Index) -> object:
        """What the fetcher returns for these indices."""
        if self.first or not self.budget.allows():
            self.first = False
            return self.original(index)
        begun = time.perf_counter()
        collate, spans = self.fetcher.collate_fn, [0.0, 0.0]

        def timed(items: object) -> Batch:
            spans[0] = time.perf_counter()
            batch = collate(items)
            spans[1] = time.perf_counter()
            return batch

        self.fetcher.collate_fn = timed
        asked = time.perf_counter()
        try:
            batch = self.original(index)
        finally:
            self.fetcher.collate_fn = collate
        items, collating = spans[0] - asked, spans[1] - spans[0]
        delivered = self.deliver(batch, items, collating)
        self.budget.spend(time.perf_counter() - begun - items - collating + self.handover)
        return delivered


@dataclass(frozen=True)
class TimedBatch:
    """A batch on its way to the loop, which unpacks the batch itself.

    Attributes
    ----------
    batch : object
    number : int
        Of the probe that wants to know.
    items, collate : float
        What the dataset and the collate function took [s].
    """

    batch: Batch
    number: int
    items: float
    collate: float

    def __reduce__(self) -> tuple[Callable[..., Batch], tuple[object, ...]]:
        # A pickler goes through this tuple in its order, and so does who reads it: the clocks before and
        # after the batch tell what packing and unpacking it takes.
        times = (self.number, self.items, self.collate)
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
) -> Batch:
    """Called by the unpickler, in the process of the loop."""
    probe = PROBES.get(number)
    if probe is not None:
        probe.arrived(items, collate, done[0] - begun[0], done[1], unpacking, time.monotonic() - unpacking)
    return batch


def handover_cost() -> float:
    """Seconds that the clocks beside a batch cost, on both sides together."""
    costs = []
    for _ in range(REHEARSALS):
        begun = time.perf_counter()
        ForkingPickler.loads(ForkingPickler.dumps(TimedBatch(None, 0, 0.0, 0.0)))
        costs.append(time.perf_counter() - begun)
    return max(costs[1:])


@dataclass(frozen=True)
class TimingStart:
    """A `worker_init_fn` that makes a worker time its batches, after the user's own one.

    Attributes
    ----------
    own : callable or None
        The user's.
    number : int
        Of the probe that wants to know.
    share : float
        Of the time of all workers together, which timing may take.
    """

    own: Callable[[int], object] | None
    number: int
    share: float

    def __call__(self, worker: int) -> None:
        """Called in the worker before it makes its fetcher."""
        if self.own is not None:
            self.own(worker)
        from torch.utils.data import _DatasetKind, get_worker_info

        information = get_worker_info()
        assert information is not None  # this is a worker
        dataset, handover = information.dataset, handover_cost()
        original: Callable[..., Fetcher] = _DatasetKind.create_fetcher
        budget = Budget(self.share / information.num_workers, handover)

        def deliver(batch: Batch, items: float, collate: float) -> TimedBatch:
            return TimedBatch(batch, self.number, items, collate)

        def create_fetcher(kind: int, given: object, *others: object) -> Fetcher:
            fetcher = original(kind, given, *others)
            if given is dataset:  # a loader within the dataset has fetchers of its own
                fetcher.fetch = TimedFetch(fetcher, budget, deliver, handover)
            return fetcher

        _DatasetKind.create_fetcher = staticmethod(create_fetcher)  # type: ignore[method-assign]
