"""How much faster several workers prepare than one: the universal scalability law."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, sqrt

from ..units import Number
from .cost import minimum
from .inputs import Inputs


@dataclass(frozen=True)
class WorkerScaling(Inputs):
    """Gunther's law, ``n / (1 + contention (n - 1) + coherency n (n - 1))``; both zero is linear scaling.

    Notes
    -----
    Past its peak the law falls; `speedup` stays at the peak, since nobody starts workers that slow the others
    down.
    """

    contention: Number
    coherency: Number

    @property
    def peak_workers(self) -> Number:
        """The number of workers past which more of them do not help; infinite if there is none."""
        if self.coherency == 0:
            return inf
        # One more worker helps the first n as long as n (n + 1) < (1 - contention) / coherency.
        return max(1, ceil(sqrt((1 - self.contention) / self.coherency + 0.25) - 0.5))

    def speedup(self, workers: Number) -> Number:
        """How many times one worker's rate that many reach; keeps the shape and the kind of number."""
        n = minimum(workers, self.peak_workers)
        return n / (1 + self.contention * (n - 1) + self.coherency * n * (n - 1))
