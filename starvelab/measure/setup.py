"""The setup of a run: what the parts of a pipeline mean on this machine, as plain values.

`setup_of` is the only place that reads a pipeline for a run. What a run cannot do as it is described is
rejected; what it finds out by itself, such as what preparing takes, is left out of account. A worker prepares
with `SamplePreparer`: it times each transform, and keeps a few samples of each rung.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any, NamedTuple, cast

import numpy as np

from ..errors import InputError
from ..model.description import Description
from ..model.parts import Framework, Part, Samples, Workers
from ..units import Quantity, Unchecked, format_quantity
from .datasets import DatasetPreparer, DatasetSource, has_items, is_loader
from .devices import Device, StepDevice, StorageClock, VirtualAccelerator, VirtualLink, VirtualStorage
from .protocols import (
    CACHED_BYTES,
    CACHED_SAMPLES,
    PARTS,
    SAMPLE_PARTS,
    Batch,
    BatchPreparer,
    NamedPart,
    Sample,
    WaitForStorage,
    Work,
    memory_size,
)
from .samples import ImageSource, MemorySource
from .transforms import Transform, photo_transforms

# Next to nothing, so that a loader which is measured alone shows all it can.
NO_STEP = VirtualAccelerator(1e-6)


class _Prepared(NamedTuple):
    """A prepared sample, without its values."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]  # Any: known only at run time
    size: int


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What is read, what is done to it, by how many workers, and what consumes it."""

    samples: ImageSource | MemorySource | DatasetSource
    transforms: Sequence[Transform]
    batch_size: int
    workers: int
    kind: str = "threads"
    prefetch: int = 2
    in_order: bool = True
    pinned: bool = True
    storage: VirtualStorage | None = None
    link: VirtualLink | None = None
    device: Device = NO_STEP

    def replace(self, **changes: Unchecked) -> Setup:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    @property
    def step_known(self) -> bool:
        """False where a loader is measured alone."""
        return self.device is not NO_STEP

    @property
    def stages(self) -> Sequence[NamedPart]:
        """What a worker does to a sample, by name, and the parts of the pipeline that it belongs to."""
        return self.samples.stages if isinstance(self.samples, DatasetSource) else self.transforms

    @property
    def rungs(self) -> tuple[int, ...]:
        """Where the caching ladder can stand."""
        return self.samples.rungs if isinstance(self.samples, DatasetSource) else tuple(range(len(PARTS)))

    @property
    def collate_fn(self) -> Callable[[list[Sample]], Batch] | None:
        """How a DataLoader joins samples; None for PyTorch's own way."""
        return getattr(self.samples, "collate_fn", None)

    def preparer(self, storage: WaitForStorage) -> BatchPreparer:
        """The part of it that works in one worker; of a dataset it leaves the joining to the DataLoader."""
        if isinstance(self.samples, DatasetSource):
            return cast(BatchPreparer, DatasetPreparer(self.samples))
        return SamplePreparer(self.samples, self.transforms, self.batch_size, storage)

    @cached_property
    def _prepared(self) -> _Prepared:
        """One prepared sample: its shape and type, and an early end if a transform fails."""
        preparer = self.preparer(StorageClock(None))
        value = preparer.sample(0, 0, preparer.no_seconds())
        if not isinstance(value, np.ndarray) and not isinstance(self.samples, DatasetSource):
            raise InputError(
                f"The last transform must return a NumPy array, got {type(value).__name__} from "
                f"{self.transforms[-1].name!r}. Add a transform that converts, such as numpy.asarray."
            )
        dtype = getattr(value, "dtype", np.dtype(object))
        return _Prepared(getattr(value, "shape", ()), dtype, memory_size(value))

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of a prepared batch."""
        return (self.batch_size, *self._prepared.shape)

    @property
    def batch_bytes(self) -> int:
        """Bytes of a prepared batch."""
        return self.batch_size * self._prepared.size

    @property
    def dtype(self) -> np.dtype[Any]:  # Any: known only at run time
        """Type of its values."""
        return self._prepared.dtype

    def __str__(self) -> str:
        label = getattr(self.samples, "label", f"{self.samples.name} items")
        workers = f"{self.workers} worker{'s' if self.workers > 1 else ''} ({self.kind})"
        return f"{label} {f'with {workers}' if self.workers else 'in the training loop itself'}"


def setup_of(pipeline: Description, *, needs_samples: bool = True) -> Setup:
    """Return the setup that a pipeline describes: it has samples that can be opened, and all can be run."""
    if pipeline.swept:
        raise InputError(
            f"A run has one value for each field, got arrays of {', '.join(pipeline.swept)}. "
            "Run one pipeline for each value."
        )
    batch_size = int(cast(int, pipeline.batch_size))
    workers, link = _workers(pipeline.workers), pipeline.link
    samples, transforms = _samples(pipeline.dataset, needs=needs_samples)
    own = isinstance(samples, DatasetSource)
    return Setup(
        samples=samples,
        transforms=transforms,
        batch_size=batch_size,
        workers=int(workers.count),
        kind="torch" if own else workers.kind or "threads",
        prefetch=int(workers.prefetch),
        in_order=workers.in_order,
        pinned=link.pinned if link is not None else getattr(samples, "pinned", True),
        storage=_storage(pipeline),
        link=_link(pipeline),
        device=_device(pipeline),
    )


def _samples(
    part: Samples, *, needs: bool
) -> tuple[ImageSource | MemorySource | DatasetSource, tuple[Transform, ...]]:
    source, transforms = part.source, part.transforms
    if source is None and not needs:
        return MemorySource("samples", (b"",)), ()
    if source is None:
        raise InputError(
            "To measure a pipeline takes samples that exist, and this one only describes them. Pass for "
            'example dataset=Samples(source=photos("100 KB")), or a dataset of yours as the source.'
        )
    if hasattr(source, "read") and hasattr(source, "name"):
        return source, _check_transforms(photo_transforms() if transforms is None else transforms)
    if is_loader(source):
        raise InputError(
            "A DataLoader brings its batch size and its workers, too: it is more than a source of samples. "
            "Write Pipeline.of_loader(loader)."
        )
    if not isinstance(source, DatasetSource):
        # A text has items and a length, and is no dataset.
        if isinstance(source, str | bytes | dict) or not has_items(source):
            raise InputError(
                "A source of samples comes from photos or folder, or is a dataset with items and a length, "
                f'got {source!r:.80}. Write for example Samples(source=photos("100 KB")).'
            )
        source = DatasetSource(source)
    if transforms is not None:
        raise InputError(
            "A dataset transforms its items itself, got transforms beside it. Leave transforms out."
        )
    return source, ()


def _workers(part: Workers | Quantity) -> Workers:
    if not isinstance(part, Workers):
        raise InputError(
            f"A run starts workers, got what all of them supply, {format_quantity(part)}. Pass for "
            "example workers=4."
        )
    if part.kind == "pool":
        raise InputError(
            "A run has workers of the kind threads, processes or torch, got pool. Pass "
            'Workers(..., kind="threads").'
        )
    return part


def _storage(pipeline: Description) -> VirtualStorage | None:
    drive = pipeline.storage
    if drive is None:
        return None
    cache = drive.cache
    _reject(drive, samples_per_request=1)
    if cache is not None:
        _reject(cache, bandwidth=None)
    # A drive that only lets its samples wait takes next to no time for their bytes.
    bandwidth = inf if drive.of is None else drive.count * pipeline.storage_bandwidth.m_as("B/s")
    share = 0.0 if cache is None else float(cast(float, cache.share))
    return VirtualStorage(bandwidth, float(cast(float, drive.numbers["wait"] or 0)), share)


def _link(pipeline: Description) -> VirtualLink | None:
    if pipeline.link is None:
        return None
    return VirtualLink(float(pipeline.link_bandwidth.m_as("B/s")), pipeline.link.overlaps)


def _device(pipeline: Description) -> Device:
    part = pipeline.hardware
    _reject(part, count=1)
    if part.device is not None:
        return cast(Device, part.device) if hasattr(part.device, "open") else StepDevice(part.device)
    if part.of is None and (part.rate is None or isinstance(part.rate, Framework)):
        return NO_STEP
    cost = pipeline.replace(storage=None, link=None, workers=1).resource_costs()["accelerator"]
    return VirtualAccelerator(float(cast(float, cost.at(pipeline.batch_size))), part.in_flight)


def _reject(part: Part, **possible: Unchecked) -> None:
    """Reject fields of a part that no run can have otherwise."""
    for name, value in possible.items():
        if getattr(part, name) != value:
            kind = type(part).__name__
            raise InputError(
                f"A run cannot have {kind}({name}={getattr(part, name)!r:.60}): solve or simulate it. Leave "
                f"{name} out of the {kind}."
            )


def _check_transforms(given: object) -> tuple[Transform, ...]:
    """The transforms of a pipeline, which decode before they transform, each with a name of its own."""
    if not isinstance(given, Sequence):
        raise InputError(
            f"transforms must be a sequence of Transform, got {given!r:.80}. Put it into a list."
        )
    transforms = tuple(given)
    for transform in transforms:
        if not isinstance(transform, Transform):
            raise InputError(
                f"transforms must be of the class Transform, got {transform!r:.80}. "
                "Write Transform('name', function)."
            )
    order = [PARTS.index(transform.part) for transform in transforms]
    if not transforms or order != sorted(order):
        came = ", ".join(f"{transform.name} ({transform.part})" for transform in transforms) or "none"
        raise InputError(
            f"There must be transforms, those that decode before those that transform, got {came}. "
            "Put them in that order."
        )
    for name, count in Counter(["read", "collate", *(transform.name for transform in transforms)]).items():
        if count > 1:
            raise InputError(
                f"Each transform needs a name of its own, got {name!r} twice. Rename one of them."
            )
    return transforms


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
