"""Static figures of a solved step, in matplotlib: where its time goes, when, and below which roof.

Each function draws what the model found, and returns a `StaticFigure` with the same data as a table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...model.analysis import schedule
from ...model.analysis._schedule import one_step
from ...model.assumptions import Assumptions
from ...model.catalogue import Entry
from ...model.resources import ACCELERATOR, DISPLAY_ORDER, capitalized
from ...model.stages import SingleNodeModel
from ...model.step import Step
from ...tables import percent
from ...units import format_number, format_quantity
from .axes import as_number, ascending, bare
from .canvas import new_figure
from .feasibility import caveat, ground, with_feasible
from .figure import StaticFigure, render_figure
from .style import COLORS, GRAY, HATCHES, INK, SERIES, Options


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
    figure = new_figure(7.5, 0.9 + 0.55 * len(times))
    axes = figure.add_subplot()
    for y, (name, ms) in enumerate(times.items()):
        axes.barh(y, ms, hatch=HATCHES[name], height=0.62, **ground(COLORS[name], step.feasible))
        mark = "" if name != step.bottleneck else " (binds)" if overlap else " (the longest)"
        axes.text(ms + 0.01 * length, y, f"{format_number(ms)} ms{mark}", va="center")
    axes.set_yticks(range(len(times)), list(times))
    axes.invert_yaxis()
    axes.set_xlim(0, length * 1.25)
    axes.axvline(length, color=GRAY, linestyle="--", linewidth=1)
    axes.set_xlabel(f"time for one batch of {step.pipeline.batch_size} (ms); dashed: the step")
    bare(axes)
    headers, rows = with_feasible(
        ["resource", "time for a batch", "idle share of a step"],
        ((name, step.resource_times[name], percent(step.headroom[name])) for name in times),
        step.feasible,
    )
    sets = (
        f"{capitalized(step.bottleneck)} sets the step of"
        if overlap
        else "Nothing overlaps, so the times add up to a step of"
    )
    busy = f"the accelerator is busy {percent(step.utilization)} of it."
    hollow = caveat("hollow", step.infeasible_reason)
    length_said = f"{sets} {format_quantity(step.step_time)}; {busy}"
    message = " ".join(filter(None, (length_said, step.spoken_busy, hollow)))
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
    figure = new_figure(7.5, 1.0 + 0.6 * len(lanes))
    axes = figure.add_subplot()
    done = 0.0
    for job in jobs:
        y, name = lanes.index(job.resource), job.resource
        bar = ground(COLORS[name], step.feasible)
        axes.barh(y, job.end - job.start, left=job.start, height=0.66, linewidth=1.5, **bar)
        if job.end - job.start > 0.02 * end:  # a narrower bar has no room for its number
            middle, ink = (job.start + job.end) / 2, INK[name] if step.feasible else "black"
            axes.text(middle, y, str(job.batch + 1), ha="center", va="center", color=ink)
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
    bare(axes)
    headers = ["batch", "resource", "start (ms)", "end (ms)"]
    rows = [[job.batch + 1, job.resource, job.start, job.end] for job in jobs]
    length = format_quantity(step.step_time)
    message = (
        f"waits {percent(step.stall)} of each step of {length}"
        if step.utilization < 1
        else f"never waits: a step takes {length}"
    )
    hollow = caveat("hollow", step.infeasible_reason)
    caption = f"The first {batches} batches. In the long run the accelerator {message}. {hollow}".strip()
    headers, rows = with_feasible(headers, rows, step.feasible)
    alt = f"Timeline with a lane for each of {', '.join(lanes)}. {caption}"
    return render_figure(figure, alt=alt, caption=caption, headers=headers, rows=rows)


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
    batches = ascending(batches, "roofline", "batch sizes")
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
    figure = new_figure(7.5, 4.2)
    axes = figure.add_subplot()
    x = np.geomspace(min(1.0, intensity.min() / 2), max(intensity.max() * 3, 1e4), 200)
    roof, share = np.minimum(peak, bandwidth * x), percent(assumptions.efficiency, 0)
    axes.plot(x, roof, color=GRAY, linewidth=2, label=f"roof of the {hardware.name}")
    axes.axhline(peak * assumptions.efficiency, color=GRAY, linestyle=":", label=f"{share} of the peak")
    color, _, marker = SERIES[1]
    fits = np.broadcast_to(found.feasible, len(batches))
    for some, style in ((fits, "full"), (~fits, "none")):
        label = f"{model.name}, whole step" if style == "full" else "not feasible"
        if some.any():
            axes.plot(intensity[some], reached[some], marker, color=color, fillstyle=style, label=label)
    beside: Options = {"xytext": (-8, 0), "textcoords": "offset points", "ha": "right", "va": "center"}
    for batch, point in zip(batches, zip(intensity, reached, strict=True), strict=True):
        axes.annotate(f"batch {batch}", point, **beside)
    axes.set(xscale="log", xlabel="arithmetic intensity (FLOP per byte of memory traffic)")
    axes.set(yscale="log", ylabel="arithmetic rate (TFLOP/s)")
    axes.legend(frameon=False, loc="lower right")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(as_number)
    bare(axes)
    headers = ["batch", "FLOP per byte", "TFLOP/s reached", "share of peak", "step"]
    rows = [
        [b, float(i), float(r), percent(r / peak), found.latency[k]]
        for k, (b, i, r) in enumerate(zip(batches, intensity, reached, strict=True))
    ]
    first, last = (percent(reached[i] / peak) for i in (0, -1))
    caption = (
        f"Roofline of the {hardware.name} in {precision}. A step reaches {first} of the peak at batch "
        f"{batches[0]} and {last} at {batches[-1]}: the distance to the roof is overhead and efficiency. "
        f"{caveat('hollow', found.infeasible_reason)}"
    ).strip()
    headers, rows = with_feasible(headers, rows, fits)
    alt = f"Chart on logarithmic axes. {caption}"
    return render_figure(figure, alt=alt, caption=caption, headers=headers, rows=rows)
