"""Values of which sources disagree, and between which results that leaves the truth."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from ...tables import TableRepr, cell, percent
from ...units import Q_, Number, Quantity, Unchecked, format_number
from ..description import Description, check_asked
from ..rates import SampleTime, frameworks_of, launch_time
from ..stages.single_node import assumed_time
from ..step import Step
from ._accelerators_fed import WORKS, launching


@dataclass(frozen=True)
class Disagreement:
    """A value of which sources disagree, and what that alone does to the prediction.

    Attributes
    ----------
    name : str
    values : tuple of str
        What the sources say.
    lowest, highest : quantity [sample/time]
        The throughput, if this value alone changes.
    origin : str
        The sources.
    """

    name: str
    values: tuple[str, ...]
    lowest: Quantity
    highest: Quantity
    origin: str


@dataclass(frozen=True, repr=False)
class ThroughputRange(TableRepr):
    """The answer of `throughput_range`.

    Attributes
    ----------
    step : Step
        The prediction itself.
    lowest, highest : Step
        With the values that are least and most favorable together.
    disagreements : tuple of Disagreement
        Those that change the throughput alone, the largest change first.
    model_error : float
        How far off the model itself is assumed to be, as a share.
    """

    step: Step
    lowest: Step
    highest: Step
    disagreements: tuple[Disagreement, ...]
    model_error: float = 0.0

    headers = ("value", "its sources say", "throughput from", "to")

    @property
    def summary(self) -> str:
        """The range in one line."""
        if self.lowest.throughput == self.highest.throughput:
            return f"{cell(self.step.throughput)}: no source of its values disagrees with another"
        low, high = (format_number(_images(step)) for step in (self.lowest, self.highest))
        return (
            f"{low} to {high} img/s by its sources, and {cell(self.step.throughput)} as assumed: "
            f"{self.step.labels.does(self.lowest.bottleneck, 'bind')} at the low end, and "
            f"{self.step.labels.the(self.highest.bottleneck)} at the high end"
        )

    @property
    def note(self) -> str:
        """Below the table: why the step cannot run, if it cannot, and how far off the model itself may be."""
        error = self.model_error
        allowed = f"With the model's own error of {percent(error, 0)} it is the {self.step.spoken_range}."
        return " ".join(filter(None, (self.step.note, allowed if error else "")))

    @property
    def rows(self) -> list[list[Unchecked]]:
        """One for each disagreement."""
        return [
            [value.name, " or ".join(value.values), value.lowest, value.highest]
            for value in self.disagreements
        ]


def throughput_range(pipeline: Description) -> ThroughputRange:
    """The lowest and the highest throughput that the sources of a prediction's values allow.

    Notes
    -----
    Each assumption and each fact of the drive, the link and the data set lies between its `low` and `high`,
    where the catalogue has these. The accelerator's rate is that of any framework that was measured, unless
    the pipeline names one. The throughput never falls as one of these becomes more favorable, so it is lowest
    where each is at its less favorable end, and highest where each is at the other. A value of which only one
    source is known adds nothing. The error of the model itself stands below the table: a `Step` has it in its
    own `ranges`, and shows them where its assumptions have ranges.

    Examples
    --------
    >>> from starvelab import PUBLISHED, Hardware, Models, Pipeline
    >>> pipeline = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, assumptions=PUBLISHED)
    >>> found = pipeline.throughput_range()
    >>> [round(one.throughput.m_as("img/s")) for one in (found.lowest, found.step, found.highest)]
    [585, 1090, 1800]
    """
    check_asked(pipeline, "throughput_range")
    lows, highs = _corners(pipeline, _speed)
    disagreements = []
    for choice in filter(None, (*_facts(pipeline), _frameworks(pipeline), _launching(pipeline))):
        reached = [_images(change(pipeline).solve()) for change in choice.changes.values()]
        if min(reached) < max(reached):
            ends = Q_(min(reached), "img/s"), Q_(max(reached), "img/s")
            disagreements.append(Disagreement(choice.name, tuple(choice.changes), *ends, choice.origin))
    return ThroughputRange(
        step=pipeline.solve(),
        lowest=min(lows, key=_images),
        highest=max(highs, key=_images),
        disagreements=tuple(sorted(disagreements, key=lambda value: (value.lowest / value.highest).m_as(""))),
        model_error=pipeline.assumptions.model_error,
    )


def range_of(pipeline: Description, name: str) -> tuple[Unchecked, Unchecked]:
    """Return between which throughputs or utilizations the truth lies: the corners, and the model's error."""
    error = 1 + pipeline.assumptions.model_error
    if name == "throughput":
        low, high = ([_rates(step) for step in steps] for steps in _corners(pipeline, _speed))
        return Q_(np.minimum.reduce(low) / error, "img/s"), Q_(np.maximum.reduce(high) * error, "img/s")
    low, high = ([step.utilization for step in steps] for steps in _corners(pipeline, _business))
    return np.minimum.reduce(low) / error, np.minimum(np.maximum.reduce(high) * error, 1.0)


def _rates(step: Step) -> Number:
    return step.throughput.m_as("img/s")


def _images(step: Step) -> float:
    return float(step.throughput.m_as("img/s"))


class _Choice(NamedTuple):
    """A value of which sources disagree, and how a pipeline becomes one with what each of them says."""

    name: str
    origin: str
    changes: Mapping[str, Callable[[Description], Description]]


