"""Preparing: a worker reads samples, transforms them, and joins them to batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from ..errors import InputError
from .batches import PARTS, DeliveredBatch, Sample, memory_size
from .samples import StoredSource
from .transforms import Transform

# What one cached rung of one worker may hold, in samples and in bytes: sizes vary, so one would not do.
CACHED_SAMPLES = 12
CACHED_BYTES = 96e6


class Preparer:
    """Prepares samples inside a worker, times each transform, and keeps a few samples of each rung."""

    def __init__(
        self,
        samples: StoredSource,
        transforms: Sequence[Transform],
        batch_size: int,
        storage: Callable[[int], None],
        requests: int = 1,
    ) -> None:
        self.samples, self.transforms, self.batch_size = samples, transforms, batch_size
        self.storage, self.requests = storage, requests  # open at a time
        self.stages = ("read", *(transform.name for transform in transforms), "collate")
        self.fetched: dict[int, bytes] = {}  # by index, until they are asked for
        self.kept: dict[int, list[Sample]] = {}  # by rung

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

    def sample(self, index: int, rung: int, seconds: dict[str, float]) -> Sample:
        """One sample; the first `rung` parts (read, decode, transform) come from the cache."""
        if rung:
            kept = self._cached(rung)
            value = kept[index % len(kept)]
        else:
            before = time.perf_counter()
            value = self._fetch(index)
            seconds["read"] += time.perf_counter() - before
        for transform in self.transforms:
            if PARTS.index(transform.part) >= rung:
                before = time.perf_counter()
                value = self._apply(transform, value, index)
                seconds[transform.name] += time.perf_counter() - before
        return value

    def _cached(self, rung: int) -> list[Sample]:
        """Return the samples that are kept of a rung, made at the first asking."""
        if rung not in self.kept:
            kept: list[Sample] = []
            held = 0
            while len(kept) < min(CACHED_SAMPLES, len(self.samples)) and held <= CACHED_BYTES:
                kept.append(self._made(len(kept), rung))
                held += memory_size(kept[-1])
            self.kept[rung] = kept
        return self.kept[rung]

    def _read(self, index: int) -> bytes:
        value = self.samples.read(index)
        self.storage(len(value))
        return value

    def _fetch(self, index: int) -> bytes:
        """Read a sample, and beside it as many of its batch's next as requests are open."""
        if self.requests == 1:
            return self._read(index)
        if index not in self.fetched:
            end = index - index % self.batch_size + self.batch_size
            group = range(index, min(index + self.requests, end))
            with ThreadPoolExecutor(len(group)) as threads:
                self.fetched = dict(zip(group, threads.map(self._read, group), strict=True))
        return self.fetched.pop(index)

    def _made(self, index: int, rung: int) -> Sample:
        """Return what is cached of a sample on a rung."""
        value = self.samples.read(index)
        for transform in self.transforms:
            if PARTS.index(transform.part) < rung:
                value = self._apply(transform, value, index)
        return value

    def _apply(self, transform: Transform, value: Sample, index: int) -> Sample:
        try:
            return transform.function(value)
        except Exception as error:
            contents = getattr(self.samples, "contents", None) or [index]
            content = contents[index % len(contents)]
            where = content if isinstance(content, Path) else f"sample {index}"
            raise InputError(
                f"Transform {transform.name!r} failed on {where}: {type(error).__name__}: {error}. "
                "Try the function on that sample by itself."
            ) from error
