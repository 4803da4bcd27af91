"""The batch size at which the binding constraint passes from the accelerator to its input.

Exact: costs are the largest of a few straight lines, so the answer is a fraction, not a search.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import floor
from typing import Any

from ..errors import InputError, UnknownNameError
from ..stages import Cost
from ..units import exact, format_number


@dataclass(frozen=True)
class Crossover:
    """Where starvation begins.

    Attributes
    ----------
    batch : Fraction or None
        The exact crossing; None if the accelerator is starved at every batch size, or at none.
    last_fed : int or None
        The largest batch up to which the accelerator binds (0 if it never does); None if it always does.
    starves_from : int or None
        The first batch that starves it; a tie starves nobody.
    resource : str
        The resource that takes over, "" if none does.
    """

    batch: Fraction | None
    last_fed: int | None
    starves_from: int | None
    resource: str

    def __str__(self) -> str:
        if self.starves_from is None:
            return "The accelerator binds at every batch size."
        if self.batch is None:
            return f"The {self.resource} binds at every batch size."
        return (
            f"Up to batch {self.last_fed} the accelerator binds, from {self.starves_from} on the {self.resource} "
            f"(they cross at {format_number(float(self.batch), 6)})."
        )


def crossover(pipeline: Any, *, resource: str | None = None) -> Crossover:
    """Find the smallest batch size at which the accelerator waits.

    Parameters
    ----------
    pipeline : Pipeline
        Its batch size does not matter.
    resource : str, optional
        Look at this resource alone; otherwise at whichever starves the accelerator first.

    Raises
    ------
    InputError, UnknownNameError

    Notes
    -----
    With ``overlap=False`` stages add up and the accelerator waits at every batch size.

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline
    >>> found = crossover(Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=8))
    >>> found.batch, found.last_fed, found.starves_from
    (Fraction(39117, 1745), 22, 23)
    """
    costs = pipeline.resource_costs(exact)
    own = costs.pop("accelerator")
    if resource is not None:
        if resource not in costs:
            raise UnknownNameError(f"The pipeline does not model {resource!r}. There is: {', '.join(costs)}.")
        costs = {resource: costs[resource]}
    if not pipeline.overlap:
        raise InputError("A crossover needs stages that overlap, got overlap=False: then the accelerator always waits.")
    found = {name: _crossing(cost, own) for name, cost in costs.items()}
    starving = {name: answer for name, answer in found.items() if answer is not None}
    if not starving:
        return Crossover(None, None, None, "")
    # A crossing below one sample starves every batch there is: among those the largest demand is named.
    first = min(starving, key=lambda name: (max(starving[name], Fraction(1)), -costs[name].at(1)))
    if starving[first] < 1:
        return Crossover(None, 0, 1, first)
    last = floor(starving[first])
    return Crossover(starving[first], last, last + 1, first)


def _crossing(supply: Cost, own: Cost) -> Fraction | None:
    """The batch above which `supply` first takes longer than `own`; None if it never does.

    The sign of their difference changes only where two legs cross, so looking between neighbouring
    crossings is looking everywhere.
    """
    edges = {Fraction(0)}
    for a, b in combinations((*supply.legs, *own.legs), 2):
        if a.per_sample != b.per_sample:
            edges.add(Fraction(b.fixed - a.fixed) / (a.per_sample - b.per_sample))
    edges = sorted(edge for edge in edges if edge >= 0)
    for left, right in zip(edges, [*edges[1:], edges[-1] + 2], strict=True):
        middle = (left + right) / 2
        # An interval without a whole batch size in it decides nothing, nor does its edge.
        holds_batch = floor(right) > max(floor(left), 0) or right == edges[-1] + 2
        if supply.at(middle) > own.at(middle) and holds_batch:
            return left
    return None
