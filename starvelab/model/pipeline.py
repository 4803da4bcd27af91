"""The specification of an input pipeline: its fields, checked and resolved when it is made."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..errors import InputError, UnknownNameError, check_names
from ..fields import choice, count, meanings, number, quantity, shape_of, supply, switch
from ..tables import cell
from ..units import Q_, Number, Quantity, Unchecked, format_quantity
from .assumptions import PHASES, TUTORIAL, Assumptions, check_assumptions
from .catalogue import Entry, check_entry, dataset_of, described
from .cost import Cost
from .inputs import Inputs
from .scaling import LOADERS, loader_kinds
from .solver import by_resource, costs, resolve, solve
from .stages.data import storage_bandwidth
from .stages.transfer import link_bandwidth
from .step import Step
from .together import check_together
from .worker_time import takes_images, worker_time

# Bytes of one number as it crosses the link.
DTYPE_BYTES = {"uint8": 1, "float16": 2, "float32": 4}


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """An input pipeline in front of an accelerator, or of several on one host.

    Parameters
    ----------
    model, hardware : catalogue entries
        Not needed beside `accelerator_rate`.
    dataset : catalogue entry, optional
        Gives the stored size of a sample and the CPU time to prepare it, unless they are given. It must fit
        the model.
    batch_size : int or array
        Of each accelerator.
    workers : int or array
        CPU workers that prepare samples, all of the host's together.
    sample_size : quantity [data], optional
        Stored bytes of one sample; that of the data set or the assumptions unless given.
    worker_rate : quantity [data/time] or [sample/time], optional
        What one worker prepares. Unless given, that of the data set, the loader or the assumptions; a result
        says so where that was measured on samples of another size.
    cpu_time : quantity [time], optional
        In place of `worker_rate`: the CPU time that one worker takes for a sample, alone.
    cores : int or array, optional
        Physical cores of the host, all on which its workers may run, and not those that they keep busy: ten
        workers crowd each other on 10 cores, and hardly on 64. A vCPU is a hardware thread, so 64 vCPU are 32
        cores. Unless given, under `PUBLISHED` those of the accelerators' host, where the catalogue knows
        them; otherwise one for each worker.
    loader : {"processes", "threads", "pool"}, optional
        The kind of loader, which decides how its workers scale: worker processes, threads of one Python
        process, in a build of Python with the global lock, or a pool of C++ threads such as DALI's. As the
        assumptions say unless given; assumptions of your own go before it.
    read_wait : quantity [time], optional
        For each sample: how long its worker waits for storage before it can prepare it, as with small files
        read one by one. The mean over all samples, also those that memory serves. It takes the worker's time
        and no core's.
    handover_time : quantity [time], optional
        For each batch: what its worker spends on joining and handing it over.
    cpu_throughput : quantity [data/time] or [sample/time], optional
        What the CPU supplies altogether; `workers`, `worker_rate` and `loader` are then not looked at, and
        the other values of single workers are rejected.
    storage : catalogue entry or quantity [data/time], optional
        The drive; without it reading is not modeled.
    drives : int or array
        How many such drives, spindles or connections serve the host side by side.
    samples_per_request : int or array
        How many samples one request to the drive brings: 1 where each is a file of its own, which is the
        default. Where they are packed, the bytes of a read over those of a sample: shards that are read 4 MB
        at a time bring 36 images of 115 KB.
    cached_fraction : float or array, optional
        Share of the reads that the host's memory serves, 0 to 1. `epochs` says how large it is.
    cache_bandwidth : quantity [data/time], optional
        How fast it serves them; unless given, that takes no time beside the workers' own.
    link : catalogue entry or quantity [data/time], optional
        The host-to-device link; without it the copy is not modeled.
    transfer_size : quantity [data], optional
        Bytes of one sample as they cross the link; unless given, those of the decoded sample in `dtype`.
    dtype : {"uint8", "float16", "float32"}, optional
        As what the numbers of a decoded sample cross the link; that of the assumptions unless given.
    pinned : bool
        Whether the copy starts from pinned memory.
    device_input_time : quantity [time], optional
        Accelerator time that input work takes for each sample in kernels, such as augmenting, or decoding
        where the accelerator has no decoder for such files.
    decoder_time : quantity [time], optional
        What the accelerator's decoder takes for each sample, while its kernels compute:
        ``Q_("1 img") / hardware.image_decode_rate`` where the catalogue knows that rate.
    accelerator_rate : quantity [sample/time], optional
        What one accelerator was measured to do with its input at hand; goes before any rate of the catalogue
        and before peak times efficiency.
    framework : str, optional
        Whose measured rate to take from the catalogue or to extrapolate from, for example "MXNet"; its
        default, where the assumptions believe in measured rates, unless given.
    compiled : bool
        Whether the host launches a step as a whole, as CUDA graphs and ``torch.compile(mode=
        "reduce-overhead")`` do, and not one kernel after the other. A TPU's step always is.
    step_overhead : quantity [time], optional
        Work of the accelerator in each step, on top: synchronizing several of them.
    host_time : quantity [time], optional
        What the training loop itself takes in each step while the accelerator has nothing to do: logging,
        metrics, waiting for a result such as ``loss.item()``. Not what the workers take, and not launching.
    accelerators : int or array
        How many of them share this host's workers, cores and drive. Each has a link of its own, and all take
        their steps together.
    copy_overlaps : bool
        False where the copy runs on the stream that computes: the accelerator waits for it in each step.
    precision : {"fp16", "bf16", "tf32", "fp32"}
    phase : {"forward", "training"}, optional
        That of the assumptions unless given.
    overlap : bool
        False puts everything one after the other: the sum of all stages.
    assumptions : Assumptions

    Notes
    -----
    Numbers and quantities may be arrays whose shapes broadcast, as in NumPy; `sweep` tries every combination.
    A quantity may be given as text: ``sample_size="5 MB"``.

    Examples
    --------
    >>> from starvelab import Hardware, Models
    >>> wall = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256).solve()
    >>> wall.bottleneck, round(wall.utilization, 3), round(wall.slowdown, 2)
    ('CPU', 0.183, 5.45)
    """

    model: Entry | None = None
    hardware: Entry | None = None
    dataset: Entry | None = None
    batch_size: Number = count(256, sweepable=True)
    workers: Number = count(8, sweepable=True)
    sample_size: Quantity | None = quantity("B", None, sweepable=True)
    worker_rate: Quantity | None = supply(None, sweepable=True)
    cpu_throughput: Quantity | None = supply(None, sweepable=True)
    storage: Entry | Quantity | None = quantity("B/s", None, sweepable=True)
    drives: Number = count(1, sweepable=True)
    samples_per_request: Number = count(1, sweepable=True)
    cached_fraction: Number | None = number(None, zero=True, maximum=1, sweepable=True)
    cache_bandwidth: Quantity | None = quantity("B/s", None, sweepable=True)
    link: Entry | Quantity | None = quantity("B/s", None, sweepable=True)
    transfer_size: Quantity | None = quantity("B", None, sweepable=True)
    dtype: str | None = choice(*DTYPE_BYTES, default=None)
    pinned: bool = switch(True)
    device_input_time: Quantity | None = quantity("s", None, zero=True, sweepable=True)
    decoder_time: Quantity | None = quantity("s", None, sweepable=True)
    accelerator_rate: Quantity | None = quantity("sample/s", None, sweepable=True)
    framework: str | None = None
    compiled: bool = switch(False)
    step_overhead: Quantity | None = quantity("s", None, zero=True, sweepable=True)
    loader: str | None = choice(*LOADERS, default=None)
    host_time: Quantity | None = quantity("s", None, zero=True, sweepable=True)
    cpu_time: Quantity | None = quantity("s", None, sweepable=True)
    cores: Number | None = count(None, sweepable=True)
    read_wait: Quantity | None = quantity("s", None, zero=True, sweepable=True)
    handover_time: Quantity | None = quantity("s", None, zero=True, sweepable=True)
    accelerators: Number = count(1, sweepable=True)
    copy_overlaps: bool = switch(True)
    precision: str = "fp16"
    phase: str | None = choice(*PHASES, default=None)
    overlap: bool = switch(True)
    assumptions: Assumptions = TUTORIAL

    def __post_init__(self) -> None:
        check_assumptions(self.assumptions)
        for name, kind in (("model", "Models"), ("dataset", "Datasets")):
            if getattr(self, name) is not None:
                check_entry(getattr(self, name), kind, name)
        numbers = {}
        for field in dataclasses.fields(self):
            value, numbers[field.name] = self._read(field.name)
            object.__setattr__(self, field.name, value)
        object.__setattr__(self, "_numbers", numbers)
        check_together(self)
        _ = self.shape
        object.__setattr__(self, "_inputs", resolve({**numbers, **self.sizes}, self.assumptions))

    def _read(self, name: str) -> tuple[Unchecked, Number]:
        """A field as it is kept (texts become quantities), and as a plain number in base units."""
        value, meaning = getattr(self, name), meanings(Pipeline).get(name)
        if meaning is None or (value is None and DEFAULTS[name] is None):
            return value, value
        if not isinstance(value, Entry):
            return meaning.read(value, name)
        if name not in _ENTRIES:
            entry = described(value)
            raise InputError(
                f"{name} must be a quantity, got {entry}. Pass one of its values: {entry}.<name>."
            )
        return value, value

    @property
    def samples(self) -> Entry | None:
        """The data set that is named, or the one that fits a model of other samples than ImageNet's."""
        if self.dataset is not None or self.model is None:
            return self.dataset
        fitting = dataset_of(self.model) if self.assumptions.dataset_of_model else None
        # The sample size and the worker rate of the assumptions are those of ImageNet.
        return None if fitting is None or fitting.path == "ImageNet" else fitting

    @property
    def foreign_samples(self) -> str:
        """That the samples are those of the assumptions although the model takes others; "" otherwise."""
        if self.model is None or self.samples is not None or self.sample_size is not None:
            return ""
        fitting = dataset_of(self.model)
        if fitting is None or fitting.path == "ImageNet":
            return ""
        return (
            f"The samples of {format_quantity(self.size)} are those of the assumptions: pass "
            f"dataset={described(fitting)} for those of {self.model.name}."
        )

    @property
    def foreign_rate(self) -> str:
        """That what a worker prepares was measured on other samples than these; "" otherwise."""
        if any(self.numbers[name] is not None for name in ("cpu_throughput", "worker_rate", "cpu_time")):
            return ""
        kind, sizes = None if self.loader is None else loader_kinds()[self.loader], self.sizes
        return worker_time(
            self.assumptions, sizes["stored"], samples=sizes["samples"], images=sizes["images"], kind=kind
        ).note

    @property
    def sizes(self) -> dict[str, Number]:
        """Bytes of a sample, `stored` and `transferred`; its `samples`, and whether they are `images`."""
        samples, stored, sent = self.samples, self.numbers["sample_size"], self.numbers["transfer_size"]
        own = None if samples is None else samples.facts.get("sample_size")
        if stored is None and own is not None and (own.given or not self.assumptions.given("sample_size")):
            stored = own.number
        stored = self.assumptions.numbers["sample_size"] if stored is None else stored
        if sent is None:
            elements, dtype = self._elements, self.dtype or self.assumptions.transfer_dtype
            sent = stored if elements is None else elements * DTYPE_BYTES[dtype]
        images = takes_images(samples, self.model)
        return {"stored": stored, "transferred": sent, "samples": samples, "images": images}

    @property
    def _elements(self) -> Number | None:
        """Numbers of a decoded sample as it is handed to the model."""
        known = (
            entry.get(name)
            for entry, name in ((self.model, "input_elements"), (self.samples, "decoded_elements"))
            if entry is not None
        )
        return next((elements for elements in known if elements is not None), None)

    def __repr__(self) -> str:
        given = (
            name for name in DEFAULTS if name == "batch_size" or getattr(self, name) is not DEFAULTS[name]
        )
        return f"Pipeline({', '.join(f'{name}={_short(getattr(self, name))}' for name in given)})"

    @property
    def swept(self) -> tuple[str, ...]:
        """The fields that are arrays."""
        return tuple(name for name in SWEEPABLE if shape_of(getattr(self, name)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that the swept fields have together.

        Raises
        ------
        InputError
            If their shapes do not broadcast.
        """
        shapes = {name: shape_of(getattr(self, name)) for name in self.swept}
        try:
            return np.broadcast_shapes(*shapes.values())
        except ValueError:
            came = ", ".join(f"{name} of shape {shape}" for name, shape in shapes.items())
            raise InputError(
                f"Swept fields must have shapes that broadcast, got {came}. "
                "Use sweep(...) for every combination."
            ) from None

    def replace(self, **changes: Unchecked) -> Self:
        """A copy with some fields changed.

        Raises
        ------
        InputError, MissingValueError, UnknownNameError
        """
        check_fields(changes)
        return dataclasses.replace(self, **changes)

    @property
    def numbers(self) -> Mapping[str, Number]:
        """Every field as a plain number in base units, by name; what has no unit stays as it is."""
        numbers: Mapping[str, Number] = self.__dict__["_numbers"]
        return numbers

    @property
    def inputs(self) -> Mapping[str, Inputs]:
        """The plain numbers of each modeled stage, by its name."""
        inputs: Mapping[str, Inputs] = self.__dict__["_inputs"]
        return inputs

    @property
    def size(self) -> Quantity:
        """Stored bytes of one sample [data]."""
        return Q_(self.sizes["stored"] / 1e3, "KB") if self.sample_size is None else self.sample_size

    @property
    def transferred(self) -> Quantity:
        """Bytes of one sample as they cross the link [data]."""
        return Q_(self.sizes["transferred"] / 1e3, "KB") if self.transfer_size is None else self.transfer_size

    @property
    def storage_bandwidth(self) -> Quantity:
        """The bandwidth of the drive that the pipeline names [data/time]."""
        return storage_bandwidth(storage=self.storage)

    @property
    def link_bandwidth(self) -> Quantity:
        """The bandwidth of the link that the pipeline names [data/time], as its assumptions believe it."""
        return link_bandwidth(self.link, pinned=self.pinned, rate=self.assumptions.link_rate)

    def costs(self, *, exact: bool = False) -> dict[str, Cost]:
        """Cost of each modeled stage, in floats or in exact fractions."""
        return costs(self.inputs, self.numbers["accelerators"], exact=exact)

    def resource_costs(self, *, exact: bool = False) -> dict[str, Cost]:
        """Cost of each modeled resource: its stages one after the other."""
        return by_resource(self.costs(exact=exact))

    def solve(self, **changes: Unchecked) -> Step:
        """Time a step; keyword arguments change fields first, and may be arrays.

        Raises
        ------
        InputError, MissingValueError, UnknownNameError
        """
        return self.replace(**changes).solve() if changes else solve(self)


# The fields that a catalogue entry may stand in.
_ENTRIES = ("storage", "link")
DEFAULTS: Mapping[str, Unchecked] = {field.name: field.default for field in dataclasses.fields(Pipeline)}
# The fields that may be arrays.
SWEEPABLE = tuple(name for name, meaning in meanings(Pipeline).items() if meaning.sweepable)


def check_fields(names: Iterable[str]) -> None:
    """Reject what is no field of a pipeline."""
    names = list(names)
    for name in names:
        if name not in DEFAULTS and name in meanings(Assumptions):
            raise UnknownNameError(
                f"A pipeline has no field {name!r}: it is one of its assumptions. "
                f"Pass assumptions=PUBLISHED.replace({name}=...)."
            )
    check_names(names, DEFAULTS, "A pipeline")


def _short(value: Unchecked) -> str:
    """A field as it stands in the representation of a pipeline."""
    if isinstance(value, Entry):
        return described(value)
    if isinstance(value, Assumptions):
        return value.name
    return cell(value) if isinstance(value, Quantity) else f"{value!r:.80}"
