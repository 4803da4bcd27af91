"""What a solved pipeline says about a step: the time of each resource, what binds, how busy each one is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import InputError
from ..tables import Share, TableRepr, cell, percent
from ..units import Q_, Number, Quantity, Unchecked, format_number
from .assumptions import COVERAGE
from .costs import as_float, name_of_largest
from .equality import EqualByFields
from .resources import ACCELERATOR, CPU, TIE_ORDER, Labels, capitalized
from .stages import STAGES, DeviceInputModel, SingleNodeModel, StepOverheadModel, TransformationModel
from .stages.single_node import fits, launching, parts

_AWAITED = {stage.NAME: stage.AWAITED for stage in STAGES if stage.AWAITED}


@dataclass(frozen=True, repr=False)
class Ranges(TableRepr):
    """The values between which the truth lies in four cases of five (`COVERAGE`).

    The lowest and the highest that the sources of a pipeline's values allow, and the model's own error on
    top. Each needs other solves, which are made when it is first read.
    """

    find: Callable[[str], tuple[Any, Any]]

    headers = ("quantity", "lowest", "highest")
    summary = f"{percent(COVERAGE, 0)} range"

    @cached_property
    def throughput(self) -> tuple[Quantity, Quantity]:
        """The lowest and the highest throughput [sample/time]."""
        return self.find("throughput")

    @cached_property
    def utilization(self) -> tuple[Any, Any]:
        """The lowest and the highest utilization, 0 to 1."""
        return self.find("utilization")

    @property
    def rows(self) -> list[list[Unchecked]]:
        """One row for each quantity."""
        return [["throughput", *self.throughput], ["utilization", *map(percent, self.utilization)]]


@dataclass(frozen=True, repr=False)
class Step(EqualByFields, TableRepr):
    """The result of `Pipeline.solve`; every value has the shape of the swept arguments.

    Attributes
    ----------
    pipeline : Pipeline
        The one that was solved.
    stage_times, resource_times : mapping of str to quantity [time]
        Only what is modeled: a pipeline without `storage` has no "read".
    step_time : quantity [time]
    throughput : quantity [sample/time]
        Of all accelerators of all hosts together.
    utilization : float
        Busy share of the accelerator in a step, 0 to 1. `nvidia-smi` shows something else: the share of time
        in which any kernel ran. A copy, a loop or a launch that the accelerator waits for is not counted as
        busy, except the launches of the walkthrough.
    bottleneck : str
        The slowest resource.
    """

    pipeline: Any = field(compare=False)  # Any: a Description, which stands above what it is solved by
    stage_times: Mapping[str, Quantity]
    resource_times: Mapping[str, Quantity]
    step_time: Quantity
    throughput: Quantity
    # Any: one value, or an array where the pipeline is swept, and no checker knows which.
    utilization: Any
    bottleneck: Any

    headers = ("resource", "time of a step", "idle")

    @property
    def batch_size(self) -> Any:
        """Samples of each accelerator."""
        return self.pipeline.numbers["batch_size"]

    @property
    def accelerators(self) -> Any:
        """How many accelerators each host has."""
        return self.pipeline.numbers["accelerators"]

    @property
    def hosts(self) -> Any:
        """How many hosts train together."""
        return self.pipeline.numbers["hosts"]

    @property
    def overlap(self) -> bool:
        """True if stages on different resources overlap."""
        return bool(self.pipeline.numbers["overlap"])

    @property
    def stall(self) -> Any:
        """Share of a step the accelerator waits; utilization + stall = 1."""
        return 1 - self.utilization

    @property
    def slowdown(self) -> Any:
        """Step time over the accelerator's own."""
        return 1 / self.utilization

    @property
    def next_bottleneck(self) -> Any:
        """The slowest of the other resources."""
        of, taken = self.bottleneck, self.resource_times
        others = {n: np.where(of == n, -np.inf, taken[n].m_as("ms")) for n in TIE_ORDER if n in taken}
        return name_of_largest(others)

    @property
    def headroom(self) -> Mapping[str, Any]:
        """Idle share of each resource in a step; the bottleneck has 0."""
        step = self.step_time.m_as("ms")
        return {name: as_float(1 - time.m_as("ms") / step) for name, time in self.resource_times.items()}

    @property
    def demand_at_ceiling(self) -> Quantity:
        """Bandwidth that a host's storage would need if the accelerator never waited [data/time].

        Without what memory serves.
        """
        demand: Quantity = self.actual_demand / self.utilization
        return demand

    @property
    def actual_demand(self) -> Quantity:
        """Bandwidth that is really read from a host's storage, limited by what binds [data/time]."""
        numbers = self.pipeline.numbers
        samples = self.batch_size * self.accelerators / self.step_time.m_as("s")
        read = numbers["stored"] * (1 - (numbers["cached_fraction"] or 0))
        return Q_(samples * read / 1e9, "GB/s")

    @property
    def basis(self) -> str:
        """Where the model's time on the accelerator comes from: "peak x efficiency", or a measured rate."""
        return SingleNodeModel.among(self.pipeline.inputs).basis

    @property
    def cause(self) -> Any:
        """The largest part of the accelerator's own time; in a tie the first.

        "compute", "memory", "overhead", or "input" if input work on the accelerator takes more than each of
        these. If only the rate of a step is known: "model", unless one of the latter two takes more.
        """
        taken = {name: time.m_as("s") for name, time in self.stage_times.items()}
        made_of = parts(SingleNodeModel.among(self.pipeline.inputs), self.batch_size)
        shares = {"model": taken[SingleNodeModel.NAME]} if made_of is None else made_of
        shares["overhead"] = shares.get("overhead", 0.0) + taken.get(StepOverheadModel.NAME, 0.0)
        shares["input"] = taken.get(DeviceInputModel.NAME, 0.0)
        cause, shape = name_of_largest(shares), np.shape(self.utilization)
        return np.broadcast_to(cause, shape) if shape else str(cause)

    @property
    def feasible(self) -> Any:
        """True if the step fits in the memory of the accelerator, or if that is not known."""
        feasible, shape = self._fits[0], np.shape(self.utilization)
        return np.broadcast_to(feasible, shape) if shape else bool(feasible)

    @property
    def infeasible_reason(self) -> str:
        """Why the step does not fit in memory; empty if it does."""
        return self._fits[1]

    @cached_property
    def _fits(self) -> tuple[Number, str]:
        return fits(SingleNodeModel.among(self.pipeline.inputs).memory, self.batch_size)

    @cached_property
    def waits(self) -> Mapping[str, Quantity]:
        """Time of each resource in which it only waits [time]; without those that never do.

        Workers wait for what they read, the accelerator for launches.
        """
        crew = TransformationModel.among(self.pipeline.inputs)
        model = SingleNodeModel.among(self.pipeline.inputs)
        seconds = {ACCELERATOR.name: launching(model, self.batch_size)}
        if crew.read_wait is not None:
            busy = TransformationModel.cost(replace(crew, read_wait=None)).at(self.batch_size)
            taken = self.stage_times[TransformationModel.NAME].m_as("s")
            seconds[CPU.name] = taken - self.accelerators * busy
        return {name: Q_(as_float(time * 1e3), "ms") for name, time in seconds.items() if np.any(time)}

    @cached_property
    def ranges(self) -> Ranges:
        """The ranges in which throughput and utilization lie."""
        return Ranges(self.pipeline._range_of)

    @property
    def ranged(self) -> bool:
        """True if the assumptions have ranges, so that the step shows its own."""
        return bool(self.pipeline.assumptions.ranged)

    @property
    def labels(self) -> Labels:
        """What people read for each resource."""
        labels: Labels = self.pipeline.labels
        return labels

    @property
    def spoken_range(self) -> str:
        """Between which throughputs the truth lies, where the assumptions have ranges; or empty."""
        if not self.ranged or np.ndim(self.utilization):
            return ""
        low, high = (format_number(end.m_as("img/s")) for end in self.ranges.throughput)
        return "" if low == high else f"{percent(COVERAGE, 0)} range {low} to {high} img/s"

    @property
    def awaited(self) -> Mapping[str, str]:
        """What the accelerator waits for within its part of a step, by stage."""
        taken = self.stage_times
        return {s: label for s, label in _AWAITED.items() if s in taken and np.any(taken[s].magnitude > 0)}

    @property
    def spoken_busy(self) -> str:
        """How much of its time the accelerator works, where it waits for the rest of it; or empty."""
        taken, works = self.resource_times[ACCELERATOR.name], self.utilization * self.step_time
        waited, some = (taken - works).m_as("ms"), 1e-9 * taken.m_as("ms")
        if np.all(waited <= some):
            return self._launches_counted
        awaited_time = sum(self.stage_times[stage].m_as("ms") for stage in self.awaited)
        launches = ["launches"] if np.any(waited - awaited_time > some) else []
        *first, last = [*launches, *self.awaited.values()]
        awaited, chip = f"{', '.join(first)}{' and ' * bool(first)}{last}", self.labels.the(ACCELERATOR.name)
        if np.ndim(waited):
            return f"{capitalized(chip)}'s time includes its waits for {awaited}, which do not count as busy."
        counted = f"Busy counts {cell(works)} of {chip}'s {cell(taken)}"
        return f"{counted}: for the rest it waits for {awaited}."

    @property
    def _launches_counted(self) -> str:
        """Say that launches count as busy, where a step consists mostly of them; or empty."""
        launches, taken = self.waits.get(ACCELERATOR.name), self.resource_times[ACCELERATOR.name]
        if launches is None or np.ndim(self.utilization) or 2 * launches <= taken:
            return ""
        rest = self.utilization - (launches / self.step_time).m_as("")
        return f"Busy counts {cell(launches)} of launches as work: without them it is {percent(rest)}."

    @property
    def note(self) -> str:
        """Below the table: why the step cannot run, what counts as busy, and which values nobody measured."""
        remarks = self.pipeline._remarks(self)
        return " ".join(filter(None, (self.infeasible_reason, self.spoken_busy, *remarks)))

    @property
    def rows(self) -> list[list[Unchecked]]:
        """One row for each resource."""
        idle = {n: percent(share) if np.ndim(share) else Share(share) for n, share in self.headroom.items()}
        return [[self.labels[name], time, idle[name]] for name, time in self.resource_times.items()]

    @property
    def summary(self) -> str:
        """What binds, in one line."""
        if shape := np.shape(self.utilization):
            return f"{np.prod(shape)} steps, an array of shape {shape}"
        runs = "" if self.feasible else "Not feasible: "
        allowed = f" ({self.spoken_range})" if self.spoken_range else ""
        return (
            f"{runs}A step of {cell(self.step_time)}, {cell(self.throughput)}{allowed}: "
            f"{self.labels.does(self.bottleneck, 'bind')}, and {self.labels.the(ACCELERATOR.name)} is busy "
            f"{percent(self.utilization)}"
        )


def one_step(step: Unchecked, question: str) -> None:
    """Reject what is no solved pipeline, or one solved at many points."""
    if not isinstance(step, Step):
        raise InputError(
            f"{question} looks at a solved pipeline, got {type(step).__name__}. Pass pipeline.solve()."
        )
    if np.ndim(step.utilization):
        many = np.size(step.utilization)
        raise InputError(f"{question} looks at one point, got {many}. Solve for one.")
