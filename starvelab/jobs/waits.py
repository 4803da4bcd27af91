"""The waits of a training loop and the steps after them, with what they amount to.

It takes times and knows nothing of loaders or devices.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np

# Older batches than these are forgotten, so that a run of weeks takes no more than 16 MB.
MAX_KEPT = 500_000
# A step that is this many times as long as the median holds something else: an evaluation, a checkpoint.
INTERRUPTION = 20
# Only rare steps may be left out; and where most steps do nothing, as in a loop that collects batches to
# train on several at once, the long ones are the training.
MAX_INTERRUPTIONS = 0.1
MIN_STEP = 2e-4  # seconds

BLOCKS, RESAMPLES, CONFIDENCE = 50, 1000, 0.95


class Waits:
    """Each wait for a batch and the step after it [s]."""

    def __init__(self) -> None:
        self.waits, self.steps = array("d"), array("d")
        # The first batch of a pass stands apart: workers start, and nothing was prepared before.
        self.first: list[float] = []
        self.batches = 0  # all that were delivered, those that do not count as well

    def add(self, wait: float, step: float) -> None:
        """The wait for a batch, and the step that used it."""
        self.waits.append(wait)
        self.steps.append(step)
        if len(self.waits) >= 2 * MAX_KEPT:
            del self.waits[:MAX_KEPT], self.steps[:MAX_KEPT]

    def pairs(self, last: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Waits and steps [s], of the last so many batches or of all."""
        # A copy: while numpy looks at an array's memory, the array cannot grow.
        start = 0 if last is None else max(0, len(self.steps) - last)
        steps = np.array(self.steps[start:])
        return np.array(self.waits[start:])[: len(steps)], steps


class Mean:
    """The mean of numbers that come one by one."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, number: float) -> None:
        """Count one more."""
        self.total += number
        self.count += 1

    @property
    def value(self) -> float | None:
        """The mean; None without numbers."""
        return self.total / self.count if self.count else None


@dataclass(frozen=True)
class Share:
    """A share of the time, 0 to 1, with its 95 % interval, and what was left out of it."""

    value: float
    interval: tuple[float, float]
    counted: int
    interruptions: int
    interrupted: float


def without_interruptions(lengths: np.ndarray) -> np.ndarray:
    """Whether each step is an ordinary one: not a rare one that is many times as long as the median."""
    usual = float(np.median(lengths)) if len(lengths) else 0.0
    ordinary = lengths <= INTERRUPTION * usual
    if usual < MIN_STEP or np.mean(~ordinary) > MAX_INTERRUPTIONS:
        return np.ones(len(lengths), dtype=bool)
    return ordinary


def share_of(parts: np.ndarray, lengths: np.ndarray, ordinary: np.ndarray, burst: int = 1) -> Share:
    """Which share of the time the parts take, with a bootstrap interval.

    Parameters
    ----------
    parts, lengths : array of float
        Seconds that were waited for each batch, and seconds from batch to batch, waiting included.
    ordinary : array of bool
        Which batches count.
    burst : int
        Batches that come together, which is how several workers deliver: blocks are multiples of it.
    """
    used, whole = parts[ordinary], lengths[ordinary]
    total = float(whole.sum())
    value = float(used.sum()) / total if total else 0.0
    return Share(
        value,
        _interval(used, whole, burst) if total else (0.0, 1.0),
        len(used),
        int(np.sum(~ordinary)),
        float(lengths[~ordinary].sum()),
    )


def _interval(used: np.ndarray, whole: np.ndarray, burst: int) -> tuple[float, float]:
    # Neighbors resemble each other, so blocks of them are drawn and not single batches.
    each = -(-max(len(whole) // BLOCKS, 1) // burst) * burst
    if len(whole) < 4 * each:
        each = max(len(whole) // BLOCKS, 1)
    starts = np.arange(0, len(whole), each)
    blocks = np.stack([np.add.reduceat(used, starts), np.add.reduceat(whole, starts)])
    drawn = np.random.default_rng(0).integers(len(starts), size=(RESAMPLES, len(starts)))
    sums = blocks[:, drawn].sum(axis=2)
    shares = sums[0] / np.maximum(sums[1], 1e-12)
    low, high = np.quantile(shares, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)
