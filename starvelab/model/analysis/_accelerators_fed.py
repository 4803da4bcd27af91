"""How many accelerators one host keeps busy, and how much of its own time an accelerator works."""

from __future__ import annotations

from fractions import Fraction

from ...errors import InputError
from ...units import Number, check_magnitude, exact, one_value, positive_int
from ..description import Description, check_asked
from ..resources import ACCELERATOR
from ..solver import BatchTimes, by_resource, costs
from ..stages import STAGES, SingleNodeModel
from ..stages.single_node import launch_wait
from ._workers_needed import min_workers

# True of the stages in which the accelerator works.
WORKS = {stage.NAME: stage.RESOURCE is ACCELERATOR and not stage.AWAITED for stage in STAGES}


def accelerators_fed(pipeline: Description, utilization: float = 0.9) -> int | None:
    """The largest number of accelerators that are busy for that share of each step.

    Parameters
    ----------
    utilization : float
        The busy share that is asked for, above 0 and up to 1.

    Returns
    -------
    int or None
        0 if not even one is busy enough, or has memory enough for its step; None if nothing that they
        share limits their number.

    Notes
    -----
    Exact: a shared resource takes ``n`` times as long for ``n`` accelerators, so ``n`` of them are busy
    for a share ``u`` as long as ``n supply <= own / u``, and what waits for each other takes no longer.
    Where the pipeline names no cores, those of the host of one accelerator are meant, however many there are.

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline
    >>> Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=128).accelerators_fed()
    3
    """
    check_asked(pipeline, "accelerators_fed", whatever=("hardware.count",), one_host=True, overlapping=True)
    share = one_value(check_magnitude(utilization, "utilization"), "utilization")
    if share > 1:
        raise InputError(f"utilization must be a share up to 1, got {utilization}. Write 0.9 for 90 %.")
    single = pipeline.replace({"hardware.count": 1})
    batch = positive_int(single.batch_size, "batch_size")
    stages = {name: Fraction(cost.at(batch)) for name, cost in single.costs(exact=True).items()}
    busy = sum(time for name, time in stages.items() if WORKS[name]) - Fraction(float(launching(single)))
    longest = busy / exact(share, "utilization")

    def starved(count: int) -> bool:
        """True if the step of so many takes too long, also because parts of it wait for each other."""
        taken = by_resource(costs(single.inputs, count, exact=True))
        trips = (trip for _, trip in BatchTimes.of(taken, single.numbers).round_trips())
        return any(cost.at(batch) > longest for cost in (*taken.values(), *trips))

    if starved(1) or not single.solve().feasible:
        return 0
    first = min_workers(starved)
    return None if first is None else first - 1


def launching(pipeline: Description) -> Number:
    """How long the accelerator waits for launches in a step [s]."""
    return launch_wait(SingleNodeModel.among(pipeline.inputs), pipeline.numbers["batch_size"])
