"""The setup of a run: what the parts of a pipeline mean on this machine, as plain values.

What a run cannot do is rejected; what it measures itself is ignored.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, NamedTuple, cast

import numpy as np

from ..errors import InputError
from ..model.description import Description
from ..model.parts import Framework, Ranks, Samples, Workers
from ..model.stages.transfer import link_bandwidth
from ..tables import count_of
from ..units import Quantity, Unchecked, format_quantity
from .batches import PARTS
from .devices import Step, StorageClock, VirtualAccelerator, VirtualLink, VirtualStorage
from .preparation import Preparer
from .samples import StoredSource
from .transforms import Transform, photo_transforms

MAX_OPEN = 64  # requests of a worker
# Next to nothing, so that a loader which is measured alone shows all it can.
NO_STEP = VirtualAccelerator(1e-6)


class Layout(NamedTuple):
    """A prepared batch without its values."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]  # Any: known only at run time
    size: int  # bytes


@dataclass(frozen=True, kw_only=True)
class RunSetup:
    """What is read, what is done to it, by how many workers, and what consumes it."""

    description: Description
    samples: StoredSource
    transforms: Sequence[Transform]
    batch_size: int
    workers: int
    kind: str = "threads"
    prefetch: int = 2
    in_order: bool = True
    pinned: bool = True
    loop_time: float = 0.0  # seconds that the training loop spends on a batch before it is copied
    storage: VirtualStorage | None = None
    link: VirtualLink | None = None
    device: VirtualAccelerator | Step = NO_STEP

    def replace(self, **changes: Unchecked) -> RunSetup:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def __getstate__(self) -> dict[str, object]:
        # What travels to a worker, which trains nothing: a model is not sent there, and may not even be able.
        return {name: value for name, value in vars(self).items() if name not in ("description", "device")}

    @property
    def step_known(self) -> bool:
        """False where a loader is measured alone."""
        return self.device is not NO_STEP

    @property
    def stages(self) -> Mapping[str, str]:
        """The names of what a worker does to a sample, and the parts of the pipeline that these belong to."""
        return {transform.name: transform.part for transform in self.transforms}

    def preparer(self, storage: StorageClock) -> Preparer:
        """The part of it that works in one worker."""
        requests = 1 if self.storage is None else self.storage.open
        return Preparer(self.samples, self.transforms, self.batch_size, storage, requests)

    @cached_property
    def layout(self) -> Layout:
        """A batch as one prepared sample shows it; a transform that fails says so here."""
        preparer = self.preparer(StorageClock(None))
        value = preparer.sample(0, 0, dict.fromkeys(preparer.stages, 0.0))
        if not isinstance(value, np.ndarray):
            raise InputError(
                f"The last transform must return a NumPy array, got {type(value).__name__} from "
                f"{self.transforms[-1].name!r}. Add a transform that converts, such as numpy.asarray."
            )
        return Layout((self.batch_size, *value.shape), value.dtype, self.batch_size * value.nbytes)

    def __str__(self) -> str:
        label = getattr(self.samples, "label", f"{self.samples.name} items")
        workers = f"{count_of(self.workers, 'worker')} ({self.kind})"
        return f"{label} {f'with {workers}' if self.workers else 'in the training loop itself'}"


def setup_of(pipeline: Description, *, needs_samples: bool = True) -> RunSetup:
    """Return the setup that a pipeline describes: it has samples that can be opened, and all can be run."""
    if pipeline.swept:
        raise InputError(
            f"A run has one value for each field, got arrays of {', '.join(pipeline.swept)}. "
            "Run one pipeline for each value."
        )
    batch_size = int(cast(int, pipeline.batch_size))
    workers, link = _workers(pipeline.workers), pipeline.link
    samples, transforms = _samples(pipeline.dataset, needs=needs_samples)
    return RunSetup(
        description=pipeline,
        samples=samples,
        transforms=transforms,
        batch_size=batch_size,
        workers=int(workers.count),
        kind=workers.kind or "threads",
        prefetch=int(workers.prefetch),
        in_order=workers.in_order,
        loop_time=float(cast(float, workers.handover.named["loop_time"] or 0)),
        pinned=link.pinned if link is not None else True,
        storage=_storage(pipeline),
        link=_link(pipeline),
        device=_device(pipeline),
    )


