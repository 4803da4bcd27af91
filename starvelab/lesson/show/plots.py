"""Static figures: bars of a step and of any values, and what the workers change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InputError
from ...model.analysis._remarks import foreign_rate
from ...model.assumptions import COVERAGE
from ...model.costs import exceeds
from ...model.description import check_asked
from ...model.resources import ACCELERATOR, CPU, capitalized
from ...model.step import Step, one_step
from ...pipeline import Pipeline
from ...tables import percent
from ...units import format_number, format_quantity
from .drawing import caveat
from .figure import SERIES, StaticFigure, plot, render_figure
from .svg import noted_bars, step_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAND = (
    "The band is what the sources of the values allow, with the model's own error: it claims to hold the "
    f"truth in {percent(COVERAGE, 0)} of the cases."
)


def stage_bars(step: Step) -> StaticFigure:
    """Draw one bar for each resource, as long as its time for a batch; the longest sets the step.

    Parameters
    ----------
    step : Step
        Solved at one point.
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
    """Draw horizontal bars, each with its note; bars below zero are hatched.

    Parameters
    ----------
    labels, notes : sequence of str
        What each bar stands for, and what is written beside it.
    values : sequence of float
        How long each bar is, in the unit that `axis` names.
    axis : str
        What the bars count, with its unit.
    caption : str
        One or more sentences that say what the bars show.

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


def over_workers(pipelines: Mapping[str, Pipeline], *, workers: Sequence[int]) -> StaticFigure:
    """Draw utilization over the number of workers, a line for each named pipeline, its last wall marked.

    If its assumptions have ranges, a band shows what the sources of the values allow.

    Parameters
    ----------
    pipelines : mapping of str to Pipeline
        What each line is called, and what it solves; up to four.
    workers : sequence of int
        Two or more; the table has a row for each.
    """
    counts = sorted(set(workers))
    if not 1 <= len(pipelines) <= len(SERIES) or len(counts) < 2:
        raise InputError(
            f"over_workers draws one to {len(SERIES)} pipelines for two or more numbers of workers, got "
            f"{len(pipelines)} and {counts}. "
            'Pass for example {"one drive": pipeline}, workers=[8, 16, 32].'
        )
    dense, solved, columns, sentences = np.arange(counts[0], counts[-1] + 1), {}, {}, []
    for name, pipeline in pipelines.items():
        check_asked(pipeline, "over_workers", whatever=pipeline.swept, overlapping=True)
        at, step = pipeline.solve(workers=counts), pipeline.solve(workers=dense)
        label = name if np.all(step.feasible) else f"{name} (not feasible)"
        solved[label], columns[label] = step, np.asarray(at.utilization)
        if _has_band(step):
            columns |= zip((f"{label} from", f"{label} to"), np.asarray(at.ranges.utilization), strict=True)
        sentences += [_wall_in_words(name, step, dense), caveat("pale", step.infeasible_reason)]

    def draw(axes: Axes) -> None:
        for (label, step), (color, dash) in zip(solved.items(), SERIES, strict=False):
            alpha = 1 if np.all(step.feasible) else 0.4
            shares = 100 * np.asarray(step.utilization)
            axes.plot(dense, shares, color=color, linestyle=dash, linewidth=2, label=label, alpha=alpha)
            if _has_band(step):
                low, high = (100 * np.asarray(end) for end in step.ranges.utilization)
                axes.fill_between(dense, low, high, color=color, alpha=0.2, linewidth=0)
            if (wall := _wall(step)) is not None:
                axes.plot(dense[wall], shares[wall], "o", color=color, markersize=8)
        axes.set(xlabel="workers", ylabel=f"{axis} (%)", ylim=(0, 105), xlim=(0, counts[-1] * 1.02))
        axes.legend(frameon=False, loc="lower right")

    axis = f"{step.labels[ACCELERATOR.name]} busy"
    notes = dict.fromkeys(foreign_rate(pipeline) for pipeline in pipelines.values())
    alt = "Line chart of utilization over the number of workers."
    return render_figure(
        plot(draw, title=sentences[0], description=alt),
        alt=alt,
        caption="Utilization over workers; a disc shows where more of them stop helping.",
        found=(*sentences, _BAND * any(map(_has_band, solved.values())), *notes),
        headers=["workers", *columns],
        rows=[[n, *(percent(column[i]) for column in columns.values())] for i, n in enumerate(counts)],
    )


def _has_band(step: Step) -> bool:
    return step.ranged and not np.array_equal(*step.ranges.utilization)


def _wall_in_words(name: str, step: Step, dense: np.ndarray) -> str:
    """From how many workers on something else sets the limit."""
    name = name[:1].upper() + name[1:]
    wall = _wall(step)
    if wall is None:
        return f"{name}: {step.labels.does(CPU.name, 'bind')}, up to {dense[-1]} of them."
    others = {other: times[wall] for other, times in _others(step).items()}
    # As in the pipeline, the accelerator binds in a tie.
    slowest = max(others, key=lambda other: (others[other], other == ACCELERATOR.name))
    share = percent(np.asarray(step.utilization)[wall])
    return (
        f"{name}: from {dense[wall]} workers on, {step.labels.does(slowest, 'set')} the limit: {share} busy."
    )


def _others(step: Step) -> dict[str, np.ndarray]:
    return {name: time.m_as("ms") for name, time in step.resource_times.items() if name != CPU.name}


def _wall(step: Step) -> int | None:
    """The first position from which the CPU is no slower than something else; None if there is none."""
    keeps_up = ~exceeds(step.resource_times[CPU.name].m_as("ms"), reduce(np.maximum, _others(step).values()))
    return int(np.argmax(keeps_up)) if keeps_up.any() else None