def _corners(
    pipeline: Description, rank: Callable[[Description], tuple[float, ...]]
) -> tuple[list[Step], list[Step]]:
    """Return steps with the values of lowest and of highest rank, once for each framework of the rate.

    Where a pipeline names no framework, none of them is the least favorable everywhere: one takes longer to
    launch, and another to compute. The answer lies between the lowest and the highest of all.
    """
    lowest = highest = pipeline
    frameworks = _frameworks(pipeline)
    for choice in _facts(pipeline):
        ranked = pipeline
        if frameworks and choice.name.startswith("launch_factor"):
            # Launches count in each step of some frameworks, and in others only where they take longest.
            ranked = next(iter(frameworks.changes.values()))(pipeline)
        ranks = {change: rank(change(ranked)) for change in choice.changes.values()}
        if len({*ranks.values()}) > 1:
            worst, best = min(ranks, key=ranks.__getitem__), max(ranks, key=ranks.__getitem__)
            lowest, highest = worst(lowest), best(highest)
    lows, highs = [], []
    for in_framework in frameworks.changes.values() if frameworks else (lambda same: same,):
        low, high = in_framework(lowest), in_framework(highest)
        launching = _launching(low)
        if launching is not None:  # longer launches lower both throughput and utilization
            ends = [*launching.changes.values()]
            low, high = ends[-1](low), ends[0](high)
        lows.append(low.solve())
        highs.append(high.solve())
    return lows, highs


def _speed(pipeline: Description) -> tuple[float, ...]:
    """Rank values for the throughput: no resource may become slower, so all of them are added."""
    batch = pipeline.numbers["batch_size"]
    return (-float(sum(np.sum(cost.at(batch)) for cost in pipeline.costs().values())),)


def _business(pipeline: Description) -> tuple[float, ...]:
    """Rank values for the utilization: a slower accelerator is busier, a slower supply leaves it idle."""
    batch, waited = pipeline.numbers["batch_size"], float(np.sum(launching(pipeline)))
    times = {name: float(np.sum(cost.at(batch))) for name, cost in pipeline.costs().items()}
    works = sum(time for name, time in times.items() if WORKS[name])
    return works - waited, -sum(time for name, time in times.items() if not WORKS[name]) - waited


def _facts(pipeline: Description) -> Iterator[_Choice]:
    """Every fact of its parts that lies between two ends; what a pipeline gives itself is taken as given."""
    owners: Mapping[str, Unchecked] = {
        "assumptions": pipeline.assumptions,
        "storage": pipeline.storage and pipeline.storage.of,
        "link": pipeline.link and pipeline.link.of,
        "dataset": pipeline.samples,  # also where it came with the model
    }
    for field, owner in owners.items():
        for name, fact in getattr(owner, "facts", {}).items():
            if fact.low is not None:
                change = partial(_changed, field=field, owner=owner, name=name)
                certain = partial(dataclasses.replace, fact, low=None, high=None)  # its source stays
                ends = {cell(v): partial(change, value=certain(value=v)) for v in (fact.low, fact.high)}
                yield _Choice(f"{name} of the {field}", fact.origin, ends)


def _changed(
    pipeline: Description, *, field: str, owner: Unchecked, name: str, value: Unchecked
) -> Description:
    part = getattr(pipeline, field)
    now = getattr(part, "of", part)  # an earlier change may have made this owner another one
    return pipeline.replace(**{field: (owner if now is None else now).replace(**{name: value})})


def _times(pipeline: Description, frameworks: list[str | None]) -> dict[str, SampleTime]:
    """The time of a sample on the accelerator by each framework's rates; empty where none decides it."""
    assumed, accelerator = pipeline.assumptions, pipeline.hardware
    if pipeline.numbers["accelerator_rate"] is not None or pipeline.model is None or accelerator.of is None:
        return {}
    if accelerator.framework.name is None and not assumed.measured_rates:
        return {}
    asked = (pipeline.model, accelerator.of, accelerator.precision, pipeline.phase or assumed.phase)
    times = {name: assumed_time(assumed, *asked, name) for name in frameworks}
    return {name or time.framework: time for name, time in times.items() if time is not None}


def _frameworks(pipeline: Description) -> _Choice | None:
    """The framework of the accelerator's rate, where the pipeline names none and several were measured."""
    if pipeline.hardware.framework.name is not None or pipeline.model is None:
        return None
    times = _times(pipeline, [*frameworks_of(pipeline.model)])
    if len(times) < 2:
        return None
    rates = {name: f"{cell(Q_(1 / time.seconds, 'img/s'))} ({name})" for name, time in times.items()}
    return _Choice(
        "rate of the GPU",
        "; ".join(f"{name}: {time.basis}" for name, time in times.items()),
        {rate: partial(_in_framework, name=name) for name, rate in rates.items()},
    )


def _in_framework(pipeline: Description, *, name: str) -> Description:
    return pipeline.replace({"hardware.rate": pipeline.hardware.framework.replace(name=name)})


def _launching(pipeline: Description) -> _Choice | None:
    """How long the host launches a step, as it was measured of its framework."""
    assumed, hardware = pipeline.assumptions, pipeline.hardware.of
    times = [*_times(pipeline, [pipeline.hardware.framework.name]).values()]
    fact = assumed.facts.get("overhead_per_layer")
    if not times or hardware is None or not assumed.overhead_overlaps or fact is None or fact.given:
        return None
    fact = launch_time(times[0].framework, hardware.path)
    ratio = assumed.overhead_per_layer / fact.value
    change = partial(_changed, field="assumptions", owner=assumed, name="overhead_per_layer")
    ends = {cell(end): partial(change, value=(end * ratio).to("ms")) for end in (fact.low, fact.high)}
    return _Choice("launching a forward pass of ResNet-50", fact.origin, ends)
