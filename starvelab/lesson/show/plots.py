"""The lab's static figures, in matplotlib: where time goes, and how that changes with batch and workers.

Each function draws what the model found, and returns a `StaticFigure` with the same data as a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from ...errors import InputError
from ...model.analysis import crossover, schedule
from ...model.analysis._point import overlapping
from ...model.analysis._schedule import one_step
from ...model.assumptions import Assumptions
from ...model.catalogue import Entry
from ...model.cost import exceeds
from ...model.pipeline import Pipeline
from ...model.resources import ACCELERATOR, CPU, DISPLAY_ORDER, LABELS, capitalized
from ...model.stages import SingleNodeModel
from ...model.step import Step
from ...tables import percent
from ...units import format_number, format_quantity
from .figure import StaticFigure, render_figure
from .style import COLORS, DASHES, GRAY, HATCHES, INK, SERIES, Options

_MAX_TICKS = 12  # batch sizes that fit below an axis


def stage_bars(step: Step) -> StaticFigure:
    """One bar for each resource, as long as its share of work takes; the longest sets the step.

    Parameters
    ----------
    step : Step
        At one point.

    Raises
    ------
    InputError
    """
    one_step(step, "stage_bars")
    times = {name: time.m_as("ms") for name, time in step.resource_times.items()}
    length, overlap = step.step_time.m_as("ms"), step.pipeline.overlap
    figure = Figure(figsize=(7.5, 0.9 + 0.55 * len(times)), layout="constrained")
    axes = figure.add_subplot()
    for y, (name, ms) in enumerate(times.items()):
        axes.barh(y, ms, color=COLORS[name], hatch=HATCHES[name], edgecolor="white", height=0.62)
        mark = "" if name != step.bottleneck else " (binds)" if overlap else " (the longest)"
        axes.text(ms + 0.01 * length, y, f"{format_number(ms)} ms{mark}", va="center")
    axes.set_yticks(range(len(times)), list(times))
    axes.invert_yaxis()
    axes.set_xlim(0, length * 1.25)
    axes.axvline(length, color=GRAY, linestyle="--", linewidth=1)
    axes.set_xlabel(f"time for one batch of {step.pipeline.batch_size} (ms); dashed: the step")
    _bare(axes)
    headers = ["resource", "time for a batch", "idle share of a step"]
    rows = [[name, step.resource_times[name], percent(step.headroom[name])] for name in times]
    sets = (
        f"{capitalized(step.bottleneck)} sets the step of"
        if overlap
        else "Nothing overlaps, so the times add up to a step of"
    )
    busy = f"the accelerator is busy {percent(step.utilization)} of it."
    message = f"{sets} {format_quantity(step.step_time)}; {busy} {step.infeasible_reason}".strip()
    each = ", ".join(f"{name} {format_number(ms)} ms" for name, ms in times.items())
    return render_figure(
        figure,
        alt=f"Bar chart of the time for one batch: {each}. {message}",
        caption=f"Time each resource needs for one batch. {message}",
        headers=headers,
        rows=rows,
    )


def timeline(step: Step, *, batches: int = 5) -> StaticFigure:
    """The first batches in time, one lane for each resource; where the accelerator waits is hatched.

    Parameters
    ----------
    step : Step
        At one point.
    batches : int

    Raises
    ------
    InputError
    """
    one_step(step, "timeline")
    jobs = schedule(step, batches=batches)
    lanes = [name for name in DISPLAY_ORDER if name in step.resource_times]
    end = max(job.end for job in jobs)
    figure = Figure(figsize=(7.5, 1.0 + 0.6 * len(lanes)), layout="constrained")
    axes = figure.add_subplot()
    done = 0.0
    for job in jobs:
        y, name = lanes.index(job.resource), job.resource
        bar: Options = {"color": COLORS[name], "edgecolor": "white", "height": 0.66, "linewidth": 1.5}
        axes.barh(y, job.end - job.start, left=job.start, **bar)
        if job.end - job.start > 0.02 * end:  # a narrower bar has no room for its number
            middle = (job.start + job.end) / 2
            axes.text(middle, y, str(job.batch + 1), ha="center", va="center", color=INK[name])
        if name == ACCELERATOR.name:
            gap: Options = {
                "color": "none",
                "edgecolor": GRAY,
                "hatch": "////",
                "height": 0.66,
                "linewidth": 0,
            }
            axes.barh(y, job.start - done, left=done, **gap)
            done = job.end
    axes.set_yticks(range(len(lanes)), lanes)
    axes.invert_yaxis()
    axes.set_xlim(0, end)
    axes.set_xlabel("time since the start (ms); hatched: the accelerator waits")
    _bare(axes)
    headers = ["batch", "resource", "start (ms)", "end (ms)"]
    rows = [[job.batch + 1, job.resource, job.start, job.end] for job in jobs]
    length = format_quantity(step.step_time)
    message = (
        f"waits {percent(step.stall)} of each step of {length}"
        if step.utilization < 1
        else f"never waits: a step takes {length}"
    )
    caption = f"The first {batches} batches. In the long run the accelerator {message}."
    alt = f"Timeline with a lane for each of {', '.join(lanes)}. {caption}"
    return render_figure(figure, alt=alt, caption=caption, headers=headers, rows=rows)


def over_batch(pipeline: Pipeline, *, batches: Sequence[int] | None = None) -> StaticFigure:
    """Time of each resource, and utilization, over the batch size, with the crossover marked.

    Parameters
    ----------
    pipeline : Pipeline
        Its batch size does not matter.
    batches : sequence of int, optional
        Powers of two from 1 to 1024 unless given.

    Raises
    ------
    InputError
    """
    found = crossover(pipeline)
    ticks = _ascending([2**i for i in range(11)] if batches is None else batches, "over_batch", "batch sizes")
    at = pipeline.solve(batch_size=ticks)
    dense = np.unique(np.geomspace(ticks[0], ticks[-1], 400).round().astype(int))
    step = pipeline.solve(batch_size=dense)
    figure = Figure(figsize=(9.6, 3.7), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, time in step.resource_times.items():
        left.plot(dense, time.m_as("ms"), color=COLORS[name], linestyle=DASHES[name], label=name, linewidth=2)
    left.set(xscale="log", yscale="log", xlabel="batch size", ylabel="time for one batch (ms)")
    left.yaxis.set_major_formatter(_NUMBERS)
    left.legend(frameon=False)
    right.plot(dense, step.utilization, color=ACCELERATOR.color, linewidth=2)
    right.set(xscale="log", xlabel="batch size", ylabel="accelerator busy (share of a step)", ylim=(0, 1.05))
    right.yaxis.set_major_formatter(_PERCENT)
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
        _bare(axes)
    names = list(at.resource_times)
    headers = ["batch", *(f"{name} time" for name in names), "utilization", "binds"]
    rows = [
        [b, *(at.resource_times[name][i] for name in names), percent(at.utilization[i]), at.bottleneck[i]]
        for i, b in enumerate(ticks)
    ]
    first, last = (percent(at.utilization[i]) for i in (0, -1))
    busy = f"utilization, which is {first} at batch {ticks[0]} and {last} at {ticks[-1]}"
    return render_figure(
        figure,
        alt=f"Two line charts over the batch size: the time of each resource, and {busy}. {found}",
        caption=f"Time of each resource and utilization over the batch size. {found}",
        headers=headers,
        rows=rows,
    )


def over_workers(pipelines: Mapping[str, Pipeline], *, workers: Sequence[int]) -> StaticFigure:
    """Utilization over the number of workers, one line for each named pipeline, with its last wall marked.

    Parameters
    ----------
    pipelines : mapping of str to Pipeline
        What each line is called, and what it solves; up to four.
    workers : sequence of int

    Raises
    ------
    InputError
    """
    if not 1 <= len(pipelines) <= len(SERIES):
        raise InputError(
            f"over_workers draws one to {len(SERIES)} pipelines, got {len(pipelines)}. "
            'Pass for example {"one drive": pipeline}.'
        )
    ticks = _ascending(workers, "over_workers", "numbers of workers")
    dense = np.arange(ticks[0], ticks[-1] + 1)
    figure = Figure(figsize=(7.5, 3.9), layout="constrained")
    axes = figure.add_subplot()
    columns, sentences = {}, []
    for (name, pipeline), (color, dash, marker) in zip(pipelines.items(), SERIES, strict=False):
        overlapping(pipeline, "over_workers")
        columns[name] = pipeline.solve(workers=ticks).utilization
        step = pipeline.solve(workers=dense)
        axes.plot(dense, step.utilization, color=color, linestyle=dash, linewidth=2, label=name)
        wall = _wall(step)
        if wall is None:
            sentences.append(f"{_capital(name)}: the CPU binds up to {dense[-1]} workers.")
            continue
        axes.plot(dense[wall], step.utilization[wall], marker=marker, color=color, markersize=9)
        limit = LABELS[_slowest_other(step, wall)]
        share = percent(step.utilization[wall])
        sentences.append(
            f"{_capital(name)}: from {dense[wall]} workers on, {limit} sets the limit: {share} busy."
        )
    axes.set(xlabel="CPU workers", ylabel="accelerator busy (share of a step)")
    axes.set(ylim=(0, 1.05), xlim=(0, ticks[-1] * 1.02))
    axes.yaxis.set_major_formatter(_PERCENT)
    axes.legend(frameon=False, loc="lower right")
    _bare(axes)
    rows = [[n, *(percent(column[i]) for column in columns.values())] for i, n in enumerate(ticks)]
    found = " ".join(sentences)
    return render_figure(
        figure,
        alt=f"Line chart of utilization over the number of workers. {found}",
        caption=f"Utilization over workers; a marker shows where more of them stop helping. {found}",
        headers=["workers", *columns],
        rows=rows,
    )


def _others(step: Step) -> dict[str, np.ndarray]:
    return {name: time.m_as("ms") for name, time in step.resource_times.items() if name != CPU.name}


def _wall(step: Step) -> int | None:
    """The first position from which the CPU is no slower than something else; None if there is none."""
    keeps_up = ~exceeds(step.resource_times[CPU.name].m_as("ms"), reduce(np.maximum, _others(step).values()))
    return int(np.argmax(keeps_up)) if keeps_up.any() else None


def _slowest_other(step: Step, position: int) -> str:
    others = {name: times[position] for name, times in _others(step).items()}
    # As in the pipeline, the accelerator binds in a tie.
    return max(others, key=lambda name: (others[name], name == ACCELERATOR.name))


def roofline(
    *,
    model: Entry,
    hardware: Entry,
    batches: Sequence[int],
    assumptions: Assumptions,
    precision: str = "fp16",
) -> StaticFigure:
    """The accelerator's roof (memory bandwidth, then peak arithmetic) and where batches of a model lie below.

    Parameters
    ----------
    model, hardware : catalogue entries
    batches : sequence of int
    assumptions : Assumptions
    precision : str

    Raises
    ------
    InputError, MissingValueError
    """
    batches = _ascending(batches, "roofline", "batch sizes")
    found = SingleNodeModel(assumptions).solve(
        model=model, hardware=hardware, batch_size=batches, precision=precision
    )
    # Of a model on an accelerator all of these are known.
    assert found.peak is not None
    assert found.work is not None
    assert found.memory_time is not None
    peak = found.peak.m_as("TFLOP/s")
    bandwidth = hardware.memory_bandwidth.m_as("TB/s")
    flop = found.work.m_as("TFLOP") * np.asarray(batches)
    traffic = found.memory_time.m_as("s") * bandwidth  # TB
    intensity, reached = flop / traffic, flop / found.latency.m_as("s")
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.add_subplot()
    x = np.geomspace(min(1.0, intensity.min() / 2), max(intensity.max() * 3, 1e4), 200)
    roof, share = np.minimum(peak, bandwidth * x), percent(assumptions.efficiency, 0)
    axes.plot(x, roof, color=GRAY, linewidth=2, label=f"roof of the {hardware.name}")
    axes.axhline(peak * assumptions.efficiency, color=GRAY, linestyle=":", label=f"{share} of the peak")
    color, _, marker = SERIES[1]
    axes.plot(
        intensity, reached, color=color, marker=marker, linestyle="none", label=f"{model.name}, whole step"
    )
    beside: Options = {"xytext": (-8, 0), "textcoords": "offset points", "ha": "right", "va": "center"}
    for batch, point in zip(batches, zip(intensity, reached, strict=True), strict=True):
        axes.annotate(f"batch {batch}", point, **beside)
    axes.set(xscale="log", xlabel="arithmetic intensity (FLOP per byte of memory traffic)")
    axes.set(yscale="log", ylabel="arithmetic rate (TFLOP/s)")
    axes.legend(frameon=False, loc="lower right")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(_NUMBERS)
    _bare(axes)
    headers = ["batch", "FLOP per byte", "TFLOP/s reached", "share of peak", "step"]
    rows = [
        [b, float(i), float(r), percent(r / peak), found.latency[k]]
        for k, (b, i, r) in enumerate(zip(batches, intensity, reached, strict=True))
    ]
    first, last = (percent(reached[i] / peak) for i in (0, -1))
    caption = (
        f"Roofline of the {hardware.name} in {precision}. A step reaches {first} of the peak at batch "
        f"{batches[0]} and {last} at {batches[-1]}: the distance to the roof is overhead and efficiency."
    )
    alt = f"Chart on logarithmic axes. {caption}"
    return render_figure(figure, alt=alt, caption=caption, headers=headers, rows=rows)


_NUMBERS = FuncFormatter(lambda value, _: format_number(value))
_PERCENT = PercentFormatter(1, decimals=0, symbol=" %")


def _ascending(given: Sequence[int], asks: str, what: str) -> list[int]:
    """The values of an axis in rising order, each once."""
    values = sorted(set(given))
    if len(values) < 2:
        raise InputError(f"{asks} needs two or more {what}, got {list(given)}. Pass for example [8, 16, 32].")
    return values


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _bare(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