def _samples(part: Samples, *, needs: bool) -> tuple[StoredSource, tuple[Transform, ...]]:
    source, transforms = part.source, part.transforms
    if source is None and not needs:
        return StoredSource("samples", (b"",), noun=""), ()
    if source is None:
        raise InputError(
            "Measuring needs samples that exist, and this pipeline only describes them. Pass for "
            'example dataset=Samples(source=photos("100 KB")).'
        )
    if hasattr(source, "read") and hasattr(source, "name"):
        return source, _check_transforms(photo_transforms() if transforms is None else transforms)
    raise InputError(
        "A source of samples comes from photos, or has a name and a method read(index), got "
        f'{source!r:.80}. Write for example Samples(source=photos("100 KB")). A job with a DataLoader of '
        "PyTorch is measured as it is: starvelab-doctor --ladder train.py."
    )


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
    reads = pipeline.reads
    assert reads is not None  # there is a drive
    hidden, limited = reads.open == inf, reads.served < pipeline.numbers["workers"] * reads.open
    if not hidden and reads.open > MAX_OPEN:
        raise InputError(
            f"A worker of a run opens each of its requests in a thread, at most {MAX_OPEN} of them, got "
            f"Requests(open={reads.open}). Pass fewer, or solve or simulate it."
        )
    rate, each, brings = reads.request_rate, reads.request_bandwidth, reads.samples_per_request
    return VirtualStorage(
        bandwidth=float(reads.drives * reads.bandwidth),
        # Of a request that brings several samples each waits for its share: chance would add noise.
        latency=0.0 if hidden else float((reads.queued_latency if limited else reads.latency) / brings),
        cached_fraction=float(reads.cached),
        request_bandwidth=inf if hidden or each is None else float(each),
        read_rate=inf if rate is None else float(reads.drives * rate * brings),
        connections=float(reads.served) if limited and not hidden else inf,
        open=1 if hidden else int(reads.open),
    )


def _link(pipeline: Description) -> VirtualLink | None:
    link = pipeline.link
    if link is None:
        return None
    bandwidth = link_bandwidth(link.of, pinned=link.pinned, rate=pipeline.assumptions.link_rate)
    return VirtualLink(float(bandwidth.m_as("B/s")), link.runs_beside)


def _device(pipeline: Description) -> VirtualAccelerator | Step:
    part = pipeline.hardware
    for name, value in (("count", 1), ("ranks", Ranks())):
        if getattr(part, name) != value:
            raise InputError(
                f"A run cannot have Accelerator({name}={getattr(part, name)!r:.60}): solve or simulate it. "
                f"Leave {name} out of the Accelerator."
            )
    if part.device is not None:
        if not callable(part.device):
            raise InputError(
                f"device must be a function that trains on one batch, got {part.device!r:.80}. "
                "Pass for example device=train_step."
            )
        return cast(Step, part.device)
    if part.of is None and (part.rate is None or isinstance(part.rate, Framework)):
        return NO_STEP
    cost = pipeline.replace(storage=None, link=None, workers=1).resource_costs()["accelerator"]
    return VirtualAccelerator(float(cast(float, cost.at(pipeline.batch_size))), part.in_flight)


def _check_transforms(given: object) -> tuple[Transform, ...]:
    """The transforms of a pipeline, which decode before they transform, each with a name of its own."""
    if not isinstance(given, Sequence):
        raise InputError(
            f"transforms must be a sequence of Transform, got {given!r:.80}. Put it into a list."
        )
    if others := [one for one in given if not isinstance(one, Transform)]:
        raise InputError(
            f"transforms must be of the class Transform, got {others[0]!r:.80}. "
            "Write Transform('name', function)."
        )
    parts = [one.part for one in given]
    if not parts or parts != sorted(parts, key=PARTS.index):
        raise InputError(
            "A run needs transforms, and those that decode come first, got "
            f"{', '.join(f'{one.name} ({one.part})' for one in given) or 'none'}. Put them in that order."
        )
    (name, count), *_ = Counter(["read", "collate", *(one.name for one in given)]).most_common(1)
    if count > 1:
        raise InputError(f"Each transform needs a name of its own, got {name!r} twice. Rename one of them.")
    return tuple(given)
