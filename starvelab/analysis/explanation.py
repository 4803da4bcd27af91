"""Two or three sentences a person would say about a pipeline: what binds, the evidence, the next step.

It words what the other analyses found; it finds nothing itself.
"""

from __future__ import annotations

from typing import Any

from ..errors import InputError
from ..tables import percent
from ..units import format_quantity
from .crossover import crossover
from .workers import workers_needed

# Stage verbs: what a resource is busy with.
_WORK = {"storage": "reading", "CPU": "preparing", "link": "copying"}

_CAUSES = {
    "compute": "Most of its step is arithmetic",
    "memory": "Most of its step is memory traffic",
    "overhead": "Most of its step is fixed overhead, not arithmetic",
}


def explain(pipeline: Any) -> str:
    """Say what binds, by how much, and what to do next.

    Parameters
    ----------
    pipeline : Pipeline
        At one point: no swept arguments.

    Raises
    ------
    InputError

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline
    >>> print(explain(Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=16, workers=8)))
    The accelerator binds: it needs 5.436 ms for a batch of 16, and the CPU has it ready in 4 ms. Most of its step is fixed overhead, not arithmetic: a larger batch spreads that over more samples. From batch 23 on the CPU would bind.
    """
    step = pipeline.solve()
    if not isinstance(step.binding, str):
        raise InputError("explain speaks of one point, got a sweep. Pass one batch size and one number of workers.")
    if not pipeline.overlap:
        return (
            f"Nothing overlaps, so all stages add up to {format_quantity(step.step_time)}, and the accelerator is busy "
            f"{percent(step.utilization)} of it. Prefetch batches, so that the slowest resource alone sets the step."
        )
    if step.binding == "accelerator":
        return _fed(pipeline, step)
    return _starved(pipeline, step)


def _fed(pipeline: Any, step: Any) -> str:
    own, following = step.resource_times["accelerator"], step.next_binding
    text = (
        f"The accelerator binds: it needs {format_quantity(own)} for a batch of {pipeline.batch_size}, and the "
        f"{following} has it ready in {format_quantity(step.resource_times[following])}. {_CAUSES[step.cause]}"
    )
    if step.cause == "overhead":
        text += ": a larger batch spreads that over more samples"
    found = crossover(pipeline)
    later = f" From batch {found.starves_from} on the {found.resource} would bind." if found.starves_from else ""
    return f"{text}.{later}"


def _starved(pipeline: Any, step: Any) -> str:
    name = step.binding
    text = (
        f"The {name} binds: {_WORK[name]} a batch of {pipeline.batch_size} takes {format_quantity(step.step_time)}, "
        f"and the accelerator needs {format_quantity(step.resource_times['accelerator'])}, so it is busy "
        f"{percent(step.utilization)} of each step and waits for the rest."
    )
    if name != "CPU":
        return f"{text} It would have to carry {format_quantity(step.demand_at_ceiling)} of stored data: send fewer bytes or widen the {name}."
    if pipeline.cpu_throughput is not None:
        return f"{text} Prepare less per sample, or elsewhere."
    needed = workers_needed(pipeline)
    if needed.workers is None:
        return f"{text} No number of workers keeps up: prepare less per sample, or elsewhere."
    more = f"{text} {needed.workers} workers instead of {pipeline.workers} would keep up"
    return f"{more}, but: {' '.join(needed.obstacles)}" if needed.obstacles else f"{more}."
