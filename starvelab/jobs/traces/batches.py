"""Which stretches of a trace are batches: a wait, and what follows it up to the next wait."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .timeline import HostThread

MIN_KEPT = 2  # batches that remain if the first and the last are left out


@dataclass(frozen=True)
class Batches:
    """The batches of a trace.

    Attributes
    ----------
    waits : array of float
        Start and end of the wait for each batch that counts [us].
    stretches : array of float
        From the start of that wait to the start of the next.
    first : array of float
        Waits for the first batch of a pass, which do not count [us].
    delivered : int
    """

    waits: np.ndarray
    stretches: np.ndarray
    first: np.ndarray
    delivered: int


def batches_of(thread: HostThread) -> Batches:
    """The batches of a training loop.

    The step after the last wait has no end in the trace unless the profiler marked steps. A first batch, with
    the start of the workers, does not count: that of the trace, unless the marks say that the training began
    earlier, and every one before which the loop did nothing, since there a pass ended.
    """
    waits = thread.merged_waits()
    if not len(waits):
        return Batches(waits, waits, np.empty(0), 0)
    ends = [*waits[1:, 0], max((end for _, _, end in thread.steps), default=-np.inf)]
    stretches = np.column_stack([waits[:, 0], ends])
    counts = stretches[:, 1] > waits[:, 1]
    begins = _begins(thread, waits)
    # The `next` that ends a pass comes back without a batch.
    ends_pass = np.append(begins[1:], False)
    if np.sum(counts & ~begins & ~ends_pass) >= MIN_KEPT:
        first = (waits[:, 1] - waits[:, 0])[begins]
        counts &= ~begins & ~ends_pass
    else:
        first = np.empty(0)
    return Batches(waits[counts], stretches[counts], first, len(waits) - int(ends_pass.sum()))


def _begins(thread: HostThread, waits: np.ndarray) -> np.ndarray:
    """Whether each wait is for the first batch of a pass."""
    begins = np.zeros(len(waits), dtype=bool)
    # With a schedule the profiler starts in the middle of a training; step 0 is its very beginning.
    begins[0] = not thread.steps or min(number for number, _, _ in thread.steps) == 0
    operations = np.sort(np.array(thread.operations))
    between = np.searchsorted(operations, waits[1:, 0]) - np.searchsorted(operations, waits[:-1, 1])
    # A program whose steps are not PyTorch's has no operations anywhere.
    if len(between) and np.mean(between > 0) > 0.5:
        begins[1:] = between == 0
    return begins
