"""What has an answer at one point only, and the first batches of such a point in time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ...units import Unchecked, positive_int
from ..description import Description
from ..step import Step


def one_point(pipeline: Description, question: str, *, whatever: tuple[str, ...] = ()) -> None:
    """Reject a pipeline with swept fields, except those that do not matter to the question."""
    swept = [name for name in pipeline.swept if name not in whatever]
    if swept:
        raise InputError(
            f"{question} looks at one point, got several values of {', '.join(swept)}. "
            "Pass one value of each."
        )


def overlapping(pipeline: Description, question: str) -> None:
    """Reject a pipeline in which nothing overlaps: then no resource hides behind another."""
    if pipeline.overlap and not pipeline.alone:
        return
    got, wanted = "overlap=False: then the accelerator always waits", "overlap=True"
    if pipeline.alone:
        got, wanted = "a loop without workers: then it prepares between its steps", "workers=1"
    raise InputError(f"{question} looks at stages that overlap, got {got}. Pass {wanted}.")


def one_step(step: Unchecked, question: str) -> None:
    """Reject what is no solved pipeline, or one solved at many points."""
    if not isinstance(step, Step):
        raise InputError(
            f"{question} looks at a solved pipeline, got {type(step).__name__}. Pass pipeline.solve()."
        )
    if np.ndim(step.utilization):
        many = np.size(step.utilization)
        raise InputError(f"{question} looks at one point, got {many}. Solve for one.")


@dataclass(frozen=True)
class Job:
    """One batch on one resource, from `start` to `end` in milliseconds; the first batch is 0."""

    resource: str
    batch: int
    start: float
    end: float


def schedule(step: Step, *, batches: int = 5) -> tuple[Job, ...]:
    """Lay out the first batches of a solved pipeline, by mean times and with unlimited prefetch.

    A resource starts a batch when it is free and the resource before it has finished that batch. With
    ``overlap=False`` a batch is not begun before the one before it is done.

    >>> from starvelab import Hardware, Models, Pipeline
    >>> pipeline = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256, workers=8)
    >>> step = pipeline.solve()
    >>> [(job.resource, job.start, round(job.end, 2)) for job in schedule(step, batches=2)]
    [('CPU', 0.0, 64.0), ('accelerator', 64.0, 75.74), ('CPU', 64.0, 128.0), ('accelerator', 128.0, 139.74)]
    """
    one_step(step, "schedule")
    times = {name: step.resource_times[name].m_as("ms") for name in step.resource_times}
    free = dict.fromkeys(times, 0.0)
    jobs = []
    for batch in range(positive_int(batches, "batches")):
        ready = 0.0 if step.overlap else max(free.values())
        for resource, duration in times.items():
            start = max(ready, free[resource])
            ready = free[resource] = start + duration
            jobs.append(Job(resource, batch, start, ready))
    return tuple(jobs)
