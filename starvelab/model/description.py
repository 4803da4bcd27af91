"""A pipeline: its parts put together, and the plain numbers that each stage reads of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from math import inf
from typing import Never, Self, TypeAlias

import numpy as np

from ..errors import InputError, own_errors
from ..tables import to_html
from ..units import Q_, Amount, Number, Quantity, Unchecked
from .assumptions import PHASES, TUTORIAL, Assumptions, not_assumptions
from .catalogue import Entry, check_entry, dataset_of, described
from .costs import Cost, Inputs
from .equality import EqualByFields
from .fields import (
    Part,
    choice,
    count,
    differs,
    first_field,
    is_name,
    not_described,
    read_supply,
    shape_of,
    short,
    switch,
)
from .parts import PARTS, Accelerator, Drive, Framework, Link, Workers
from .paths import FIELDS, NESTED, PATHS, PLAIN, by_path, check_fields
from .resources import ACCELERATOR, CPU, STORAGE, Labels
from .samples import DTYPE_BYTES, Samples, check_fit
from .solver import by_resource, costs, inputs_of, resolve
from .stages.data import DataInputs, DataModel
from .step import Step

Changes: TypeAlias = Mapping[str, Unchecked] | None


@dataclass(frozen=True, init=False, repr=False)
class Description(EqualByFields):
    """The parts of a pipeline and what is assumed of them; `starvelab.Pipeline` has the parameters.

    A plain value becomes the part whose first field it is, so ``workers=8`` is ``Workers(8)``.
    """

    model: Entry | None
    batch_size: Number
    dataset: Samples
    storage: Drive | None
    workers: Workers | Quantity
    link: Link | None
    hardware: Accelerator
    phase: str | None
    overlap: bool
    assumptions: Assumptions

    def __init__(
        self,
        /,
        *values: Never,
        model: Entry | None = None,
        batch_size: Number = 256,
        dataset: Entry | Samples | None = None,
        storage: Entry | Amount | Drive | None = None,
        workers: Number | Amount | Workers = 8,
        link: Entry | Amount | Link | None = None,
        hardware: Entry | Amount | Accelerator | None = None,
        phase: str | None = None,
        overlap: bool = True,
        assumptions: Assumptions = TUTORIAL,
        **unknown: Never,
    ) -> None:
        if values:
            raise InputError(
                f"The parts of a pipeline are passed by name, got {described(values[0])} without one. "
                "Pass for example model=Models.ResNet50, hardware=Hardware.Cloud.A100."
            )
        if unknown:
            check_fields(unknown, assumptions)
        if not isinstance(assumptions, Assumptions):
            raise not_assumptions(assumptions)
        self.__dict__.update(
            model=None if model is None else check_entry(model, "Models", "model"),
            batch_size=_BATCH.read(batch_size, "batch_size")[0],
            dataset=_NO_SAMPLES if dataset is None else part_of("dataset", dataset),
            storage=None if storage is None else part_of("storage", storage),
            workers=part_of("workers", workers),
            link=None if link is None else part_of("link", link),
            hardware=_NO_ACCELERATOR if hardware is None else part_of("hardware", hardware),
            phase=phase if phase is None else _PHASE.read(phase, "phase")[0],
            overlap=_OVERLAP.read(overlap, "overlap")[0],
            assumptions=assumptions,
        )
        if self.dataset.of is not None and self.model is not None:
            check_fit(self.model, self.dataset.of)
        _ = self.shape, self.numbers
        # A real device may stand for the accelerator, or none: then only a solve needs to know its time.
        timed = self.hardware.of is not None or self.hardware.rate is not None
        if timed or (self.dataset.source is None and self.hardware.device is None):
            _ = self.inputs

    @cached_property
    def numbers(self) -> Mapping[str, Number]:
        """What the stages read, in base units, by the names of the parameters of their `resolve`."""
        drive, link, accelerator = self.storage, self.link, self.hardware
        named = {**_ABSENT, "model": self.model, "phase": self.phase, "assumed": self.assumptions}
        for part in (self.dataset, drive, self.workers, link, accelerator):
            if isinstance(part, Part):
                named |= part.named
        named |= self.sizes
        named["batch_size"] = _BATCH.read(self.batch_size, "batch_size")[1]
        if isinstance(self.workers, Quantity):
            named["cpu_throughput"] = read_supply(self.workers, "workers")[1]
        # A loop that waits for each step begins no copy beside one.
        named["copy_overlaps"] = link is None or (link.runs_beside and accelerator.in_flight != 1)
        named |= {"alone": self.alone, "overlap": not self.in_turn, "pickled": named["pickled"] or None}
        if self.alone:
            # A loop that prepares its batches itself does so alone, and nobody hands them over.
            named |= {"workers": 1, "objects": None, "pickled": None}
        if drive is not None and isinstance(self.workers, Workers):
            named["read_wait"] = self._wait(named)
        return named

    def _wait(self, numbers: Mapping[str, Number]) -> Number:
        """What a worker waits for storage for a sample [s]; None where it does not."""
        reads, nobody_ahead = self._reads(numbers), self.alone or not numbers["read_ahead"]
        wait = DataModel.wait(reads, reads=nobody_ahead or self.in_turn)
        if self.in_turn:  # reading is counted as such
            wait = wait - DataModel.cost(reads).limit
        return wait if np.ndim(wait) or wait > 0 else None

    def _reads(self, numbers: Mapping[str, Number]) -> DataInputs:
        if numbers["storage"] is None:  # without a bandwidth bytes take no time
            numbers = {**numbers, "storage": inf}
        reads: DataInputs = inputs_of(DataModel, numbers)
        return reads

    @property
    def reads(self) -> DataInputs | None:
        """What its drive does with a sample; None without a drive."""
        return None if self.storage is None else self._reads(self.numbers)

    @property
    def labels(self) -> Labels:
        """What people read for its resources."""
        renamed = {CPU.name: "CPU"} if self.alone else {}
        if self.hardware.of is not None and self.hardware.of.get("family") == "TPU":
            renamed[ACCELERATOR.name] = "TPU"
        store = None if self.storage is None else self.storage.of
        if isinstance(store, Entry) and store.get("million_requests_price") is not None:
            renamed[STORAGE.name] = "bucket"
        return Labels(renamed)

    @property
    def alone(self) -> bool:
        """True if the training loop prepares its batches itself."""
        workers = self.workers
        return isinstance(workers, Workers) and not shape_of(workers.count) and bool(workers.count == 0)

    @property
    def fitting(self) -> Entry | None:
        """The data set that fits a model of other samples than ImageNet's, which the assumptions describe."""
        fitting = None if self.model is None else dataset_of(self.model)
        return None if fitting is None or fitting.path == "ImageNet" else fitting

    @property
    def samples(self) -> Entry | None:
        """The data set that is named, or the one that fits a model of other samples than ImageNet's."""
        fits = self.dataset.of is None and self.assumptions.dataset_of_model
        return self.fitting if fits else self.dataset.of

    @property
    def sizes(self) -> dict[str, Number]:
        """Bytes of a sample, `stored` and `transferred`, and the data set of its `samples`."""
        samples, stored, sent = self.samples, self.dataset.named["size"], self.dataset.named["transfer"]
        fact = None if samples is None else samples.facts.get("sample_size")
        if (
            stored is None
            and fact is not None
            and (fact.given or "sample_size" not in self.assumptions.given)
        ):
            stored = fact.number
        stored = self.assumptions.numbers["sample_size"] if stored is None else stored
        if sent is None or isinstance(sent, str):
            elements = None if self.model is None else self.model.get("input_elements")
            if elements is None and samples is not None:
                elements = samples.get("decoded_elements")
            dtype = sent or self.assumptions.transfer_dtype
            sent = stored if elements is None else elements * DTYPE_BYTES[dtype]
        return {"stored": stored, "transferred": sent, "samples": samples}

    def __repr__(self) -> str:
        fields = {name: getattr(self, name) for name in FIELDS}
        shown = (n for n, value in fields.items() if n == "batch_size" or differs(value, _DEFAULTS[n]))
        return f"{type(self).__name__}({', '.join(f'{n}={written(fields[n])}' for n in shown)})"

    def _repr_html_(self) -> str:
        values = ((name, written(getattr(self, name))) for name in FIELDS)
        rows = [(name, value) for name, value in values if value != "None"]
        return to_html(("part", "value"), rows, caption="The parts of a pipeline")

    @property
    def swept(self) -> tuple[str, ...]:
        """The fields that are arrays, those of parts with the part's name before them."""
        return tuple(self._shapes)

    @cached_property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        shapes = {"batch_size": shape_of(self.batch_size)}
        for name in PARTS:
            part = getattr(self, name)
            if isinstance(part, Part):
                shapes |= {PLAIN.get(p := f"{name}.{path}", p): s for path, s in part.shapes.items()}
            else:  # what all workers supply, or nothing
                shapes[name] = shape_of(part)
        return {path: shape for path, shape in shapes.items() if shape}

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that the swept fields have together."""
        shapes = self._shapes
        if not shapes:
            return ()
        try:
            return np.broadcast_shapes(*shapes.values())
        except ValueError:
            came = ", ".join(f"{name} of shape {shape}" for name, shape in shapes.items())
            raise InputError(
                f"Swept fields must have shapes that broadcast, got {came}. "
                "Use sweep(...) for every combination."
            ) from None

    @own_errors
    def replace(self, changes: Changes = None, /, **fields: Unchecked) -> Self:
        """A copy with some fields changed.

        Parameters
        ----------
        changes : mapping of str, optional
            Fields of parts by their path: ``{"workers.cores": 16, "storage.cache.share": 0.3}``.
        **fields
            A part replaces the part. Any other value replaces the part's first field and keeps the others:
            ``hardware=Hardware.Cloud.H100`` keeps the number of accelerators.

        Raises
        ------
        InputError, MissingValueError, UnknownNameError
        """
        changed_fields = {name: getattr(self, name) for name in FIELDS}
        for path, value in {**fields, **by_path(changes)}.items():
            name, _, field = path.partition(".")
            check_fields([path], self.assumptions)
            changed_fields[name] = changed(name, changed_fields[name], field, value)
        return type(self)(**changed_fields)

    @cached_property
    def inputs(self) -> Mapping[str, Inputs]:
        """The plain numbers of each modeled stage, by its name."""
        return resolve(self.numbers)

    @property
    def size(self) -> Quantity:
        """Stored bytes of one sample [data]."""
        size = self.dataset.size
        return Q_(self.sizes["stored"] / 1e3, "KB") if size is None else Q_(size)

    @property
    def transferred(self) -> Quantity:
        """Bytes of one sample as they cross the link [data]."""
        size = self.dataset.transfer
        return size if isinstance(size, Quantity) else Q_(self.sizes["transferred"] / 1e3, "KB")

    def costs(self, *, exact: bool = False) -> dict[str, Cost]:
        """Cost of each modeled stage, in floats or in exact fractions."""
        return costs(self.inputs, self.numbers["accelerators"], exact=exact)

    def resource_costs(self, *, exact: bool = False) -> dict[str, Cost]:
        """Cost of each modeled resource: its stages one after the other."""
        return by_resource(self.costs(exact=exact))

    def solve(self, changes: Changes = None, /, **fields: Unchecked) -> Step:
        """Compute the time of a step, as `starvelab.Pipeline` does."""
        raise NotImplementedError

    @property
    def in_turn(self) -> bool:
        """True if nothing overlaps, also because a loop without workers waits for each step."""
        return not self.overlap or (self.alone and self.hardware.in_flight == 1)


_BATCH, _PHASE, _OVERLAP = (
    made.metadata["meaning"] for made in (count(sweepable=True), choice(*PHASES), switch())
)
_NO_SAMPLES, _NO_ACCELERATOR = Samples(), Accelerator()


# What the stages read of a part that is not there: its defaults, and nothing of the values in it.
_ABSENT = {**Framework().named, "cpu_throughput": None, "read_wait": None} | {
    meaning.stage or path.rpartition(".")[2]: None
    if default is dataclasses.MISSING or path.count(".") > 1
    else default
    for path, meaning, default in PATHS
}
_DEFAULTS = {name: parameter.default for name, parameter in signature(Description).parameters.items()}
_DEFAULTS |= {"dataset": _NO_SAMPLES, "workers": Workers(), "hardware": _NO_ACCELERATOR}


def part_of(name: str, value: Unchecked) -> Part | Quantity:
    """Return the part of a field: the part itself, or one whose first field is a plain value."""
    part = PARTS[name]
    if isinstance(value, Part):
        if not isinstance(value, part):
            raise not_described(name, part, value)
        return value
    if name == "workers" and isinstance(value, str | Quantity):
        return read_supply(value, "workers")[0]
    if name == "hardware" and not (isinstance(value, Entry) or is_name(value)):
        return Accelerator(rate=value)
    return part(**{first_field(part): value})


def changed(name: str, current: Unchecked, field: str, value: Unchecked) -> Unchecked:
    """A field of a pipeline after a change of it, or of a field of its part."""
    part = PARTS.get(name)
    if part is None or (not field and (value is None or isinstance(value, Part))):
        return value
    made = current if isinstance(current, part) else None
    if not field:
        if made is None or (name == "workers" and isinstance(value, str | Quantity)):
            return part_of(name, value)
        first = "rate" if name == "hardware" and not isinstance(value, Entry) else first_field(part)
        return made.replace(**{first: value})
    field, _, inner = field.partition(".")
    if inner:
        held = None if made is None else getattr(made, field)
        nested = NESTED[part, field]
        value = nested(**{inner: value}) if held is None else held.replace(**{inner: value})
    if made is not None:
        return made.replace(**{field: value})
    if first_field(part) == field or (part, field) == (Drive, "requests"):
        return part(**{field: value})
    raise InputError(
        f"{name}.{field} qualifies a part that the pipeline does not have. "
        f"Pass {name}={part.__name__}(..., {field}=...)."
    )


def written(value: Unchecked) -> str:
    """A field as it stands in the representation of a pipeline: a part that holds one value as that value."""
    if isinstance(value, Assumptions):
        return value.name
    if isinstance(value, Part) and [*value.given] in ([], [first_field(type(value))]):
        value = getattr(value, first_field(type(value)))
    return short(value)


def check_asked(
    pipeline: Description,
    question: str,
    *,
    whatever: tuple[str, ...] = (),
    one_host: bool = False,
    overlapping: bool = False,
) -> None:
    """Reject a pipeline for which a question has no answer, such as one with swept fields but `whatever`."""
    if one_host and (ranks := pipeline.hardware.ranks.given):
        came = ", ".join(f"{name}={value}" for name, value in ranks.items())
        raise InputError(f"{question} looks at one host, got Ranks({came}). Leave ranks out.")
    if swept := [name for name in pipeline.swept if name not in whatever]:
        raise InputError(
            f"{question} looks at one point, got several values of {', '.join(swept)}. "
            "Pass one value of each."
        )
    if overlapping and (pipeline.alone or not pipeline.overlap):  # no resource hides behind another
        got, wanted = "overlap=False: then the GPU always waits", "overlap=True"
        if pipeline.alone:
            got, wanted = "a loop without workers: then it prepares between its steps", "workers=1"
        raise InputError(f"{question} looks at stages that overlap, got {got}. Pass {wanted}.")
