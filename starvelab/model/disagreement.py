"""Values of which sources disagree, and a pipeline with the least and the most favorable of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..tables import cell
from ..units import Q_, Unchecked
from .facts import Fact
from .rate_law import Work, frameworks_of, sample_time
from .stages import SingleNodeModel
from .stages.step_parts import SingleNodeInputs, launch_wait

if TYPE_CHECKING:  # a pipeline's own module imports that of its result, which asks here
    from .pipeline import Pipeline

Change = Callable[["Pipeline"], "Pipeline"]


@dataclass(frozen=True)
class Choice:
    """A value of which sources disagree, and how a pipeline becomes one with each of its ends."""

    name: str
    origin: str
    changes: Mapping[str, Change]
    of_accelerator: bool = False

    def ordered(self, pipeline: Pipeline) -> list[Change]:
        """The changes from the least to the most favorable; empty where the pipeline does not read this."""
        # A better value makes no resource slower, so what all of them take together tells the ends apart
        # also where this one does not bind.
        taken = [(_work(change(pipeline)), change) for change in self.changes.values()]
        if len({work for work, _ in taken}) == 1:
            return []
        return [change for _, change in sorted(taken, key=lambda pair: pair[0], reverse=True)]


def choices(pipeline: Pipeline) -> Iterator[Choice]:
    """Every value of a pipeline of which sources disagree; what it gives itself is taken as given."""
    owners: Mapping[str, Unchecked] = {
        "assumptions": pipeline.assumptions,
        "storage": pipeline.storage,
        "link": pipeline.link,
        "dataset": pipeline.samples,  # also where it came with the model
    }
    for field, owner in owners.items():
        for name, fact in getattr(owner, "facts", {}).items():
            if fact.low is not None:
                yield _between(field, owner, name, fact)
    assumed = pipeline.assumptions
    given = pipeline.accelerator_rate is not None or pipeline.framework is not None
    if given or not assumed.measured_rates or pipeline.model is None or pipeline.hardware is None:
        return
    work = Work(assumed.numbers["flop_per_mac"], assumed.numbers["training_factor"])
    asked = (pipeline.model, pipeline.hardware, pipeline.precision, pipeline.phase or assumed.phase, work)
    times = {name: sample_time(*asked, name) for name in frameworks_of(pipeline.model)}
    known = {name: time for name, time in times.items() if time is not None}
    if len(known) > 1:
        yield Choice(
            "rate of the accelerator",
            "; ".join(f"{name}: {time.basis}" for name, time in known.items()),
            {f"{cell(Q_(1 / time.seconds, 'img/s'))} ({n})": _in_framework(n) for n, time in known.items()},
            of_accelerator=True,
        )


def corners(pipeline: Pipeline) -> tuple[Pipeline, Pipeline, Pipeline, Pipeline]:
    """The pipeline with values that are least and most favorable to throughput, and then to utilization.

    An accelerator is busy for the largest share of a step where it is slow itself and everything else fast.
    """
    slowest = fastest = pipeline
    idlest = busiest = None
    # That of the accelerator is the last: up to there the idlest is the slowest, and the busiest the fastest.
    for choice in choices(pipeline):
        if ends := choice.ordered(pipeline):
            worst, best = ends[0], ends[-1]
            if choice.of_accelerator:
                idlest, busiest = best(slowest), worst(fastest)
            slowest, fastest = worst(slowest), best(fastest)
    return slowest, fastest, idlest or slowest, busiest or fastest


def _work(pipeline: Pipeline) -> float:
    """What all stages do together, at all points, without waiting for launches [s]."""
    batch, model = pipeline.numbers["batch_size"], pipeline.inputs[SingleNodeModel.NAME]
    assert isinstance(model, SingleNodeInputs)
    waits = np.sum(np.broadcast_to(launch_wait(model, batch), np.shape(batch)))
    return float(sum(np.sum(cost.at(batch)) for cost in pipeline.costs().values()) - waits)


def _in_framework(name: str) -> Change:
    return lambda p: p.replace(framework=name)


def _between(field: str, owner: Unchecked, name: str, fact: Fact) -> Choice:
    def with_value(value: Unchecked) -> Change:
        end = dataclasses.replace(fact, value=value, low=None, high=None)  # its source stays

        def change(pipeline: Pipeline) -> Pipeline:
            # An earlier change may have made this owner another one.
            now = getattr(pipeline, field)
            return pipeline.replace(**{field: (owner if now is None else now).replace(**{name: end})})

        return change

    ends = {cell(end): with_value(end) for end in (fact.low, fact.high)}
    return Choice(f"{name} of the {field}", fact.origin, ends)
