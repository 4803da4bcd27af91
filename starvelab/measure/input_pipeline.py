"""The description of a real input pipeline: samples, transforms, a loader, and the devices behind it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from ..errors import InputError, UnknownNameError, check_names
from ..units import Q_, Quantity, Unchecked, positive_int
from .datasets import Dataset, DatasetPreparer, DatasetSource, TorchLoader, has_items, is_loader, options_of
from .devices import Device, StorageClock, VirtualAccelerator, VirtualLink, VirtualStorage
from .preparation import SamplePreparer
from .protocols import PARTS, Batch, BatchPreparer, NamedPart, Sample, WaitForStorage, memory_size
from .samples import ImageSource, MemorySource, photos
from .training_step import StepDevice
from .transforms import Transform, photo_transforms

LOADERS = ("threads", "processes", "torch")
# Next to nothing, so that a loader which is measured alone shows all it can.
NO_STEP = VirtualAccelerator(step_time=Q_("1 us"))
# The options of a dataset, and those of them that say what a training step takes.
STEP_OPTIONS = ("accelerator", "step_time", "step")
OPTIONS = ("batch_size", "workers", "prefetch", "in_order", "collate_fn", "pinned", "link", *STEP_OPTIONS)


class _Prepared(NamedTuple):
    """A prepared sample, without its values."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]  # Any: known only at run time
    size: int


@dataclass(frozen=True, kw_only=True)
class InputPipeline:
    """What is read, what is done to it, by how many workers, and what consumes it.

    Parameters
    ----------
    samples : ImageSource or DatasetSource
        From `photos` or `folder`; or a dataset, behind PyTorch's DataLoader.
    transforms : sequence of Transform
        What a worker does to a sample, in this order; a dataset has its own.
    batch_size : int
    workers : int
        0 prepares in the training loop, whichever the loader.
    loader : {"threads", "processes", "torch"}
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
    accelerator : VirtualAccelerator, CudaDevice or StepDevice

    Examples
    --------
    >>> pipe = InputPipeline(accelerator=VirtualAccelerator(step_time="30 ms"), workers=4)
    >>> pipe.replace(loader="processes").workers
    4
    """

    samples: ImageSource | MemorySource | DatasetSource = field(default_factory=photos)
    transforms: Sequence[Transform] = field(default_factory=photo_transforms)
    batch_size: int = 32
    workers: int = 2
    loader: str = "threads"
    prefetch: int = 2
    in_order: bool = True
    pinned: bool = True
    storage: VirtualStorage | None = None
    link: VirtualLink | None = None
    accelerator: Device = field(default_factory=lambda: VirtualAccelerator(step_time=Q_("30 ms")))

    def __post_init__(self) -> None:
        for name in ("batch_size", "prefetch", "workers"):
            object.__setattr__(self, name, _count(getattr(self, name), name))
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
                "accelerator must be a VirtualAccelerator or a CudaDevice, got "
                f"{self.accelerator!r:.80}. "
                'Write for example VirtualAccelerator(step_time="30 ms").'
            )
        if isinstance(self.samples, DatasetSource):
            object.__setattr__(self, "loader", "torch")
            return
        if not (hasattr(self.samples, "read") and hasattr(self.samples, "name")):
            raise InputError(
                f"samples must come from photos or folder, got {self.samples!r:.80}. "
                'Write for example photos("100 KB").'
            )
        object.__setattr__(self, "transforms", _check_transforms(self.transforms))

    def replace(self, **changes: Unchecked) -> InputPipeline:
        """A copy with some fields changed."""
        check_names(changes, [f.name for f in dataclasses.fields(self)], "An input pipeline")
        return dataclasses.replace(self, **changes)

    @property
    def step_known(self) -> bool:
        """False where a loader is measured alone."""
        return self.accelerator is not NO_STEP

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
        return _Prepared(
            getattr(value, "shape", ()), getattr(value, "dtype", np.dtype(object)), memory_size(value)
        )

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
        workers = f"{self.workers} worker{'s' if self.workers > 1 else ''} ({self.loader})"
        return f"{label} {f'with {workers}' if self.workers else 'in the training loop itself'}"


def _count(value: Unchecked, name: str) -> int:
    """One whole number; of workers there may be none at all."""
    if name == "workers" and type(value) is int and value == 0:
        return 0
    number = positive_int(value, name)
    if np.ndim(number):
        raise InputError(f"A pipeline has one {name}, got an array. Make one with pipe.replace({name}=...).")
    return int(number)


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


Given: TypeAlias = InputPipeline | Dataset | TorchLoader


def to_pipeline(
    given: Given, options: dict[str, Unchecked], *, function: str, or_also: str = "", alone: bool = False
) -> InputPipeline:
    """The pipeline of what was given.

    Parameters
    ----------
    given : InputPipeline, torch DataLoader or Dataset
        A loader keeps its settings.
    options : dict
        Those of a dataset that the caller chose.
    function, or_also : str
        Who asks, and what else that function takes, for messages.
    alone : bool
        Whether a loader may do without a training step. It is then measured alone.

    Raises
    ------
    InputError, UnknownNameError
    """
    if isinstance(given, InputPipeline):
        if options:
            raise InputError(
                f"{', '.join(options)} belong to a dataset, and this is an InputPipeline already. "
                "Change it with pipe.replace(...)."
            )
        return given
    if is_loader(given):
        step_known = any(options.get(name) is not None for name in STEP_OPTIONS)
        if alone and not step_known:
            options = options | {"accelerator": NO_STEP}
        options = options_of(given) | options
        given = options.pop("dataset")
    # A mapping or a text has items and a length, and is no dataset.
    if isinstance(given, Mapping | str | bytes) or not has_items(given):
        kinds = f"an InputPipeline, a DataLoader, {'' if or_also else 'or '}a dataset with items and a length"
        raise InputError(f"{function} takes {kinds}{or_also}, got {type(given).__name__}. Pass one of these.")
    for name in options:
        if name not in OPTIONS:
            raise UnknownNameError(f"A dataset has no option {name!r}. There is: {', '.join(OPTIONS)}.")
    return _around(given, **options)


def _around(
    dataset: Dataset,
    *,
    collate_fn: Callable[[list[Sample]], Batch] | None = None,
    accelerator: Device | None = None,
    step_time: Quantity | None = None,
    step: Callable[[Batch], object] | None = None,
    **settings: Unchecked,
) -> InputPipeline:
    """The pipeline of a dataset, in front of what says what a training step takes."""
    if sum(given is not None for given in (accelerator, step_time, step)) != 1:
        raise InputError(
            "A dataset needs an accelerator or the step_time of one, and not both. "
            'Pass for example step_time="30 ms": a time that you measured, or expect. Or pass '
            "step=train_step: a function that trains on one batch."
        )
    if accelerator is None:
        accelerator = StepDevice(step) if step_time is None else VirtualAccelerator(step_time=step_time)
    samples = DatasetSource(dataset, collate_fn)
    return InputPipeline(samples=samples, transforms=(), accelerator=accelerator, **settings)
