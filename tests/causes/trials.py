"""What the experiments on causes share."""

from __future__ import annotations

from starvelab.simulate import Loader, simulate
from starvelab.units import Unchecked

__all__ = ["SEEDS", "busy", "gap", "rate", "same"]

# Chance is tried as often: what holds in one run may be luck.
SEEDS = range(8)


def busy(loader: Loader, seed: int = 0, **changes: Unchecked) -> float:
    """Return the accelerator's busy share of a loader with some changes, over 400 batches."""
    return simulate(loader.replace(**changes), batches=400, seed=seed, warm_up=20).utilization


def rate(loader: Loader, seed: int = 0, **changes: Unchecked) -> float:
    """Return the samples that it trains on in a second."""
    found = simulate(loader.replace(**changes), batches=400, seed=seed, warm_up=20)
    return float(found.throughput.m_as("img/s"))


def gap(loader: Loader, **changes: Unchecked) -> float:
    """Return the longest wait of the accelerator between two steps [ms], after the warm-up."""
    trace = simulate(loader.replace(**changes), batches=400).trace().after(20)
    return float((trace.step_start[1:] - trace.step_end[:-1]).max())


def same(one: float, other: float, within: float = 0.01) -> bool:
    """Return True where two numbers differ by a hundredth at most."""
    return abs(one - other) <= within * max(abs(one), abs(other))
