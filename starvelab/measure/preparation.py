"""Preparing batches inside a worker: each transform is timed, and a few samples of each rung are kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import InputError
from .protocols import CACHED_BYTES, CACHED_SAMPLES, SAMPLE_PARTS, Sample, WaitForStorage, Work, memory_size
from .samples import ImageSource, MemorySource
from .transforms import Transform


@dataclass
class SamplePreparer:
    """Reads samples, transforms them, and joins them to batches."""

    samples: ImageSource | MemorySource
    transforms: Sequence[Transform]
    batch_size: int
    storage: WaitForStorage
    _kept: dict[int, list[Sample]] = field(default_factory=dict)

    def no_seconds(self) -> dict[str, float]:
        """A zero for reading, for each transform, and for joining."""
        return dict.fromkeys(("read", *(transform.name for transform in self.transforms), "collate"), 0.0)

    def sample(self, index: int, rung: int, seconds: dict[str, float]) -> Sample:
        """One sample; the first `rung` parts (read, decode, transform) come from the cache."""
        if rung:
            value = self._from_cache(index, rung)
        else:
            before = time.perf_counter()
            value = self.samples.read(index)
            self.storage(len(value))
            seconds["read"] += time.perf_counter() - before
        for transform in self.transforms:
            if SAMPLE_PARTS.index(transform.part) < rung:
                continue
            before = time.perf_counter()
            value = self._apply(transform, value, index)
            seconds[transform.name] += time.perf_counter() - before
        return value

    def batch(self, number: int, rung: int = 0, out: np.ndarray | None = None) -> tuple[np.ndarray, Work]:
        """Batch `number`, written into `out` where there is one."""
        seconds = self.no_seconds()
        start = time.monotonic()
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
        assert out is not None  # a batch has at least one sample
        return out, Work(start, time.monotonic(), rung, seconds)

    def _apply(self, transform: Transform, value: Sample, index: int) -> Sample:
        try:
            return transform.function(value)
        except Exception as error:
            where = self.samples.path(index) if hasattr(self.samples, "path") else f"sample {index}"
            raise InputError(
                f"Transform {transform.name!r} failed on {where}: {type(error).__name__}: {error}. "
                "Try the function on that sample by itself."
            ) from error

    def _from_cache(self, index: int, rung: int) -> Sample:
        if rung not in self._kept:
            self._kept[rung] = self._fill(rung)
        kept = self._kept[rung]
        return kept[index % len(kept)]

    def _fill(self, rung: int) -> list[Sample]:
        kept: list[Sample] = []
        held = 0
        for index in range(min(CACHED_SAMPLES, max(len(self.samples), 1))):
            value = self.samples.read(index)
            for transform in self.transforms:
                if SAMPLE_PARTS.index(transform.part) < rung:
                    value = self._apply(transform, value, index)
            kept.append(value)
            held += memory_size(value)
            if held > CACHED_BYTES:
                break
        return kept
