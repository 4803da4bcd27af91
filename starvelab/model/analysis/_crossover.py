"""From which batch size the accelerator waits: exact, as a rounded step time would not be."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from math import floor

from ...tables import TableRepr
from ...units import Unchecked, format_number
from ..costs import Cost
from ..description import Description, check_asked
from ..resources import ACCELERATOR, LABELS, Labels, capitalized
from ..solver import BatchTimes, by_resource


@dataclass(frozen=True, repr=False)
class Crossover(TableRepr):
    """Where starvation begins: the exact batch size at which the costs cross, and the whole ones beside it.

    `batch` is None if the accelerator is starved at every batch size, or at none. Up to `last_fed` it binds:
    0 if it never does, None if it always does. `starves_from` is the first batch that starves it, as a tie
    starves nobody; there `resource` takes over, or is waited for in turns; "" if none does.
    `infeasible_reason` says why that batch cannot run; "" where it can.
    """

    batch: Fraction | None
    last_fed: int | None
    starves_from: int | None
    resource: str
    infeasible_reason: str = ""
    labels: Labels = field(default=LABELS, compare=False)

    headers = ("figure", "value")

    @property
    def summary(self) -> str:
        """Where it begins, in sentences."""
        binds = self.labels.does(ACCELERATOR.name, "bind")
        if self.starves_from is None:
            return f"{capitalized(binds)} at every batch size."
        if self.batch is None:
            return f"{capitalized(self.labels.does(self.resource, 'bind'))} at every batch size."
        beyond = f" Batch {self.starves_from} is not feasible. {self.infeasible_reason}"
        return (
            f"Up to batch {self.last_fed} {binds}, from {self.starves_from} on "
            f"{self.labels.the(self.resource)}: they cross at {format_number(float(self.batch), 6)}."
            f"{beyond if self.infeasible_reason else ''}"
        )

    @property
    def rows(self) -> list[list[Unchecked]]:
        """The batch sizes, and what binds beyond them."""
        crossing = None if self.batch is None else float(self.batch)
        binds = self.labels[self.resource] if self.resource else None
        named = {
            "they cross at batch": crossing,
            "last batch that is fed": self.last_fed,
            "first batch that starves": self.starves_from,
            "then binds": binds,
        }
        return [[name, value] for name, value in named.items() if value is not None]


def crossover(pipeline: Description) -> Crossover:
    """Find the smallest batch size at which the accelerator waits.

    Raises
    ------
    InputError

    Notes
    -----
    Where a small batch is bound by memory traffic and a large one by arithmetic, the accelerator can bind
    again further on; this is the first crossing.

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline
    >>> found = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=8).crossover()
    >>> found.batch, found.last_fed, found.starves_from
    (Fraction(39117, 1745), 22, 23)
    """
    check_asked(pipeline, "crossover", whatever=("batch_size",), overlapping=True)
    stages = pipeline.costs(exact=True)
    supplies = by_resource(stages)
    trips = [*BatchTimes.of(supplies, pipeline.numbers).round_trips()]
    accelerator = supplies.pop(ACCELERATOR.name)
    for name, trip in trips:
        supplies[name] |= trip
    starving = {
        name: batch
        for name, cost in supplies.items()
        if (batch := starves_from(cost, accelerator)) is not None
    }
    if not starving:
        return Crossover(None, None, None, "", labels=pipeline.labels)
    # Where several starve it at the same batch size, the slowest of them is named.
    first = min(starving, key=lambda name: (starving[name], -supplies[name].at(starving[name])))
    supply, batch = supplies[first], starving[first]
    before = (
        edge
        for edge in _edges(supply, accelerator)
        if edge < batch and supply.at(edge) <= accelerator.at(edge)
    )
    reason = pipeline.solve(batch_size=batch).infeasible_reason
    exact_batch = None if batch == 1 else max(before)
    return Crossover(exact_batch, batch - 1, batch, first, reason, pipeline.labels)


def starves_from(supply: Cost, accelerator: Cost) -> int | None:
    """Return the smallest whole batch size at which `supply` takes longer; None if there is none."""
    first_whole = (floor(edge) + 1 for edge in _edges(supply, accelerator))
    return next((batch for batch in first_whole if supply.at(batch) > accelerator.at(batch)), None)


def _edges(*costs: Cost) -> list[Fraction]:
    """Zero, and every batch size at which two pieces cross: between these no cost overtakes another."""
    pairs = combinations([piece for cost in costs for piece in cost.pieces], 2)
    lines = ((Fraction(b.fixed - a.fixed), a.per_sample - b.per_sample) for a, b in pairs)
    return sorted({Fraction(0), *(fixed / slope for fixed, slope in lines if fixed * slope > 0)})
