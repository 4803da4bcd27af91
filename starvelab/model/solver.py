"""The rule of the model: stages on one resource add, and the slowest of the resources sets the step.

`BatchTimes` is the mean rule of a loader, where few batches, or few steps, may be under way: solve,
simulation, moving picture, the graders' clock and the doctor all read it here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any, Generic, TypeVar

import numpy as np

from ..units import Q_, Number, Quantity
from ..units import exact as as_exact
from .costs import Cost, Inputs, Line, as_float, maximum, name_of_largest
from .resources import ACCELERATOR, CPU, DECODER, DISPLAY_ORDER, LINK, LOOP, STORAGE, TIE_ORDER
from .stages import STAGES, BarrierModel, DeviceInputModel, SingleNodeModel
from .stages.barrier import BarrierInputs
from .stages.single_node import launch_wait
from .step import Step

# Any: each stage resolves fields of its own into inputs of its own.
_STAGES: Mapping[str, Any] = {stage.NAME: stage for stage in STAGES}
_T = TypeVar("_T")
Time = TypeVar(
    "Time", bound=Any
)  # numbers, arrays, fractions or costs: what can be added, multiplied and divided


def resolve(numbers: Mapping[str, Number]) -> dict[str, Inputs]:
    """The inputs of every stage that these fields of a pipeline describe, by its name."""
    fields = {field for field, number in numbers.items() if number is not None}
    needed = {name: stage for name, stage in _STAGES.items() if not fields.isdisjoint(stage.NEEDS)}
    resolved = {name: inputs_of(stage, numbers) for name, stage in needed.items()}
    return {name: inputs for name, inputs in resolved.items() if inputs is not None}


def inputs_of(stage: Any, numbers: Mapping[str, Number]) -> Any:
    """The inputs of one stage; None where the fields do not describe it after all."""
    return stage.resolve(**{name: numbers[name] for name in stage.READS})


def costs(inputs: Mapping[str, Inputs], accelerators: Number, *, exact: bool = False) -> dict[str, Cost]:
    """Cost of each stage; a shared resource does one batch for each accelerator."""
    numbers = {name: stage.exactly() if exact else stage for name, stage in inputs.items()}
    barrier = numbers.pop(BarrierModel.NAME, None)
    taken: dict[str, Cost] = {name: _STAGES[name].cost(stage) for name, stage in numbers.items()}
    if isinstance(barrier, BarrierInputs):  # of what scatters: the model, and input work on the accelerator
        scattered = [taken[name] for name in (SingleNodeModel.NAME, DeviceInputModel.NAME) if name in taken]
        taken[BarrierModel.NAME] = BarrierModel.cost(barrier, reduce(add, scattered))
    return {
        name: cost * accelerators if _STAGES[name].RESOURCE.shared else cost for name, cost in taken.items()
    }


def by_resource(stages: Mapping[str, _T]) -> dict[str, _T]:
    """Return what stages take, costs or times, added up on the resource that each runs on."""
    taken: dict[str, Number] = {}
    for stage, part in stages.items():
        resource = _STAGES[stage].RESOURCE.name
        taken[resource] = taken[resource] + part if resource in taken else part
    return {resource: taken[resource] for resource in TIE_ORDER if resource in taken}


def solve(pipeline: Any) -> Step:  # Any: a Description, which stands above what it is solved by
    """Time a step of a pipeline, in the shape of what is swept."""
    numbers, inputs, shape = pipeline.numbers, pipeline.inputs, pipeline.shape
    batch, accelerators = numbers["batch_size"], numbers["accelerators"]
    taken = costs(inputs, accelerators)
    times = {name: cost.at(batch) for name, cost in taken.items()}
    stages = {name: np.broadcast_to(time, shape) if shape else float(time) for name, time in times.items()}
    resources = by_resource(stages)
    # While it waits for a copy, for the loop or for a launch, the accelerator is taken, but does not work.
    waits = sum(time for name, time in stages.items() if _STAGES[name].AWAITED)
    busy = resources[ACCELERATOR.name] - waits - launch_wait(inputs[SingleNodeModel.NAME], batch)
    step = BatchTimes.of(resources, numbers).step if numbers["overlap"] else sum(resources.values())
    # Rounding must not turn a tie into a bottleneck: favor earlier resources by a part in 10^12.
    favor = 1 + 1e-12 * np.arange(len(resources), 0, -1)
    ranked = {name: time * factor for (name, time), factor in zip(resources.items(), favor, strict=True)}
    return Step(
        pipeline=pipeline,
        stage_times={name: _quantity(time * 1e3, "ms") for name, time in stages.items()},
        resource_times={n: _quantity(resources[n] * 1e3, "ms") for n in DISPLAY_ORDER if n in resources},
        step_time=_quantity(step * 1e3, "ms"),
        throughput=_quantity(numbers["hosts"] * batch * accelerators / step, "img/s"),
        utilization=as_float(busy / step),
        bottleneck=name_of_largest(ranked),
    )


def _quantity(number: Number, unit: str) -> Quantity:
    return Q_(as_float(number), unit)


@dataclass(frozen=True)
class BatchTimes(Generic[Time]):
    """The time of each resource for the batches of a step, and how many batches may be under way.

    Attributes
    ----------
    times : mapping of str
        Times by resource; that of the CPU is for all workers together.
    workers, prefetch : int
        Each worker has `prefetch` batches ordered.
    in_flight : int or inf
        Steps that the loop lets the accelerator have unfinished.
    way : number
        A batch's way from its worker to the loop, beside the work of either.
    read_ahead : bool
        True if the storage reads a batch before its worker prepares it.
    alone : bool
        True if the loop prepares its batches itself.
    """

    times: Mapping[str, Time]
    workers: Any = 1
    prefetch: Number = 2
    in_flight: Number = 2
    way: Any = 0
    read_ahead: bool = True
    alone: bool = False

    @classmethod
    def of(cls, times: Mapping[str, Time], numbers: Mapping[str, Number]) -> BatchTimes[Time]:
        """Return the times or costs of the resources with the limits on what may be under way."""
        way: Any = numbers["way"] or 0
        if way and isinstance(cost := times[CPU.name], Cost):
            way = Cost((Line(as_exact(way, "way") if isinstance(cost.limit, Fraction) else way, 0),))
        # What all workers supply together counts as one worker.
        workers = 1 if numbers["cpu_throughput"] is not None else numbers["workers"]
        return cls(
            times, workers, numbers["prefetch"], numbers["in_flight"], way,
            read_ahead=numbers["read_ahead"], alone=numbers["alone"],
        )  # fmt: skip

    def round_trips(self) -> Iterator[tuple[str, Time]]:
        """Yield each bound on a step from a round trip, with the resource for which it waits.

        Bounds that the time of a resource always reaches are left out.
        """
        times = self.times
        loop = [times[LOOP.name]] if LOOP.name in times else []
        thread = [*loop, *([times[CPU.name]] if self.alone else [])]
        behind = [name for name in (DECODER.name, LINK.name) if name in times]
        if thread or DECODER.name in times or (behind and self.in_flight == 1):
            # One thread does what stands in front of the copy, and waits for a step that is too far behind.
            waited_for = LOOP.name if loop else CPU.name if self.alone else behind[0]
            if len(thread) > 1:
                yield waited_for, reduce(add, thread)
            whole = reduce(add, [*thread, times[ACCELERATOR.name]])
            for trip in [whole + times[name] for name in behind] or [whole]:
                yield waited_for, trip / self.in_flight
        if not self.alone and (loop or self.way or self.prefetch == 1):
            # A batch is ordered when the loop has received one of the same worker.
            ahead = [times[STORAGE.name]] if self.read_ahead and STORAGE.name in times else []
            ahead += [self.way] if self.way else []
            of_worker = reduce(add, [times[CPU.name], *(time / self.workers for time in (*ahead, *loop))])
            yield CPU.name, of_worker / self.prefetch

    @property
    def step(self) -> Time:
        """The time of a step, where resources work at the same time."""
        step: Time = maximum((*self.times.values(), *(trip for _, trip in self.round_trips())))
        return step
