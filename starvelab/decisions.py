"""What exercises judge that ask for a decision from evidence: verdicts on black boxes, and designed hosts."""

from .lesson.decisions import (
    CORE_PRICE,
    DRIVE_PRICE,
    GPU_PRICES,
    Design,
    judge,
    log_score,
    most_likely,
    record,
    total,
)

__all__ = [
    "CORE_PRICE",
    "DRIVE_PRICE",
    "GPU_PRICES",
    "Design",
    "judge",
    "log_score",
    "most_likely",
    "record",
    "total",
]
