"""The rule of the model: stages on one resource add, and the slowest of the resources sets the step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from math import inf
from typing import Any, TypeVar

import numpy as np

from ..units import Q_, Number, Quantity
from .assumptions import Assumptions
from .cost import Cost, Inputs, argmax, as_float, name_of_largest
from .resources import ACCELERATOR, CPU, DECODER, DISPLAY_ORDER, LINK, TIE_ORDER
from .stages import STAGES, DeviceInputModel, SingleNodeModel, StepOverheadModel
from .stages.single_node import SingleNodeInputs, fits, launch_wait, parts
from .stages.stage import field_names
from .step import Ranges, Step

# Any: each stage resolves fields of its own into inputs of its own.
_STAGES: Mapping[str, Any] = {stage.NAME: stage for stage in STAGES}
_T = TypeVar("_T")


def resolve(numbers: Mapping[str, Number], assumptions: Assumptions) -> dict[str, Inputs]:
    """The inputs of every stage that these fields of a pipeline describe, by its name."""
    inputs: dict[str, Inputs] = {}
    for name, stage in _STAGES.items():
        found = stage(assumptions).resolve(**{field: numbers[field] for field in field_names(stage)})
        if found is not None:
            inputs[name] = found
    return inputs


def costs(inputs: Mapping[str, Inputs], accelerators: Number, *, exact: bool = False) -> dict[str, Cost]:
    """Cost of each stage; what all accelerators share does one batch for each of them."""
    found = {}
    for name, stage_inputs in inputs.items():
        stage = _STAGES[name]
        cost = stage.cost(stage_inputs.exactly() if exact else stage_inputs)
        found[name] = cost.times(accelerators) if stage.RESOURCE.shared else cost
    return found


def by_resource(stages: Mapping[str, _T]) -> dict[str, _T]:
    """What stages take, costs or times, added up on the resource that each runs on."""
    taken: dict[str, Number] = {}
    for stage, part in stages.items():
        resource = _STAGES[stage].RESOURCE.name
        taken[resource] = taken[resource] + part if resource in taken else part
    return {resource: taken[resource] for resource in TIE_ORDER if resource in taken}


def solve(
    numbers: Mapping[str, Number],
    inputs: Mapping[str, Inputs],
    shape: tuple[int, ...],
    *,
    overlap: bool,
    in_flight: float,
    find_ranges: Callable[[], Ranges],
    find_remarks: Callable[[Step], tuple[str, ...]],
    ranged: bool,
) -> Step:
    """Time a step of these numbers and inputs of stages, in the shape of what is swept.

    `in_flight` is how many batches a loop without workers can have under way; infinite where it has workers.
    """
    batch, accelerators = numbers["batch_size"], numbers["accelerators"]
    stages = {name: _shaped(cost.at(batch), shape) for name, cost in costs(inputs, accelerators).items()}
    resources = by_resource(stages)
    # While it waits for a copy, for the loop or for a launch, the accelerator is taken, but does not work.
    model = inputs[SingleNodeModel.NAME]
    assert isinstance(model, SingleNodeInputs)
    waits = sum(time for name, time in stages.items() if not _STAGES[name].BUSY)
    own = resources[ACCELERATOR.name] - waits - launch_wait(model, batch)
    step = reduce(np.maximum if overlap else np.add, resources.values())
    if in_flight < inf:
        behind = np.maximum(resources.get(LINK.name, 0.0), resources.get(DECODER.name, 0.0))
        round_trip = resources[CPU.name] + behind + resources[ACCELERATOR.name]
        step = np.maximum(step, round_trip / in_flight)
    bottleneck, following = _ranking(resources)
    feasible, reason = fits(model.memory, batch)
    together, cached = batch * accelerators, numbers["cached_fraction"]
    gigabytes = numbers["stored"] * 1e-9 * (1 if cached is None else 1 - cached)
    shown = [name for name in DISPLAY_ORDER if name in resources]
    return Step(
        batch_size=batch,
        accelerators=accelerators,
        overlap=overlap,
        stage_times={name: _ms(time) for name, time in stages.items()},
        resource_times={name: _ms(resources[name]) for name in shown},
        step_time=_ms(step),
        throughput=Q_(as_float(together / step), "img/s"),
        utilization=as_float(own / step),
        stall=as_float(1 - own / step),
        slowdown=as_float(step / own),
        bottleneck=bottleneck,
        next_bottleneck=following,
        headroom={name: as_float(1 - resources[name] / step) for name in shown},
        cause=_cause(model, stages, batch, shape),
        basis=model.basis,
        demand_at_ceiling=Q_(as_float(together / own * gigabytes), "GB/s"),
        actual_demand=Q_(as_float(together / step * gigabytes), "GB/s"),
        feasible=np.broadcast_to(feasible, shape) if shape else feasible,
        infeasible_reason=reason,
        find_ranges=find_ranges,
        find_remarks=find_remarks,
        ranged=ranged,
    )


def _ranking(resources: Mapping[str, Number]) -> tuple[Number, Number]:
    """Names of the slowest and the second slowest resource; near-ties go to the one named first."""
    names = np.array([*resources, ""])
    # Rounding must not turn a tie into a bottleneck: favor earlier resources by a part in 10^12.
    favor = 1 + 1e-12 * np.arange(len(resources), 0, -1)
    times = [time * factor for time, factor in zip(resources.values(), favor, strict=True)]
    first = argmax(times)
    second = argmax([np.where(first == i, -np.inf, time) for i, time in enumerate(times)])
    if np.ndim(first):
        return names[first], names[second]
    return str(names[first]), str(names[second])


def _cause(
    model: SingleNodeInputs, stages: Mapping[str, Number], batch: Number, shape: tuple[int, ...]
) -> Number:
    """What takes most of the accelerator's own time, counting all that runs on it; the first of equals."""
    made_of = parts(model, batch)
    if made_of is None:
        shares = {"model": stages[SingleNodeModel.NAME], "overhead": 0.0}
    else:
        shares = made_of._asdict()
    shares["overhead"] = shares["overhead"] + stages.get(StepOverheadModel.NAME, 0.0)
    shares["input"] = stages.get(DeviceInputModel.NAME, 0.0)
    largest = name_of_largest(shares)
    return np.broadcast_to(largest, shape) if shape else str(largest)


def _shaped(seconds: Number, shape: tuple[int, ...]) -> Number:
    return np.broadcast_to(seconds, shape) if shape else float(seconds)


def _ms(seconds: Number) -> Quantity:
    return Q_(as_float(seconds * 1e3), "ms")
