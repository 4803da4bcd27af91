"""The description of a real input pipeline: samples, transforms, a loader, and the devices behind it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..errors import InputError, check_names
from ..units import Q_, Unchecked, positive_int
from .devices import StorageClock, VirtualAccelerator, VirtualLink, VirtualStorage
from .loaders import LOADERS
from .preparation import SamplePreparer
from .protocols import PARTS, Accelerator, Pipeline, WaitForStorage
from .samples import Samples, photos
from .transforms import Transform, photo_transforms


@dataclass(frozen=True, kw_only=True)
class InputPipeline:
    """What is read, what is done to it, by how many workers, and what consumes it.

    Parameters
    ----------
    samples : Samples
        From `photos` or `folder`.
    transforms : sequence of Transform
        What a worker does to a sample, in this order.
    batch_size : int
    workers : int
        0 prepares in the training loop, whichever the loader.
    loader : {"inline", "threads", "processes", "torch"}
    prefetch : int
        Batches ordered ahead of each worker.
    in_order : bool
        Whether batches are delivered in the order in which they were ordered.
    pinned : bool
        Copy from pinned memory, where there is a GPU and the loader is torch's.
    storage : VirtualStorage, optional
        A slower storage than this machine's.
    link : VirtualLink, optional
        Without it a copy takes no time.
    accelerator : VirtualAccelerator or CudaAccelerator

    Examples
    --------
    >>> pipe = InputPipeline(accelerator=VirtualAccelerator(step_time="30 ms"), workers=4)
    >>> pipe.replace(loader="processes").workers
    4
    """

    samples: Samples = field(default_factory=photos)
    transforms: Sequence[Transform] = field(default_factory=photo_transforms)
    batch_size: int = 32
    workers: int = 2
    loader: str = "threads"
    prefetch: int = 2
    in_order: bool = True
    pinned: bool = True
    storage: VirtualStorage | None = None
    link: VirtualLink | None = None
    accelerator: Accelerator = field(default_factory=lambda: VirtualAccelerator(step_time=Q_("30 ms")))

    def __post_init__(self) -> None:
        check_counts(self)
        if not (hasattr(self.samples, "read") and hasattr(self.samples, "name")):
            raise InputError(
                f"samples must come from photos or folder, got {self.samples!r:.80}. "
                'Write for example photos("100 KB").'
            )
        if self.loader not in LOADERS:
            raise InputError(
                f"loader must be one of {', '.join(LOADERS)}, got {self.loader!r:.80}. Pass one of these."
            )
        for name, kind in (("storage", VirtualStorage), ("link", VirtualLink)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise InputError(
                    f"{name} must be a {kind.__name__} or None, got {value!r:.80}. "
                    f'Write for example {kind.__name__}(bandwidth="1 GB/s").'
                )
        if not hasattr(self.accelerator, "open"):
            raise InputError(
                "accelerator must be a VirtualAccelerator or a CudaAccelerator, got "
                f"{self.accelerator!r:.80}. "
                'Write for example VirtualAccelerator(step_time="30 ms").'
            )
        object.__setattr__(self, "transforms", check_transforms(self.transforms))

    def replace(self, **changes: Unchecked) -> InputPipeline:
        """A copy with some fields changed."""
        check_names(changes, [f.name for f in dataclasses.fields(self)], "An input pipeline")
        return dataclasses.replace(self, **changes)

    # How a DataLoader joins samples (torch's own way), and where the caching ladder can stand.
    collate_fn: ClassVar[None] = None
    rungs: ClassVar[tuple[int, ...]] = tuple(range(len(PARTS)))

    @property
    def worker_count(self) -> int:
        """Workers beside the training loop: none where it prepares by itself."""
        return 0 if self.loader == "inline" else self.workers

    def preparer(self, storage: WaitForStorage) -> SamplePreparer:
        """What one worker works with."""
        return SamplePreparer(self.samples, self.transforms, self.batch_size, storage)

    @cached_property
    def _probe(self) -> np.ndarray:
        """One prepared sample: its shape and type, and an early end if a transform fails."""
        preparer = self.preparer(StorageClock(None))
        value = preparer.sample(0, 0, preparer.no_seconds())
        if not isinstance(value, np.ndarray):
            raise InputError(
                f"The last transform must return a NumPy array, got {type(value).__name__} from "
                f"{self.transforms[-1].name!r}. Add a transform that converts, such as numpy.asarray."
            )
        return value

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of a prepared batch."""
        return (self.batch_size, *self._probe.shape)

    @property
    def batch_bytes(self) -> int:
        """Bytes of a prepared batch."""
        return self.batch_size * self._probe.nbytes

    @property
    def dtype(self) -> np.dtype[Any]:  # Any: known only at run time
        """Type of its values."""
        return self._probe.dtype


def check_counts(pipe: Pipeline) -> None:
    """Turn the counts of a pipeline into whole numbers; of workers there may be none at all."""
    for name in ("batch_size", "prefetch", "workers"):
        given = getattr(pipe, name)
        if name == "workers" and type(given) is int and given == 0:
            continue
        number = positive_int(given, name)
        if np.ndim(number):
            raise InputError(
                f"A pipeline has one {name}, got an array. Make one with pipe.replace({name}=...)."
            )
        object.__setattr__(pipe, name, number)


def check_transforms(given: object) -> tuple[Transform, ...]:
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
    taken = Counter(["read", "collate", *(transform.name for transform in transforms)])
    for name, count in taken.items():
        if count > 1:
            raise InputError(
                f"Each transform needs a name of its own, got {name!r} twice. Rename one of them."
            )
    return transforms
