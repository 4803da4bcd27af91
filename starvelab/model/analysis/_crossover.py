"""The batch size at which the bottleneck passes from the accelerator to its input, as an exact fraction."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import floor

from ...errors import UnknownNameError
from ...units import format_number
from ..cost import Cost
from ..description import Description
from ..resources import ACCELERATOR, LABELS, capitalized
from ._point import one_point, overlapping


@dataclass(frozen=True)
class Crossover:
    """Where starvation begins: the exact batch size at which the costs cross, and the whole ones beside it.

    `batch` is None if the accelerator is starved at every batch size, or at none. Up to `last_fed` it binds:
    0 if it never does, None if it always does. `starves_from` is the first batch that starves it, as a tie
    starves nobody; there `resource` takes over, "" if none does. `infeasible_reason` says why that batch
    cannot run; "" where it can.
    """

    batch: Fraction | None
    last_fed: int | None
    starves_from: int | None
    resource: str
    infeasible_reason: str = ""

    def __str__(self) -> str:
        if self.starves_from is None:
            return "The accelerator binds at every batch size."
        if self.batch is None:
            return f"{capitalized(self.resource)} binds at every batch size."
        beyond = f" Batch {self.starves_from} is not feasible. {self.infeasible_reason}"
        return (
            f"Up to batch {self.last_fed} the accelerator binds, from {self.starves_from} on "
            f"{LABELS[self.resource]}: they cross at {format_number(float(self.batch), 6)}."
            f"{beyond if self.infeasible_reason else ''}"
        )


def crossover(pipeline: Description, *, resource: str | None = None) -> Crossover:
    """Find the smallest batch size at which the accelerator waits.

    Parameters
    ----------
    resource : str, optional
        Look at this resource alone; otherwise at whichever starves the accelerator first.

    Raises
    ------
    InputError, UnknownNameError

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
    one_point(pipeline, "crossover", whatever=("batch_size",))
    overlapping(pipeline, "crossover")
    costs = pipeline.resource_costs(exact=True)
    own = costs.pop(ACCELERATOR.name)
    if resource is not None:
        if resource not in costs:
            raise UnknownNameError(f"The pipeline does not model {resource!r}. There is: {', '.join(costs)}.")
        costs = {resource: costs[resource]}
    starving = {name: batch for name, cost in costs.items() if (batch := starves_from(cost, own)) is not None}
    if not starving:
        return Crossover(None, None, None, "")
    # Where several starve it at the same batch size, the slowest of them is named.
    first = min(starving, key=lambda name: (starving[name], -costs[name].at(starving[name])))
    batch = starving[first]
    reason = pipeline.solve(batch_size=batch).infeasible_reason
    return Crossover(_meeting(costs[first], own, batch), batch - 1, batch, first, reason)


def _edges(*costs: Cost) -> list[Fraction]:
    """Zero, and every batch size at which two pieces cross: between these no cost overtakes another."""
    pieces = [piece for cost in costs for piece in cost.pieces]
    crossings = {
        Fraction(b.fixed - a.fixed) / (a.per_sample - b.per_sample)
        for a, b in combinations(pieces, 2)
        if a.per_sample != b.per_sample
    }
    return sorted({Fraction(0), *(edge for edge in crossings if edge > 0)})


def starves_from(supply: Cost, own: Cost) -> int | None:
    """The smallest whole batch size for which `supply` takes longer than `own`; None if there is none."""
    first_whole = [floor(edge) + 1 for edge in _edges(supply, own)]
    return next((batch for batch in first_whole if supply.at(batch) > own.at(batch)), None)


def _meeting(supply: Cost, own: Cost, starves_from: int) -> Fraction | None:
    """Where the two cross on the way to that batch size; None if not even one sample is in time."""
    if starves_from == 1:
        return None
    return max(
        edge for edge in _edges(supply, own) if edge < starves_from and supply.at(edge) <= own.at(edge)
    )
