"""Shares of a job's time with their 95 % intervals."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

MIN_BATCHES = 8  # of fewer batches the spread says nothing
# A step that is this many times as long as the median holds something else: an evaluation, a checkpoint.
INTERRUPTION = 20
# Only rare steps may be left out; and where most steps do nothing, as in a loop that collects batches to
# train on several at once, the long ones are the training.
MAX_INTERRUPTIONS = 0.1
MIN_STEP = 2e-4  # seconds
CHANGED = 0.1  # by so much of the time a pass waits more or less than the later ones before it is left out
BLOCKS, RESAMPLES = 50, 1000
QUANTILES = (0.025, 0.975)  # the ends of a 95 % interval
# Standard deviation of the means of runs of one job that nothing else disturbs: benchmarks.compare; and the
# share by which those of two such runs differ at most, with that confidence.
RUNS = 0.015
NORMAL = NormalDist().inv_cdf(QUANTILES[1])  # standard deviations on each side of a mean
APART = NORMAL * RUNS * 2**0.5


@dataclass(frozen=True)
class Share:
    """A share of the time, 0 to 1, with its 95 % interval, and what was left out of it."""

    value: float
    interval: tuple[float, float]
    counted: int
    seconds: float  # of what is counted
    interruptions: int
    interrupted: float


def without_interruptions(lengths: np.ndarray) -> np.ndarray:
    """Return which steps are ordinary ones, and no rare ones that are many times as long as the median."""
    usual = float(np.median(lengths)) if len(lengths) else 0.0
    ordinary = lengths <= INTERRUPTION * usual
    if usual < MIN_STEP or np.mean(~ordinary) > MAX_INTERRUPTIONS:
        return np.ones(len(lengths), dtype=bool)
    return ordinary


def share_of(parts: np.ndarray, lengths: np.ndarray, ordinary: np.ndarray, burst: int = 1) -> Share:
    """Return the share of the time that the parts take of the `ordinary` lengths, with a bootstrap interval.

    Batches come in bursts, which is how several workers deliver: blocks are multiples of them.
    """
    used, whole, interval = parts[ordinary], lengths[ordinary], (0.0, 1.0)
    total = float(whole.sum())
    if total:
        # Neighbors resemble each other, so blocks of them are drawn and not single batches.
        each = -(-max(len(whole) // BLOCKS, 1) // burst) * burst
        if len(whole) < 4 * each:
            each = max(len(whole) // BLOCKS, 1)
        starts = np.arange(0, len(whole), each)
        blocks = np.stack([np.add.reduceat(used, starts), np.add.reduceat(whole, starts)])
        drawn = np.random.default_rng(0).integers(len(starts), size=(RESAMPLES, len(starts)))
        sums = blocks[:, drawn].sum(axis=2)
        low, high = np.quantile(sums[0] / np.maximum(sums[1], 1e-12), QUANTILES)
        interval = float(low), float(high)
    return Share(
        float(used.sum()) / total if total else 0.0,
        interval,
        len(used),
        total,
        int(np.sum(~ordinary)),
        float(lengths[~ordinary].sum()),
    )


def unsettled(numbers: np.ndarray, waits: np.ndarray, steps: np.ndarray, burst: int) -> list[float]:
    """Return the shares waited of the passes at the beginning that differ from all later ones."""

    def share(those: np.ndarray) -> Share:
        return share_of(waits[those], (waits + steps)[those], without_interruptions(steps[those]), burst)

    left_out: list[float] = []
    for number in np.unique(numbers):
        first, later = share(numbers == number), share(numbers > number)
        alike = first.interval[0] <= later.interval[1] and later.interval[0] <= first.interval[1]
        few = min(first.counted, later.counted) < MIN_BATCHES
        if few or alike or abs(first.value - later.value) < CHANGED:
            break
        left_out.append(first.value)
    return left_out


def blocks_of(seconds: np.ndarray, count: int = BLOCKS) -> np.ndarray:
    """Return the means of neighbors, which resemble each other, in at most so many blocks."""
    blocks = np.array_split(seconds, max(min(len(seconds), count), 1))
    return np.array([block.mean() for block in blocks if len(block)])
