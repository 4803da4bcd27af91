"""Batches that are late, since workers deliver in order and have only so many ahead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MIN_TIMED = 48  # batches of which the times must be known, late ones among them; a choice
# Batches that are simulated, at least: a choice. What was timed is repeated until there are so many.
MAX_SIMULATED = 600
PREFETCHES = (2, 4, 8, 16)  # batches ahead of each worker that are worth a look; a choice
NEARLY = 1.02  # times the least lateness, which is as good; a choice


@dataclass(frozen=True)
class Lateness:
    """The milliseconds that a worker took for each of some batches, in their order.

    Batches are handed over in order, and a worker has only so many ahead. So one that takes long holds up the
    others, and so does a long step: workers are idle that are quick enough on average.
    """

    prepared: Sequence[float]
    prefetch: int  # batches that a worker has ahead
    uneven: Sequence[float] = ()  # what the loop takes for each over its mean, where that differs much

    def factor(self, workers: int, loop: float, prefetch: int | None = None) -> float:
        """Return how many times as long a batch takes as if all were alike; the loop's own time is in ms."""
        if not workers or len(self.prepared) < MIN_TIMED:
            return 1.0
        alike = max(sum(self.prepared) / len(self.prepared) / workers, loop)
        return max(self._period(workers, loop, prefetch or self.prefetch) / alike, 1.0)

    def _period(self, workers: int, loop: float, prefetch: int) -> float:
        done, taken, now = [0.0] * workers, [0.0] * (workers * prefetch), 0.0
        turns = -(-MAX_SIMULATED // len(self.prepared))
        times = [*self.prepared] * turns
        steps = [loop * each for each in self.uneven or (1.0,)]
        for number, time in enumerate(times):
            worker, place = number % workers, number % len(taken)
            # A batch is asked for when the one so many places before it was taken.
            done[worker] = max(done[worker], taken[place]) + time
            taken[place] = max(now, done[worker])
            now = taken[place] + steps[number % len(steps)]
        return now / len(times)

    def best_prefetch(self, workers: int, loop: float) -> int:
        """Return the fewest batches ahead that bring nearly all that more of them would."""
        factors = {each: self.factor(workers, loop, each) for each in (self.prefetch, *PREFETCHES)}
        least = min(factors.values())
        return next(each for each in sorted(factors) if factors[each] <= NEARLY * least)
