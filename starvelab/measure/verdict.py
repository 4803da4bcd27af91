"""How input-bound a training job is: shares of the time with their 95 % intervals, and the words for them."""

from __future__ import annotations

NOT_BOUND, MODERATE, HIGH = "not input-bound", "moderately input-bound", "highly input-bound"
UNKNOWN = "cannot tell"

# Shares of the time, in use elsewhere too: below the first a job is not input-bound.
SLIGHT, SEVERE = 0.05, 0.20


def verdict_of(share: float) -> str:
    """The words for a share of the time that is spent waiting for data, 0 to 1.

    >>> verdict_of(0.12)
    'moderately input-bound'
    """
    if share < SLIGHT:
        return NOT_BOUND
    return MODERATE if share < SEVERE else HIGH
