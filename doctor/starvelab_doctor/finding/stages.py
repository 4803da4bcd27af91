"""Which stage of a loader costs most, from the times of a sample of its batches.

It takes times and knows of no loader.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from starvelab.measure.verdict import SLIGHT
from starvelab.tables import percent
from starvelab.units import Q_, Quantity, format_quantity

from ..contents import Items
from ..shares import MIN_BATCHES, share_of

# Milliseconds in which the loop receives a batch from a worker, where that was not timed, and its range: on a
# machine of two cores PyTorch took 1.5 to 2 ms for a batch of one tensor.
RECEIVE, RECEIVE_RANGE = 2.0, (0.3, 4.0)
SAMPLER, DATASET, COLLATE, HANDOVER = "sampler", "dataset", "collate", "hand-over"
NAMES = {
    SAMPLER: "the sampler, in the training loop",
    DATASET: "the dataset",
    COLLATE: "collating (collate_fn)",
    HANDOVER: "the hand-over to the loop",
}
_times = partial(deque[float], maxlen=100_000)  # seconds of batches that were timed; older ones are forgotten
MAX_PREPARED = 600  # batches whose times are kept one by one
MANY_OBJECTS = 16  # of a batch: each of them is handed over on its own
LARGE = 1e6  # bytes of a batch from which on their number matters


@dataclass(frozen=True, kw_only=True)
class StageCosts:
    """The costs of the stages of a loader.

    Attributes
    ----------
    costs : mapping of str to quantity [time]
        For each stage that was timed what it keeps the workers, for one batch and shared by all of them, and
        what it keeps the loop itself: sampler (where it takes 5 % of the others or more), dataset
        (`__getitem__` of all samples), collate, hand-over.
    shares : mapping of str to float
        Of all costs, 0 to 1.
    certain : bool
        Whether enough batches were timed, and the largest stage is the largest with 95 % confidence.
    timed : int
        Batches that were timed.
    prepared : tuple of float
        Milliseconds that a worker took for each of the last batches that were timed, in their order.
    items : Items or None
        What the dataset gives; None where that was not looked at.
    receiving : quantity [time] or None
        What the loop itself spends of the hand-over; None without workers.
    """

    costs: Mapping[str, Quantity]
    shares: Mapping[str, float]
    certain: bool
    timed: int
    prepared: tuple[float, ...] = ()
    items: Items | None = None
    receiving: Quantity | None = None

    @property
    def largest(self) -> str:
        """The stage that costs most; empty where nothing was timed."""
        return max(self.shares, key=self.shares.__getitem__, default="")

    @property
    def summary(self) -> str:
        """Say what the stages take, the largest first."""
        if self.timed < MIN_BATCHES:
            return (
                f"Cannot tell which stage costs most: only {self.timed} batches were timed, and "
                f"{MIN_BATCHES} are needed."
            )
        shares = sorted(self.shares.items(), key=lambda item: -item[1])
        parts = [f"{NAMES[stage]} {percent(share)}" for stage, share in shares if share >= SLIGHT]
        parts[0] += f" ({format_quantity(self.costs[self.largest])})"
        doubt = "" if self.certain else " Which of the first two is larger is not certain."
        return f"Stages of a batch: {', '.join(parts)}.{doubt}"


class StageSamples:
    """The times of the batches that were timed [s]."""

    def __init__(self) -> None:
        # Of each batch what it takes in the dataset and to collate, to pack and to unpack.
        self.batches = tuple(_times() for _ in range(4))
        self.indices = _times()  # what the sampler takes for a batch
        self.items: Items | None = None

    def add(self, items: float, collate: float, packing: float = 0.0, unpacking: float = 0.0) -> None:
        """Add a batch."""
        for times, seconds in zip(self.batches, (items, collate, packing, unpacking), strict=True):
            times.append(seconds)

    def costs(self, workers: int) -> StageCosts:
        """Return what was found so far, of a loader with so many workers."""
        # Copies first: a thread may add a batch meanwhile.
        timed = min(map(len, self.batches))
        items, collate, packing, unpacking = (np.array(times)[:timed] for times in self.batches)
        each = max(workers, 1)
        times = {DATASET: items / each, COLLATE: collate / each}
        if workers:
            times[HANDOVER] = packing / each + unpacking
        indices = np.array(self.indices)
        if timed and len(indices) and indices.mean() >= SLIGHT * sum(map(np.mean, times.values())):
            times[SAMPLER] = indices
        means = {stage: float(np.mean(seconds)) for stage, seconds in times.items()} if timed else {}
        *_, second, first = sorted(times.values(), key=np.sum)
        rest = second[: len(first)] + first[: len(second)]
        lead = share_of(first[: len(rest)], rest, np.ones(len(rest), dtype=bool))
        return StageCosts(
            costs={stage: Q_(1e3 * mean, "ms") for stage, mean in means.items()},
            shares={stage: mean / max(sum(means.values()), 1e-12) for stage, mean in means.items()},
            certain=timed >= MIN_BATCHES and lead.interval[0] > 1 / 2,
            timed=timed,
            receiving=Q_(1e3 * float(np.mean(unpacking)), "ms") if workers and timed else None,
            prepared=tuple((1e3 * (items + collate + packing))[-MAX_PREPARED:].tolist()),
            items=self.items,
        )
