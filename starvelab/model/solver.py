"""The rule of the model: stages on one resource add, and the slowest of the resources sets the step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any, TypeVar

import numpy as np

from ..units import Q_, Number, Quantity
from ..units import exact as as_exact
from .assumptions import Assumptions
from .batch_times import BatchTimes
from .resources import (
    ACCELERATOR,
    CPU,
    DISPLAY_ORDER,
    TIE_ORDER,
    Cost,
    Inputs,
    Line,
    argmax,
    as_float,
    name_of_largest,
)
from .stages import (
    STAGES,
    BarrierModel,
    DeviceInputModel,
    SingleNodeModel,
    StepOverheadModel,
)
from .stages.barrier import BarrierInputs
from .stages.single_node import SingleNodeInputs, fits, launch_wait, parts
from .step import Step

# Any: each stage resolves fields of its own into inputs of its own.
_STAGES: Mapping[str, Any] = {stage.NAME: stage for stage in STAGES}
_T = TypeVar("_T")


def resolve(numbers: Mapping[str, Number], assumptions: Assumptions) -> dict[str, Inputs]:
    """The inputs of every stage that these fields of a pipeline describe, by its name."""
    fields = {field for field, number in numbers.items() if number is not None}
    resolved = {
        name: stage(assumptions).inputs(numbers)
        for name, stage in _STAGES.items()
        if not fields.isdisjoint(stage.NEEDS)
    }
    return {name: inputs for name, inputs in resolved.items() if inputs is not None}


def costs(inputs: Mapping[str, Inputs], accelerators: Number, *, exact: bool = False) -> dict[str, Cost]:
    """Cost of each stage; what all accelerators share does one batch for each of them."""
    numbers = {name: stage.exactly() if exact else stage for name, stage in inputs.items()}
    barrier = numbers.pop(BarrierModel.NAME, None)
    taken: dict[str, Cost] = {name: _STAGES[name].cost(stage) for name, stage in numbers.items()}
    if isinstance(barrier, BarrierInputs):  # of what scatters: the model, and input work on the accelerator
        scattered = [taken[name] for name in (SingleNodeModel.NAME, DeviceInputModel.NAME) if name in taken]
        taken[BarrierModel.NAME] = BarrierModel.cost(barrier, reduce(add, scattered))
    return {
        name: cost.times(accelerators) if _STAGES[name].RESOURCE.shared else cost
        for name, cost in taken.items()
    }


def by_resource(stages: Mapping[str, _T]) -> dict[str, _T]:
    """Return what stages take, costs or times, added up on the resource that each runs on."""
    taken: dict[str, Number] = {}
    for stage, part in stages.items():
        resource = _STAGES[stage].RESOURCE.name
        taken[resource] = taken[resource] + part if resource in taken else part
    return {resource: taken[resource] for resource in TIE_ORDER if resource in taken}


def solve(
    numbers: Mapping[str, Number], inputs: Mapping[str, Inputs], shape: tuple[int, ...], **shown: Any
) -> Step:
    """Time a step of these numbers and inputs, in the shape of what is swept; a step takes what is shown."""
    batch, accelerators = numbers["batch_size"], numbers["accelerators"]
    taken = costs(inputs, accelerators)
    stages = {name: _shaped(cost.at(batch), shape) for name, cost in taken.items()}
    resources = by_resource(stages)
    # While it waits for a copy, for the loop or for a launch, the accelerator is taken, but does not work.
    model = SingleNodeModel.among(inputs)
    waits = sum(time for name, time in stages.items() if _STAGES[name].AWAITED)
    busy = resources[ACCELERATOR.name] - waits - launch_wait(model, batch)
    step = batch_times(resources, numbers).step if numbers["overlap"] else sum(resources.values())
    # Rounding must not turn a tie into a bottleneck: favor earlier resources by a part in 10^12.
    favor = 1 + 1e-12 * np.arange(len(resources), 0, -1)
    ranked = [time * factor for time, factor in zip(resources.values(), favor, strict=True)]
    first = argmax(ranked)
    second = argmax([np.where(first == i, -np.inf, time) for i, time in enumerate(ranked)])
    names = np.array([*resources, ""])
    feasible, reason = fits(model.memory, batch)
    together, cached = batch * accelerators, numbers["cached_fraction"]
    gigabytes = numbers["stored"] * 1e-9 * (1 if cached is None else 1 - cached)
    displayed = [name for name in DISPLAY_ORDER if name in resources]
    return Step(
        batch_size=batch, accelerators=accelerators, hosts=numbers["hosts"], overlap=numbers["overlap"],
        stage_times={name: _quantity(time * 1e3, "ms") for name, time in stages.items()},
        resource_times={name: _quantity(resources[name] * 1e3, "ms") for name in displayed},
        step_time=_quantity(step * 1e3, "ms"),
        throughput=_quantity(numbers["hosts"] * together / step, "img/s"),
        utilization=as_float(busy / step), stall=as_float(1 - busy / step), slowdown=as_float(step / busy),
        bottleneck=names[first] if shape else str(names[first]),
        next_bottleneck=names[second] if shape else str(names[second]),
        headroom={name: as_float(1 - resources[name] / step) for name in displayed},
        cause=_shaped(_cause(model, stages, batch), shape, str), basis=model.basis,
        demand_at_ceiling=_quantity(together / busy * gigabytes, "GB/s"),
        actual_demand=_quantity(together / step * gigabytes, "GB/s"),
        feasible=_shaped(feasible, shape, bool), infeasible_reason=reason,
        **shown,
    )  # fmt: skip


def batch_times(times: Mapping[str, _T], numbers: Mapping[str, Number]) -> BatchTimes[_T]:
    """Put what the resources take, as times or costs, beside what may be under way."""
    way: Any = numbers["way"] or 0
    if way and isinstance(cost := times[CPU.name], Cost):
        way = Cost((Line(as_exact(way, "way") if isinstance(cost.limit, Fraction) else way, 0),))
    # What all workers supply together counts as one worker.
    workers = 1 if numbers["cpu_throughput"] is not None else numbers["workers"]
    return BatchTimes(
        times, workers, numbers["prefetch"], numbers["in_flight"], way,
        read_ahead=numbers["read_ahead"], alone=numbers["alone"],
    )  # fmt: skip


def _cause(model: SingleNodeInputs, stages: Mapping[str, Number], batch: Number) -> Number:
    """Return what takes most of the accelerator's own time, counting all on it; the first of equals."""
    made_of = parts(model, batch)
    shares = {"model": stages[SingleNodeModel.NAME]} if made_of is None else made_of
    shares["overhead"] = shares.get("overhead", 0.0) + stages.get(StepOverheadModel.NAME, 0.0)
    shares["input"] = stages.get(DeviceInputModel.NAME, 0.0)
    return name_of_largest(shares)


def _shaped(value: Number, shape: tuple[int, ...], plain: Callable[[Number], Number] = float) -> Number:
    return np.broadcast_to(value, shape) if shape else plain(value)


def _quantity(number: Number, unit: str) -> Quantity:
    return Q_(as_float(number), unit)
