"""Static figures: bars of a step and of any values, and what the batch size and the workers change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InputError
from ...model.analysis._remarks import foreign_rate
from ...model.assumptions import COVERAGE
from ...model.costs import exceeds
from ...model.description import check_asked
from ...model.resources import ACCELERATOR, CPU, RESOURCES, capitalized
from ...model.step import Step, one_step
from ...pipeline import Pipeline
from ...tables import percent
from ...units import format_number, format_quantity
from .figure import (
    GRAY,
    SERIES,
    Options,
    StaticFigure,
    as_number,
    as_percent,
    ascending,
    caveat,
    new_figure,
    render_figure,
)
from .svg import noted_bars, step_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_TICKS = 12  # batch sizes that fit below an axis
_CANNOT_RUN: Options = {"facecolor": "none", "edgecolor": GRAY, "hatch": "////", "alpha": 0.5, "linewidth": 0}
_BAND = (
    "The band is what the sources of the values allow, with the model's own error: it claims to hold the "
    f"truth in {percent(COVERAGE, 0)} of the cases."
)


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


def over_batch(
    pipeline: Pipeline, *, batches: Sequence[int] | None = None, ranges: bool | None = None
) -> StaticFigure:
    """Time of each resource, and utilization, over the batch size, with the crossover marked.

    Parameters
    ----------
    pipeline : Pipeline
        Its batch size does not matter.
    batches : sequence of int, optional
        Powers of two from 1 to 1024 unless given.
    ranges : bool, optional
        True for a band that shows what the sources of the values allow; where the assumptions have ranges,
        unless given.
    """
    found, labels = pipeline.crossover(), pipeline.labels
    ticks = ascending([2**i for i in range(11)] if batches is None else batches, "over_batch", "batch sizes")
    at = pipeline.solve(batch_size=ticks)
    dense = np.unique(np.geomspace(ticks[0], ticks[-1], 400).round().astype(int))
    step = pipeline.solve(batch_size=dense)
    figure = new_figure(9.6, 3.7)
    left, right = figure.subplots(1, 2)
    for name, time in step.resource_times.items():
        look = RESOURCES[name]
        left.plot(
            dense, time.m_as("ms"), color=look.color, linestyle=look.dash, label=labels[name], linewidth=2
        )
    left.set(xscale="log", yscale="log", xlabel="batch size", ylabel="time for one batch (ms)")
    left.yaxis.set_major_formatter(as_number)
    left.legend(frameon=False)
    right.plot(dense, step.utilization, color=ACCELERATOR.color, linewidth=2)
    banded = _band(right, dense, step, ACCELERATOR.color, ranges)
    for axes in (left, right):
        if not np.all(step.feasible):
            axes.axvspan(dense[np.argmin(step.feasible)], dense[-1], **_CANNOT_RUN)
    right.set(
        xscale="log",
        xlabel="batch size",
        ylabel=f"{labels[ACCELERATOR.name]} busy (share of a step)",
        ylim=(0, 1.05),
    )
    right.yaxis.set_major_formatter(as_percent)
    if found.batch is not None and ticks[0] <= found.batch <= ticks[-1]:
        where = float(found.batch)
        for axes in (left, right):
            axes.axvline(where, color=GRAY, linestyle="--", linewidth=1)
        note = f"crossover\nat {format_number(where, 3)}"
        right.annotate(note, (where, 0.06), xytext=(6, 0), textcoords="offset points")
    labeled = ticks[:: -(-len(ticks) // _MAX_TICKS)]
    for axes in (left, right):
        axes.set_xticks(labeled, [str(batch) for batch in labeled], rotation=45 if len(labeled) > 8 else 0)
        axes.minorticks_off()
    names, shares, binding = list(at.resource_times), np.asarray(at.utilization), np.asarray(at.bottleneck)
    headers = ["batch", *(f"{labels[name]} time" for name in names), "utilization", "binds"]
    rows = [
        [b, *(at.resource_times[name][i] for name in names), percent(shares[i]), labels[binding[i]]]
        for i, b in enumerate(ticks)
    ]
    if banded:
        ends = np.transpose(at.ranges.utilization)
        headers += ["utilization from", "to"]
        rows = [[*row, *map(percent, pair)] for row, pair in zip(rows, ends, strict=True)]
    first, last = (percent(shares[i]) for i in (0, -1))
    busy = f"utilization, which is {first} at batch {ticks[0]} and {last} at {ticks[-1]}"
    # What cannot run is said once, with what is hatched.
    crossing, hatched = str(replace(found, infeasible_reason="")), caveat("hatched", step.infeasible_reason)
    return render_figure(
        figure,
        alt=f"Two line charts over the batch size: the time of each resource, and {busy}.",
        caption="Time of each resource and utilization over the batch size.",
        found=(crossing, _BAND * banded, hatched, at.spoken_busy, foreign_rate(pipeline)),
        headers=headers,
        rows=rows,
        feasible=at.feasible,
    )


def over_workers(
    pipelines: Mapping[str, Pipeline], *, workers: Sequence[int], ranges: bool | None = None
) -> StaticFigure:
    """Utilization over the number of workers, one line for each named pipeline, with its last wall marked.

    Parameters
    ----------
    pipelines : mapping of str to Pipeline
        What each line is called, and what it solves; up to four.
    workers : sequence of int
    ranges : bool, optional
        As for `over_batch`.
    """
    if not 1 <= len(pipelines) <= len(SERIES):
        raise InputError(
            f"over_workers draws one to {len(SERIES)} pipelines, got {len(pipelines)}. "
            'Pass for example {"one drive": pipeline}.'
        )
    ticks = ascending(workers, "over_workers", "numbers of workers")
    dense = np.arange(ticks[0], ticks[-1] + 1)
    figure = new_figure(7.5, 3.9)
    axes = figure.add_subplot()
    columns, sentences, banded = {}, [], False
    for (name, pipeline), (color, dash, marker) in zip(pipelines.items(), SERIES, strict=False):
        check_asked(pipeline, "over_workers", whatever=pipeline.swept, overlapping=True)
        at, step = pipeline.solve(workers=ticks), pipeline.solve(workers=dense)
        can_run = bool(np.all(step.feasible))
        label = name if can_run else f"{name} (not feasible)"
        columns[label] = np.asarray(at.utilization)
        style: Options = {} if can_run else {"marker": marker, "fillstyle": "none", "markevery": 0.1}
        axes.plot(dense, step.utilization, color=color, linestyle=dash, linewidth=2, label=label, **style)
        if _band(axes, dense, step, color, ranges):
            banded = True
            columns |= zip((f"{label} from", f"{label} to"), np.asarray(at.ranges.utilization), strict=True)
        sentences += [_wall_in_words(name, step, dense)]
        if not can_run:
            sentences += [caveat("with hollow marks", step.infeasible_reason)]
        if (wall := _wall(step)) is not None:
            fill = "full" if can_run else "none"
            axes.plot(
                dense[wall],
                np.asarray(step.utilization)[wall],
                marker,
                color=color,
                markersize=9,
                fillstyle=fill,
            )
    axes.set(xlabel="workers", ylabel=f"{step.labels[ACCELERATOR.name]} busy (share of a step)")
    axes.set(ylim=(0, 1.05), xlim=(0, ticks[-1] * 1.02))
    axes.yaxis.set_major_formatter(as_percent)
    axes.legend(frameon=False, loc="lower right")
    notes = dict.fromkeys(foreign_rate(pipeline) for pipeline in pipelines.values())
    return render_figure(
        figure,
        alt="Line chart of utilization over the number of workers.",
        caption="Utilization over workers; a marker shows where more of them stop helping.",
        found=(*sentences, _BAND * banded, *notes),
        headers=["workers", *columns],
        rows=[[n, *(percent(column[i]) for column in columns.values())] for i, n in enumerate(ticks)],
    )


def _band(axes: Axes, at: np.ndarray, step: Step, color: str, ranges: bool | None) -> bool:
    """Draw what the sources allow around a line, where that is asked for and more than the line."""
    if not (step.ranged if ranges is None else ranges):
        return False
    low, high = step.ranges.utilization
    if np.array_equal(low, high):
        return False
    axes.fill_between(at, low, high, color=color, alpha=0.2, linewidth=0)
    return True


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
