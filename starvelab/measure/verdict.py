"""How input-bound a training job is: the words, and the shares of waiting where each of them begins."""

from __future__ import annotations

NOT_BOUND, MODERATE, HIGH = "not input-bound", "moderately input-bound", "highly input-bound"
UNKNOWN = "cannot tell"

# Shares of the time, in use elsewhere too: below the first a job is not input-bound.
SLIGHT, SEVERE = 0.05, 0.20
MIN_BATCHES = 8  # of fewer batches the spread says nothing


def verdict_of(share: float) -> str:
    """The words for a share of the time that is spent waiting for data, 0 to 1.

    Examples
    --------
    >>> verdict_of(0.12)
    'moderately input-bound'
    """
    if share < SLIGHT:
        return NOT_BOUND
    return MODERATE if share < SEVERE else HIGH


def is_certain(interval: tuple[float, float], batches: int, least: int = MIN_BATCHES) -> bool:
    """Whether there were enough batches, and whether their spread leaves at most two verdicts open."""
    low, high = interval
    return batches >= least and not (low < SLIGHT and high >= SEVERE)
