"""Two pipelines side by side: where the time of a step goes in each, and in what they differ."""

from __future__ import annotations

from ...errors import InputError
from ...model.description import written
from ...model.equality import same
from ...model.paths import FIELDS
from ...model.resources import ACCELERATOR, RESOURCES, capitalized
from ...model.step import Step, one_step
from ...pipeline import Pipeline
from ...tables import Share, cell, paragraph, percent
from ...units import Unchecked, format_number
from .drawing import caveat
from .figure import StaticFigure, render_figure
from .svg import step_bars

_NAMES = ("the first", "the second")


def side_by_side(first: Pipeline, second: Pipeline) -> StaticFigure:
    """Draw two pipelines on one axis of time: what each resource takes, what binds, how fast each one is.

    Parameters
    ----------
    first, second : Pipeline
        Each without swept fields.

    Raises
    ------
    InputError
    """
    pair = (first, second)
    for pipeline in pair:
        if not isinstance(pipeline, Pipeline):
            raise InputError(
                f"side_by_side compares two pipelines, got {type(pipeline).__name__}. "
                "Pass for example pipeline and pipeline.replace(workers=16)."
            )
    steps = [pipeline.solve() for pipeline in pair]
    for step in steps:
        one_step(step, "side_by_side")
    longest = max(
        time.m_as("ms") for step in steps for time in (step.step_time, *step.resource_times.values())
    )
    bars = (
        f"{paragraph(capitalized(name))}{step_bars(step, longest=longest)}"
        for name, step in zip(_NAMES, steps, strict=True)
    )
    return render_figure(
        "".join(bars),
        alt=f"Two bar charts of the time for one batch: {' and '.join(_NAMES)} pipeline.",
        caption="Time each resource needs for one batch, in two pipelines.",
        found=(*_sentences(*steps), *(caveat("hollow", step.infeasible_reason) for step in steps)),
        headers=("", *_NAMES),
        rows=[*_differences(*pair), *_figures(*steps)],
    )


def _sentences(first: Step, second: Step) -> list[str]:
    """What each of them does, and how many times as fast the second is."""
    said = [
        f"{name.capitalize()} takes {cell(step.step_time)} a step, {cell(step.throughput)}: "
        f"{step.labels.does(step.bottleneck, 'bind')}, and {step.labels.the(ACCELERATOR.name)} is busy "
        f"{percent(step.utilization)}."
        for name, step in zip(_NAMES, (first, second), strict=True)
    ]
    times = (second.throughput / first.throughput).m_as("")
    return [*said, f"The second is {format_number(times, 3)} times as fast as the first."]


def _differences(first: Pipeline, second: Pipeline) -> list[list[Unchecked]]:
    """One row for each part in which they differ."""
    parts = ((name, getattr(first, name), getattr(second, name)) for name in FIELDS)
    return [
        [name, *(None if part is None else written(part) for part in (one, other))]
        for name, one, other in parts
        if not same(one, other)
    ]


def _figures(*steps: Step) -> list[list[Unchecked]]:
    """One row for each resource that one of them has, and one for each result."""
    names = [name for name in RESOURCES if any(name in step.resource_times for step in steps)]
    labels = {name: next(s.labels[name] for s in steps if name in s.resource_times) for name in names}
    return [
        *([f"{labels[name]} time", *(step.resource_times.get(name) for step in steps)] for name in names),
        ["step", *(step.step_time for step in steps)],
        ["throughput", *(step.throughput for step in steps)],
        [f"{steps[0].labels[ACCELERATOR.name]} busy", *(Share(step.utilization) for step in steps)],
        ["binds", *(step.labels[step.bottleneck] for step in steps)],
        ["feasible", *(step.feasible for step in steps)],
    ]
