"""Samples and batches: the parts that they meet, what they hold, how they are prepared and handed over."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..errors import InputError

# Any: stored bytes, an image, an array, or whatever else a transform makes of a sample.
Sample: TypeAlias = Any
# Any: an array, a tensor, or what a `collate_fn` makes of samples.
Batch: TypeAlias = Any

# The parts of an input pipeline in the order in which a sample meets them, which are the rungs of its ladder.
PARTS = ("read", "decode", "transform", "collate", "copy", "compute")
# What one cached rung of one worker may hold, in samples and in bytes: sizes vary, so one would not do.
CACHED_SAMPLES = 12
CACHED_BYTES = 96e6


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


class Preparer(ABC):
    """Prepares samples inside a worker, and keeps a few of each rung."""

    def __init__(self, stages: Iterable[str], batch_size: int) -> None:
        self.stages, self.batch_size = tuple(stages), batch_size

    @abstractmethod
    def sample(self, index: int, rung: int, seconds: dict[str, float]) -> Sample:
        """One sample, the first `rung` parts from the cache; what it takes is added to `seconds`."""

    def batch(self, number: int, rung: int = 0, out: np.ndarray | None = None) -> DeliveredBatch:
        """Batch `number` of arrays, written into `out` where there is one."""
        seconds, start = dict.fromkeys(self.stages, 0.0), time.monotonic()
        for position in range(self.batch_size):
            value = self.sample(number * self.batch_size + position, rung, seconds)
            before = time.perf_counter()
            if out is None:
                out = np.empty((self.batch_size, *value.shape), value.dtype)
            if value.shape != out.shape[1:] or value.dtype != out.dtype:
                raise InputError(
                    f"All samples of a batch must have one shape and type, got {value.dtype} {value.shape} "
                    f"after {out.dtype} {out.shape[1:]}. Let the last transform bring them to one size."
                )
            out[position] = value
            seconds["collate"] += time.perf_counter() - before
        return DeliveredBatch(number, -1, out, start, time.monotonic(), rung, seconds)


def cached(make: Callable[[int], Sample], count: int) -> list[Sample]:
    """The first of so many samples: as many as a worker keeps of a rung."""
    kept: list[Sample] = []
    held = 0
    while len(kept) < min(CACHED_SAMPLES, count) and held <= CACHED_BYTES:
        kept.append(make(len(kept)))
        held += memory_size(kept[-1])
    return kept


def memory_size(value: Sample | Batch) -> int:
    """Bytes that a sample or a batch takes in memory, as far as its type tells."""
    if isinstance(value, Mapping | list | tuple):
        return sum(map(memory_size, value.values() if isinstance(value, Mapping) else value))
    if hasattr(value, "getbands"):  # an image of Pillow, which is not imported for this question
        return int(value.width * value.height * len(value.getbands()))
    return len(value) if isinstance(value, bytes) else int(getattr(value, "nbytes", 0))


# --- one buffer for all tensors of a batch, which a worker hands over to the loop ---
