"""Ranks that end each step together: the accelerator waits for the slowest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import erfc, log1p, sqrt

import numpy as np

from ...units import Number
from ..costs import Cost, Inputs
from ..resources import ACCELERATOR
from .stage import StageModel

# Where the standard normal distribution is integrated, and its distribution function there.
_Z = np.linspace(-9, 14, 1151)
_BELOW = np.array([erfc(-z / sqrt(2)) / 2 for z in _Z])
_WEIGHT = np.exp(-(_Z**2) / 2) / sqrt(2 * np.pi) * (_Z[1] - _Z[0])


@lru_cache(maxsize=4096)
def mean_of_largest(count: int, spread: float) -> float:
    """The mean of the largest of so many lognormal numbers of mean 1 and standard deviation `spread`."""
    # The order statistic: the integral of n x(z) phi(z) Phi(z)^(n - 1) with x(z) = exp(s z - s^2 / 2).
    sigma = sqrt(log1p(spread**2))
    return float(np.exp(sigma * _Z - sigma**2 / 2) @ (count * _WEIGHT * _BELOW ** (count - 1)))


@dataclass(frozen=True)
class BarrierInputs(Inputs):
    """How much longer the slowest of all ranks takes than their mean, as a share of it."""

    lag: Number


class BarrierModel(StageModel[BarrierInputs]):
    """A step takes ``E[max over ranks]`` of what scatters in it: the mean of the largest of so many times.

    Ranks are all accelerators of all hosts, whose times are lognormal and independent. What one waits for is
    that mean less its own (David, Nagaraja: Order Statistics, 2003, ch. 3).
    """

    NAME, RESOURCE, NEEDS, AWAITED = "barrier", ACCELERATOR, ("rank_spread",), "the barrier"

    @staticmethod
    def resolve(*, hosts: Number, accelerators: Number, rank_spread: float) -> BarrierInputs | None:
        """The formula's numbers from the fields of a pipeline."""
        ranks = hosts * accelerators
        if np.ndim(ranks):
            return BarrierInputs(np.vectorize(mean_of_largest)(ranks, rank_spread) - 1)
        return BarrierInputs(mean_of_largest(int(ranks), rank_spread) - 1) if ranks > 1 else None

    @staticmethod
    def cost(inputs: BarrierInputs, scattered: Cost) -> Cost:  # type: ignore[override]
        """``lag scattered``: a share of what the accelerator itself takes."""
        waits: Cost = scattered * inputs.lag
        return waits
