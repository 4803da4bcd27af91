"""Static figures in matplotlib: where a step's time goes, and below which roof, bars with notes, and boxes.

Each function draws what the model found, and returns a `StaticFigure` with the same data as a table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import InputError
from ...model.analysis._point import one_step
from ...model.assumptions import Assumptions
from ...model.catalogue import Entry
from ...model.resources import CPU, RESOURCES, STORAGE, capitalized
from ...model.stages import SingleNodeModel
from ...model.step import Step
from ...tables import percent
from ...units import format_number, format_quantity
from .figure import (
    GRAY,
    SERIES,
    Options,
    StaticFigure,
    as_number,
    ascending,
    caveat,
    ground,
    name_lanes,
    new_figure,
    render_figure,
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
    length, overlap = step.step_time.m_as("ms"), step.overlap
    figure = new_figure(7.5, 0.9 + 0.55 * len(times))
    axes = figure.add_subplot()
    for y, (name, ms) in enumerate(times.items()):
        look = RESOURCES[name]
        axes.barh(y, ms, hatch=look.hatch, height=0.62, **ground(look.color, step.feasible))
        mark = "" if name != step.bottleneck else " (binds)" if overlap else " (the longest)"
        axes.text(ms + 0.01 * length, y, f"{format_number(ms)} ms{mark}", va="center")
    name_lanes(axes, list(times))
    axes.set(
        xlim=(0, length * 1.25), xlabel=f"time for one batch of {step.batch_size} (ms); dashed: the step"
    )
    axes.axvline(length, color=GRAY, linestyle="--", linewidth=1)
    sets = f"{capitalized(step.bottleneck)} sets the step of"
    if not overlap:
        sets = "Nothing overlaps, so the times add up to a step of"
    busy = f"{format_quantity(step.step_time)}; the accelerator is busy {percent(step.utilization)} of it."
    each = ", ".join(f"{name} {format_number(ms)} ms" for name, ms in times.items())
    return render_figure(
        figure,
        alt=f"Bar chart of the time for one batch: {each}.",
        caption="Time each resource needs for one batch.",
        found=(f"{sets} {busy}", step.spoken_busy, caveat("hollow", step.infeasible_reason)),
        headers=["resource", "time for a batch", "idle share of a step"],
        rows=[(name, time, percent(step.headroom[name])) for name, time in step.resource_times.items()],
        feasible=step.feasible,
    )


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
    """
    batches = ascending(batches, "roofline", "batch sizes")
    found = SingleNodeModel(assumptions).solve(
        model=model, hardware=hardware, batch_size=batches, precision=precision
    )
    # Of a model on an accelerator all of these are known.
    assert found.peak is not None
    assert found.work is not None
    assert found.memory_time is not None
    peak, bandwidth = found.peak.m_as("TFLOP/s"), hardware.needed("memory_bandwidth") / 1e12
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
    for some, style, label in ((fits, "full", f"{model.name}, whole step"), (~fits, "none", "not feasible")):
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
    first, last = (percent(reached[i] / peak) for i in (0, -1))
    said = (
        f"Roofline of the {hardware.name} in {precision}. A step reaches {first} of the peak at batch "
        f"{batches[0]} and {last} at {batches[-1]}: the distance to the roof is overhead and efficiency."
    )
    return render_figure(
        figure,
        alt="Chart on logarithmic axes.",
        found=(said, caveat("hollow", found.infeasible_reason)),
        headers=["batch", "FLOP per byte", "TFLOP/s reached", "share of peak", "step"],
        rows=[
            (batch, float(intensity[i]), float(reached[i]), percent(reached[i] / peak), found.latency[i])
            for i, batch in enumerate(batches)
        ],
        feasible=fits,
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
    figure = new_figure(9, 0.8 + 0.4 * len(labels))
    axes = figure.add_subplot()
    for y, (value, note) in enumerate(zip(values, notes, strict=True)):
        resource, hatch = (CPU, None) if value >= 0 else (STORAGE, "//")
        axes.barh(y, value, color=resource.color, hatch=hatch, edgecolor="white")
        axes.annotate(note, (max(value, 0), y), xytext=(6, 0), textcoords="offset points", va="center")
    name_lanes(axes, labels)
    # A third of the longest bar leaves room for the notes.
    axes.set(xlabel=axis, xlim=(1.1 * min(*values, 0), 1.35 * max(*values, 0) or 1))
    each = "; ".join(f"{label} {note}" for label, note in zip(labels, notes, strict=True))
    return render_figure(
        figure,
        alt=f"Bar chart of {axis}: {each}.",
        found=(caption,),
        headers=["", axis, "note"],
        rows=zip(labels, values, notes, strict=True),
    )
