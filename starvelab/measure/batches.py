"""Samples and batches: the parts that they meet, and what they hold."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

# Any: stored bytes, an image, an array, or whatever else a transform makes of a sample.
Sample: TypeAlias = Any
# Any: an array, a tensor, or what a `collate_fn` makes of samples.
Batch: TypeAlias = Any

# The parts of an input pipeline in the order in which a sample meets them, which are the rungs of its ladder.
PARTS = ("read", "decode", "transform", "collate", "copy", "compute")


class DeliveredBatch(NamedTuple):
    """A batch as the training loop gets it, and its times on the monotonic clock [s]."""

    number: int
    worker: int  # -1 is the training loop itself
    array: Batch
    start: float
    end: float
    rung: int  # parts that came from the worker's cache
    seconds: dict[str, float]  # CPU time and waits of each part or transform, over the whole batch
    asked: float = 0.0  # when the loop asked for it, and when it had it
    received: float = 0.0


def memory_size(value: Sample | Batch) -> int:
    """Bytes that a sample or a batch takes in memory, as far as its type tells."""
    if hasattr(value, "getbands"):  # an image of Pillow, which is not imported for this question
        return int(value.width * value.height * len(value.getbands()))
    return len(value) if isinstance(value, bytes) else int(getattr(value, "nbytes", 0))
