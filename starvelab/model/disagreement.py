"""Values of which sources disagree, and a pipeline with the least and the most favorable of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..tables import cell
from ..units import Q_, Unchecked
from .description import Description
from .facts import Fact
from .rates import SampleTime, Work, frameworks_of, launch_time, sample_time
from .step import Ranges

Change = Callable[[Description], Description]


@dataclass(frozen=True)
class Choice:
    """A value of which sources disagree, and how a pipeline becomes one with each of its ends."""

    name: str
    origin: str
    changes: Mapping[str, Change]

    def ordered(self, pipeline: Description) -> list[Change]:
        """The changes from the least to the most favorable; empty where the pipeline does not read this."""
        # A better value makes no resource slower, so what all of them take together tells the ends apart
        # also where this one does not bind.
        taken = [(_work(change(pipeline)), change) for change in self.changes.values()]
        if len({work for work, _ in taken}) == 1:
            return []
        return [change for _, change in sorted(taken, key=lambda pair: pair[0], reverse=True)]


def choices(pipeline: Description) -> Iterator[Choice]:
    """Every value of a pipeline of which sources disagree; what it gives itself is taken as given."""
    yield from _facts(pipeline)
    yield from filter(None, (_frameworks(pipeline), _launching(pipeline)))


def corners(pipeline: Description) -> tuple[list[Description], list[Description]]:
    """The pipeline with the least and with the most favorable values, once for each framework of its rate.

    Where a pipeline names no framework none of them is the least favorable everywhere: one takes longer to
    launch, and another to compute. The throughput and the utilization lie between the lowest and the highest.
    """
    slowest = fastest = pipeline
    for choice in _facts(pipeline):
        if ends := choice.ordered(pipeline):
            slowest, fastest = ends[0](slowest), ends[-1](fastest)
    found = _frameworks(pipeline)
    lows, highs = [], []
    for in_framework in found.changes.values() if found else (lambda same: same,):
        low, high = in_framework(slowest), in_framework(fastest)
        launching = _launching(low)
        if launching is not None:
            ends = [*launching.changes.values()]
            low, high = ends[-1](low), ends[0](high)
        lows.append(low)
        highs.append(high)
    return lows, highs


def ranges_of(pipeline: Description) -> Ranges:
    """Between which throughputs and utilizations the truth lies: the corners, and the model's own error."""
    lows, highs = ([one.solve() for one in ends] for ends in corners(pipeline))
    off = 1 + pipeline.assumptions.model_error
    low, high = ([one.throughput.m_as("img/s") for one in ends] for ends in (lows, highs))
    least, most = ([one.utilization for one in ends] for ends in (lows, highs))
    return Ranges(
        (Q_(np.minimum.reduce(low) / off, "img/s"), Q_(np.maximum.reduce(high) * off, "img/s")),
        (np.minimum.reduce(least) / off, np.minimum(np.maximum.reduce(most) * off, 1.0)),
    )


def _facts(pipeline: Description) -> Iterator[Choice]:
    owners: Mapping[str, Unchecked] = {
        "assumptions": pipeline.assumptions,
        "storage": pipeline.storage and pipeline.storage.of,
        "link": pipeline.link and pipeline.link.of,
        "dataset": pipeline.samples,  # also where it came with the model
    }
    for field, owner in owners.items():
        for name, fact in getattr(owner, "facts", {}).items():
            if fact.low is not None:
                yield _between(field, owner, name, fact)


def _times(pipeline: Description, frameworks: list[str | None]) -> dict[str, SampleTime]:
    """The time of a sample on the accelerator by each framework's rates; empty where none decides it."""
    assumed, own = pipeline.assumptions, pipeline.hardware
    if pipeline.numbers["accelerator_rate"] is not None or pipeline.model is None or own.of is None:
        return {}
    if own.framework.name is None and not assumed.measured_rates:
        return {}
    work = Work(assumed.numbers["flop_per_mac"], assumed.numbers["training_factor"])
    asked = (pipeline.model, own.of, own.precision, pipeline.phase or assumed.phase, work)
    times = {name: sample_time(*asked, name) for name in frameworks}
    return {name or time.framework: time for name, time in times.items() if time is not None}


def _frameworks(pipeline: Description) -> Choice | None:
    """The framework of the accelerator's rate, where the pipeline names none and several were measured."""
    if pipeline.hardware.framework.name is not None or pipeline.model is None:
        return None
    known = _times(pipeline, [*frameworks_of(pipeline.model)])
    if len(known) < 2:
        return None
    return Choice(
        "rate of the accelerator",
        "; ".join(f"{name}: {time.basis}" for name, time in known.items()),
        {f"{cell(Q_(1 / time.seconds, 'img/s'))} ({n})": _in_framework(n) for n, time in known.items()},
    )


def _launching(pipeline: Description) -> Choice | None:
    """How long the host launches a step, as it was measured of its framework."""
    assumed, hardware = pipeline.assumptions, pipeline.hardware.of
    known = [*_times(pipeline, [pipeline.hardware.framework.name]).values()]
    fact = assumed.facts.get("overhead_per_layer")
    if not known or hardware is None or not assumed.overhead_overlaps or fact is None or fact.given:
        return None
    fact = launch_time(known[0].framework, hardware.path)
    share = {end: (value / fact.value).m_as("") for end, value in (("low", fact.low), ("high", fact.high))}
    return Choice(
        "launching a forward pass of ResNet-50",
        fact.origin,
        {cell(getattr(fact, end)): _launching_times(factor) for end, factor in share.items()},
    )


def _launching_times(factor: float) -> Change:
    def change(pipeline: Description) -> Description:
        each = factor * pipeline.assumptions.overhead_per_layer
        return pipeline.replace(assumptions=pipeline.assumptions.replace(overhead_per_layer=each))

    return change


def _work(pipeline: Description) -> float:
    """What all stages do together, at all points [s]."""
    batch = pipeline.numbers["batch_size"]
    return float(sum(np.sum(cost.at(batch)) for cost in pipeline.costs().values()))


def _in_framework(name: str) -> Change:
    def change(pipeline: Description) -> Description:
        rate = pipeline.hardware.framework.replace(name=name)
        return pipeline.replace({"hardware.rate": rate})

    return change


def _between(field: str, owner: Unchecked, name: str, fact: Fact) -> Choice:
    def with_value(value: Unchecked) -> Change:
        end = dataclasses.replace(fact, value=value, low=None, high=None)  # its source stays

        def change(pipeline: Description) -> Description:
            # An earlier change may have made this owner another one.
            part = getattr(pipeline, field)
            now = getattr(part, "of", part)
            return pipeline.replace(**{field: (owner if now is None else now).replace(**{name: end})})

        return change

    ends = {cell(end): with_value(end) for end in (fact.low, fact.high)}
    return Choice(f"{name} of the {field}", fact.origin, ends)
