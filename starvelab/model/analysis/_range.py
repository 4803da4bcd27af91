"""Between which throughputs and utilizations the truth lies, where sources disagree about a value."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

import numpy as np

from ...units import Q_, Unchecked
from ..description import Description
from ..rates import SampleTime, frameworks_of, launch_time
from ..resources import ACCELERATOR
from ..stages import STAGES, SingleNodeModel
from ..stages.single_node import assumed_time, launch_wait
from ..step import Step

# True of the stages in which the accelerator works.
_WORKS = {stage.NAME: stage.RESOURCE is ACCELERATOR and not stage.AWAITED for stage in STAGES}
# How a pipeline becomes one with what a source says.
_Change: TypeAlias = Callable[[Description], Description]


def range_of(pipeline: Description, name: str) -> tuple[Unchecked, Unchecked]:
    """Return the lowest and the highest throughput or utilization that sources and the model's error allow.

    Each assumption and each fact of the drive, the link and the data set lies between its `low` and `high`,
    where the catalogue has these. The accelerator's rate is that of any framework that was measured, unless
    the pipeline names one. The ends are where all of these are least and most favorable together.
    """
    error = 1 + pipeline.assumptions.model_error
    if name == "throughput":
        low, high = ([step.throughput.m_as("img/s") for step in ends] for ends in _corners(pipeline, _speed))
        return Q_(np.minimum.reduce(low) / error, "img/s"), Q_(np.maximum.reduce(high) * error, "img/s")
    low, high = ([step.utilization for step in steps] for steps in _corners(pipeline, _business))
    return np.minimum.reduce(low) / error, np.minimum(np.maximum.reduce(high) * error, 1.0)


def _corners(
    pipeline: Description, rank: Callable[[Description], tuple[float, ...]]
) -> tuple[list[Step], list[Step]]:
    """Return steps with the values of lowest and of highest rank, once for each framework of the rate.

    Where a pipeline names no framework, none of them is the least favorable everywhere: one takes longer to
    launch, and another to compute. The answer lies between the lowest and the highest of all.
    """
    lowest = highest = pipeline
    frameworks = _frameworks(pipeline)
    for name, changes in _facts(pipeline):
        # Launches count in each step of some frameworks, and in others only where they take longest.
        ranked = frameworks[0](pipeline) if frameworks and name == "launch_factor" else pipeline
        ranks = [rank(change(ranked)) for change in changes]
        if ranks[0] != ranks[1]:
            worst, best = changes if ranks[0] < ranks[1] else changes[::-1]
            lowest, highest = worst(lowest), best(highest)
    lows, highs = [], []
    for in_framework in frameworks or [lambda same: same]:
        low, high = in_framework(lowest), in_framework(highest)
        launches = _launches(low)
        if launches is not None:  # longer launches lower both throughput and utilization
            low, high = launches[1](low), launches[0](high)
        lows.append(low.solve())
        highs.append(high.solve())
    return lows, highs


def _speed(pipeline: Description) -> tuple[float, ...]:
    """Rank values for the throughput: no resource may become slower, so all of them are added."""
    batch = pipeline.numbers["batch_size"]
    return (-float(sum(np.sum(cost.at(batch)) for cost in pipeline.costs().values())),)


def _business(pipeline: Description) -> tuple[float, ...]:
    """Rank values for the utilization: a slower accelerator is busier, a slower supply leaves it idle."""
    batch = pipeline.numbers["batch_size"]
    waited = float(np.sum(launch_wait(SingleNodeModel.among(pipeline.inputs), batch)))
    times = {name: float(np.sum(cost.at(batch))) for name, cost in pipeline.costs().items()}
    works = sum(time for name, time in times.items() if _WORKS[name])
    return works - waited, -sum(time for name, time in times.items() if not _WORKS[name]) - waited


def _facts(pipeline: Description) -> Iterator[tuple[str, tuple[_Change, _Change]]]:
    """Yield each fact of its parts that lies between two ends, and the changes to these."""
    owners: Mapping[str, Unchecked] = {
        "assumptions": pipeline.assumptions,
        "storage": pipeline.storage and pipeline.storage.of,
        "link": pipeline.link and pipeline.link.of,
        "dataset": pipeline.samples,  # also where it came with the model
    }
    for field, owner in owners.items():
        for name, fact in getattr(owner, "facts", {}).items():
            if fact.low is not None:
                change = partial(_changed, field=field, name=name)
                certain = partial(dataclasses.replace, fact, low=None, high=None)  # its source stays
                low, high = (partial(change, value=certain(value=end)) for end in (fact.low, fact.high))
                yield name, (low, high)


def _changed(pipeline: Description, *, field: str, name: str, value: Unchecked) -> Description:
    part = getattr(pipeline, field)
    owner: Unchecked = pipeline.samples if field == "dataset" else getattr(part, "of", part)
    return pipeline.replace(**{field: owner.replace(**{name: value})})


def _time(pipeline: Description, framework: str | None) -> SampleTime | None:
    """Return the time of a sample by a framework's measured rates; None where these decide nothing."""
    assumed, accelerator, model = pipeline.assumptions, pipeline.hardware, pipeline.model
    if pipeline.numbers["accelerator_rate"] is not None or model is None or accelerator.of is None:
        return None
    if accelerator.framework.name is None and not assumed.measured_rates:
        return None
    phase = pipeline.phase or assumed.phase
    return assumed_time(assumed, model, accelerator.of, accelerator.precision, phase, framework)


def _frameworks(pipeline: Description) -> list[_Change]:
    """Return the change to each framework's rate, where the pipeline names none and several were measured."""
    if pipeline.hardware.framework.name is not None or pipeline.model is None:
        return []
    names = [name for name in frameworks_of(pipeline.model) if _time(pipeline, name) is not None]
    return [partial(_in_framework, name=name) for name in names] if len(names) > 1 else []


def _in_framework(pipeline: Description, *, name: str) -> Description:
    return pipeline.replace({"hardware.rate": pipeline.hardware.framework.replace(name=name)})


def _launches(pipeline: Description) -> tuple[_Change, _Change] | None:
    """Return the changes to the shortest and the longest launches that were measured of a framework."""
    assumed, hardware = pipeline.assumptions, pipeline.hardware.of
    time, fact = _time(pipeline, pipeline.hardware.framework.name), assumed.facts.get("overhead_per_layer")
    if time is None or hardware is None or not assumed.overhead_overlaps or fact is None or fact.given:
        return None
    measured = launch_time(time.framework, hardware.path, pipeline.hardware.precision)
    ratio = assumed.overhead_per_layer / measured.value
    change = partial(_changed, field="assumptions", name="overhead_per_layer")
    low, high = (partial(change, value=(end * ratio).to("ms")) for end in (measured.low, measured.high))
    return low, high
