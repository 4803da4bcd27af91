"""Static figures of bars: of a step, and of any values."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InputError
from ...model.resources import ACCELERATOR, capitalized
from ...model.step import Step, one_step
from ...tables import percent
from ...units import format_number, format_quantity
from .drawing import caveat
from .figure import StaticFigure, render_figure
from .svg import noted_bars, step_bars


def stage_bars(step: Step) -> StaticFigure:
    """One bar for each resource, as long as its share of work takes; the longest sets the step.

    Parameters
    ----------
    step : Step
        At one point.
    """
    one_step(step, "stage_bars")
    times = {name: time.m_as("ms") for name, time in step.resource_times.items()}
    sets = f"{capitalized(step.labels.does(step.bottleneck, 'set'))} the step of"
    if not step.overlap:
        sets = "Nothing overlaps, so the times add up to a step of"
    chip = step.labels.the(ACCELERATOR.name)
    busy = f"{format_quantity(step.step_time)}; {chip} is busy {percent(step.utilization)} of it."
    each = ", ".join(f"{step.labels[name]} {format_number(ms)} ms" for name, ms in times.items())
    return render_figure(
        step_bars(step),
        alt=f"Bar chart of the time for one batch: {each}.",
        caption=f"Time each resource needs for one batch of {step.batch_size}.",
        found=(f"{sets} {busy}", step.spoken_busy, caveat("hollow", step.infeasible_reason)),
        headers=["resource", "time for a batch", "idle share of a step"],
        rows=[
            (step.labels[name], time, percent(step.headroom[name]))
            for name, time in step.resource_times.items()
        ],
        feasible=step.feasible,
    )


def labeled_bars(
    labels: Sequence[str], values: Sequence[float], notes: Sequence[str], *, axis: str, caption: str
) -> StaticFigure:
    """Horizontal bars, each with its note; bars below zero are hatched.

    Parameters
    ----------
    labels, notes : sequence of str
        What each bar stands for, and what is written beside it.
    values : sequence of float
        How long each bar is, in the unit that `axis` names.
    axis : str
        What the bars count, with its unit.
    caption : str
        One or more sentences that say what there is to see.

    Raises
    ------
    InputError
        If the three sequences are not of one length, or empty.
    """
    if not len(labels) == len(values) == len(notes) > 0:
        raise InputError(
            "Each bar has a label, a value and a note, "
            f"got {len(labels)}, {len(values)} and {len(notes)} of them. Pass as many of each."
        )
    each = "; ".join(f"{label} {note}" for label, note in zip(labels, notes, strict=True))
    return render_figure(
        noted_bars(labels, values, notes, title=f"Bar chart of {axis}", description=f"{each}."),
        alt=f"Bar chart of {axis}: {each}.",
        caption=f"{capitalized(axis)}.",
        found=(caption,),
        headers=["", axis, "note"],
        rows=zip(labels, values, notes, strict=True),
    )
