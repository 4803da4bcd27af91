"""What a solved pipeline says about a step: the time of each resource, what binds, how busy each one is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..tables import TableRepr, cell, percent
from ..units import Q_, Number, Quantity, Unchecked, format_number
from .assumptions import COVERAGE
from .disagreement import corners
from .resources import ACCELERATOR, LABELS, STORAGE

# Stages for which the accelerator waits, and what they are called.
_AWAITED = {"host time": "the training loop", "serialized copy": "the copy"}


@dataclass(frozen=True, repr=False)
class Step(TableRepr):
    """What `Pipeline.solve` found; every value has the shape of the swept arguments.

    Attributes
    ----------
    stage_times, resource_times : mapping of str to quantity [time]
        Only what is modeled: a pipeline without `storage` has no "read".
    step_time : quantity [time]
    throughput : quantity [sample/time]
        Of all accelerators together.
    utilization : float
        Busy share of the accelerator in a step, 0 to 1. `nvidia-smi` shows something else: the share of time
        in which any kernel ran. A copy, a loop or a launch that the accelerator waits for is not counted as
        busy.
    stall : float
        Share of a step the accelerator waits; utilization + stall = 1.
    slowdown : float
        Step time over the accelerator's own.
    bottleneck, next_bottleneck : str
        The slowest resource, and the slowest of the others ("" if there is no other).
    headroom : mapping of str to float
        Idle share of each resource in a step; the bottleneck has 0.
    cause : str
        What takes the largest part of the accelerator's own time: "compute", "memory", "overhead", or "input"
        where input work on the accelerator takes more than each of these. Of a step that is known by its rate
        alone: "model", unless one of the latter two takes more.
    basis : str
        Where the time of the model on the accelerator comes from: "peak x efficiency", or a measured rate.
    demand_at_ceiling : quantity [data/time]
        What storage would have to deliver if the accelerator never waited; without what memory serves.
    actual_demand : quantity [data/time]
        What is really read from storage, behind whatever binds.
    feasible : bool
    infeasible_reason : str
    """

    pipeline: Unchecked  # the Pipeline itself, whose module imports this one
    stage_times: Mapping[str, Quantity]
    resource_times: Mapping[str, Quantity]
    step_time: Quantity
    throughput: Quantity
    utilization: Number
    stall: Number
    slowdown: Number
    bottleneck: Number
    next_bottleneck: Number
    headroom: Mapping[str, Number]
    cause: Number
    basis: str
    demand_at_ceiling: Quantity
    actual_demand: Quantity
    feasible: Number
    infeasible_reason: str

    @cached_property
    def _corners(self) -> tuple[list[Step], list[Step]]:
        lows, highs = corners(self.pipeline)
        return [one.solve() for one in lows], [one.solve() for one in highs]

    @property
    def throughput_range(self) -> tuple[Quantity, Quantity]:
        """Between which throughputs the truth lies in four cases of five (`COVERAGE`) [sample/time].

        The lowest and the highest that the sources of its values allow, and the model's own error on top.
        """
        lows, highs = ([one.throughput.m_as("img/s") for one in ends] for ends in self._corners)
        off = 1 + self.pipeline.assumptions.model_error
        return Q_(np.minimum.reduce(lows) / off, "img/s"), Q_(np.maximum.reduce(highs) * off, "img/s")

    @property
    def utilization_range(self) -> tuple[Number, Number]:
        """The same of the utilization, which is never more than 1."""
        lows, highs = ([one.utilization for one in ends] for ends in self._corners)
        off = 1 + self.pipeline.assumptions.model_error
        return np.minimum.reduce(lows) / off, np.minimum(np.maximum.reduce(highs) * off, 1.0)

    @property
    def spoken_range(self) -> str:
        """Between which throughputs the truth lies, where the assumptions have ranges; or empty."""
        if not self.pipeline.assumptions.ranged:
            return ""
        low, high = (format_number(end.m_as("img/s")) for end in self.throughput_range)
        return f"{percent(COVERAGE, 0)} range {low} to {high} img/s"

    @property
    def spoken_utilization_range(self) -> str:
        """The same of the utilization."""
        low, high = (percent(end) for end in self.utilization_range)
        return f"{percent(COVERAGE, 0)} range {low} to {high}" if self.pipeline.assumptions.ranged else ""

    @property
    def spoken_busy(self) -> str:
        """How much of its time the accelerator works, where it waits for the rest of it; or empty."""
        taken, works = self.resource_times[ACCELERATOR.name], self.utilization * self.step_time
        waited = (taken - works).m_as("ms")
        some = 1e-9 * taken.m_as("ms")
        if np.all(waited <= some):
            return ""
        known = {name: self.stage_times[name].m_as("ms") for name in _AWAITED if name in self.stage_times}
        launches = np.any(waited - sum(known.values()) > some)
        *first, last = [*(["launches"] if launches else []), *(_AWAITED[name] for name in known)]
        awaited = f"{', '.join(first)}{' and ' * bool(first)}{last}"
        if np.ndim(waited):
            return f"The accelerator's time holds what it waits for {awaited}, which does not count as busy."
        counted = f"Busy counts {cell(works)} of the accelerator's {cell(taken)}"
        return f"{counted}: for the rest it waits for {awaited}."

    @property
    def note(self) -> str:
        """Below the table: why the step cannot run, what counts as busy, and what of it nobody measured."""
        pipe = self.pipeline
        said = (
            self.infeasible_reason,
            self.spoken_busy,
            self._spoken_basis,
            self._spoken_requests,
            pipe.foreign_samples,
            pipe.foreign_rate,
        )
        return " ".join(filter(None, said))

    @property
    def _spoken_requests(self) -> str:
        """What a request is taken to bring, where that sets the step and the pipeline does not say."""
        pipe = self.pipeline
        if np.ndim(self.utilization) or self.bottleneck != STORAGE.name or pipe.samples_per_request != 1:
            return ""
        if pipe.solve(samples_per_request=2).stage_times["read"] > 0.9 * self.stage_times["read"]:
            return ""
        return "Each request reads one sample, a file of its own: of packed ones pass samples_per_request."

    @property
    def _spoken_basis(self) -> str:
        """Where the accelerator's time comes from, if a measured rate was asked for and there is none."""
        if self.basis.startswith("extrapolated"):
            return f"The accelerator's time is {self.basis.partition(':')[0]}."
        if self.pipeline.assumptions.measured_rates and not self.basis.startswith("measured"):
            return f"The accelerator's time is assumed: {self.basis}, for want of a measured rate."
        return ""

    @property
    def headers(self) -> tuple[str, ...]:
        """Of the table that shows it."""
        return ("resource", "time of a step", "idle")

    @property
    def rows(self) -> list[list[str]]:
        """One row for each resource."""
        return [
            [name, cell(time), _percent(self.headroom[name])] for name, time in self.resource_times.items()
        ]

    @property
    def summary(self) -> str:
        """What binds, in one line."""
        shape = np.shape(self.utilization)
        if shape:
            return f"{np.prod(shape)} steps, an array of shape {shape}"
        runs = "" if self.feasible else "Not feasible: "
        allowed = f" ({self.spoken_range})" if self.spoken_range else ""
        return (
            f"{runs}A step of {cell(self.step_time)}, {cell(self.throughput)}{allowed}: "
            f"{LABELS[self.bottleneck]} binds, and the accelerator is busy {percent(self.utilization)}"
        )


def _percent(share: Number) -> str:
    return percent(share) if np.ndim(share) == 0 else cell(Q_(100 * share, "percent"))
