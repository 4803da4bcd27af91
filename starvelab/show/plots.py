"""The lab's static figures, in matplotlib: where time goes, and how that changes with batch and workers.

Each draws what the model found and returns a `Picture` with the same data as a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter, ScalarFormatter

from ..analysis import crossover, schedule, workers_needed
from ..pipeline import FLOW
from ..stages import SingleNodeModel
from ..tables import percent
from ..units import format_number, format_quantity
from .picture import Picture, picture

# Colour-blind-safe, 3:1 on white and on dark; every series also has its own hatch, dash or marker.
COLOURS = {"storage": "#D55E00", "CPU": "#0072B2", "link": "#CC79A7", "accelerator": "#009E73"}
HATCHES = {"storage": "..", "CPU": "//", "link": "xx", "accelerator": ""}
_SERIES = [("#0072B2", "-", "o"), ("#D55E00", "--", "s"), ("#009E73", "-.", "^"), ("#CC79A7", ":", "D")]
_GREY = "#595959"


def stage_bars(step: Any) -> Picture:
    """One bar for each resource, as long as its share of work takes; the longest sets the step.

    Parameters
    ----------
    step : Step
        At one point.
    """
    times = {name: t.m_as("ms") for name, t in step.resource_times.items()}
    length = step.step_time.m_as("ms")
    figure = Figure(figsize=(7.5, 0.9 + 0.55 * len(times)), layout="constrained")
    axes = figure.add_subplot()
    for y, (name, ms) in enumerate(times.items()):
        axes.barh(y, ms, color=COLOURS[name], hatch=HATCHES[name], edgecolor="white", height=0.62)
        mark = " (binds)" if name == step.binding else ""
        axes.text(ms + 0.01 * length, y, f"{format_number(ms)} ms{mark}", va="center", fontsize=10)
    axes.set_yticks(range(len(times)), list(times))
    axes.invert_yaxis()
    axes.set_xlim(0, length * 1.25)
    axes.axvline(length, color=_GREY, linestyle="--", linewidth=1)
    axes.set_xlabel(f"time for one batch of {step.pipeline.batch_size} (ms)")
    _bare(axes)
    headers = ["resource", "time for a batch", "idle share of a step"]
    rows = [[name, step.resource_times[name], percent(step.headroom[name])] for name in times]
    alt = "Bar chart of time per batch: " + ", ".join(f"{name} {format_number(ms)} ms" for name, ms in times.items())
    caption = (
        f"Time each resource needs for one batch. The {step.binding} sets the step of {format_quantity(step.step_time)}; "
        f"the accelerator is busy {percent(step.utilization)} of it."
    )
    return picture(figure, alt=f"{alt}. The {step.binding} binds.", caption=caption, headers=headers, rows=rows)


def timeline(step: Any, *, batches: int = 5) -> Picture:
    """The first batches in time, one lane for each resource; where the accelerator waits is shaded.

    Parameters
    ----------
    step : Step
        At one point.
    batches : int
    """
    jobs = schedule(step, batches=batches)
    lanes = [name for name in FLOW if name in step.resource_times]
    figure = Figure(figsize=(7.5, 1.0 + 0.6 * len(lanes)), layout="constrained")
    axes = figure.add_subplot()
    done = 0.0
    for job in jobs:
        y = lanes.index(job.resource)
        axes.barh(y, job.end - job.start, left=job.start, color=COLOURS[job.resource], edgecolor="white", height=0.66, linewidth=1.5)
        if job.end - job.start > 0.02 * jobs[-1].end:  # a narrower bar has no room for its number
            axes.text((job.start + job.end) / 2, y, str(job.batch + 1), ha="center", va="center", color="white", fontsize=9)
        if job.resource == "accelerator":
            axes.barh(y, job.start - done, left=done, color="none", edgecolor=_GREY, hatch="////", height=0.66, linewidth=0)
            done = job.end
    axes.set_yticks(range(len(lanes)), lanes)
    axes.invert_yaxis()
    axes.set_xlim(0, max(job.end for job in jobs))
    axes.set_xlabel("time since the start (ms); hatched: the accelerator waits")
    _bare(axes)
    headers = ["batch", "resource", "start (ms)", "end (ms)"]
    rows = [[job.batch + 1, job.resource, job.start, job.end] for job in jobs]
    caption = (
        f"The first {batches} batches. In the long run the accelerator waits {percent(step.stall)} of each step "
        f"of {format_quantity(step.step_time)}."
    )
    alt = f"Timeline with a lane for {', '.join(lanes)}. {caption}"
    return picture(figure, alt=alt, caption=caption, headers=headers, rows=rows)


def over_batch(pipeline: Any, *, batches: Sequence[int] | None = None) -> Picture:
    """Time of each resource, and utilisation, over the batch size, with the crossover marked.

    Parameters
    ----------
    pipeline : Pipeline
        Its batch size does not matter.
    batches : sequence of int, optional
        Powers of two from 1 to 1024 unless given.
    """
    ticks = list(batches) if batches is not None else [2**i for i in range(11)]
    dense = np.unique(np.geomspace(ticks[0], ticks[-1], 400).round().astype(int))
    step = pipeline.solve(batch_size=dense)
    figure = Figure(figsize=(9.6, 3.7), layout="constrained")
    left, right = figure.subplots(1, 2)
    for i, (name, t) in enumerate(step.resource_times.items()):
        left.plot(dense, t.m_as("ms"), color=COLOURS[name], linestyle=_SERIES[i][1], label=name, linewidth=2)
    left.set(xscale="log", yscale="log", xlabel="batch size", ylabel="time for one batch (ms)")
    left.legend(frameon=False)
    right.plot(dense, step.utilization, color=COLOURS["accelerator"], linewidth=2)
    right.set(xscale="log", xlabel="batch size", ylabel="accelerator busy (share of a step)", ylim=(0, 1.05))
    right.yaxis.set_major_formatter(PercentFormatter(1))
    found = crossover(pipeline)
    said = str(found)
    if found.batch is not None and ticks[0] <= found.batch <= ticks[-1]:
        for axes in (left, right):
            axes.axvline(float(found.batch), color=_GREY, linestyle="--", linewidth=1)
        right.annotate(f"crossover\nat {float(found.batch):.1f}", (float(found.batch), 0.08), xytext=(6, 0), textcoords="offset points")
    for axes in (left, right):
        axes.set_xticks(ticks, [str(b) for b in ticks], rotation=45 if len(ticks) > 8 else 0)
        axes.minorticks_off()
        _bare(axes)
    left.yaxis.set_major_formatter(ScalarFormatter())
    at = pipeline.solve(batch_size=ticks)
    names = list(at.resource_times)
    headers = ["batch", *(f"{name} time" for name in names), "utilisation", "binds"]
    rows = [
        [b, *(at.resource_times[name][i] for name in names), percent(at.utilization[i]), at.binding[i]] for i, b in enumerate(ticks)
    ]
    caption = f"Time of each resource and utilisation over the batch size. {said}"
    alt = f"Two line charts over the batch size. {said} Utilisation falls from {percent(at.utilization[0])} at batch {ticks[0]} to {percent(at.utilization[-1])} at {ticks[-1]}."
    return picture(figure, alt=alt, caption=caption, headers=headers, rows=rows)


def over_workers(pipelines: Mapping[str, Any], *, workers: Sequence[int]) -> Picture:
    """Utilisation over the number of workers, one line for each named pipeline, with its last wall marked.

    Parameters
    ----------
    pipelines : mapping of str to Pipeline
        What each line is called, and what it solves.
    workers : sequence of int
    """
    ticks = list(workers)
    dense = np.arange(ticks[0], ticks[-1] + 1)
    figure = Figure(figsize=(7.5, 3.9), layout="constrained")
    axes = figure.add_subplot()
    columns, said = {}, []
    for (name, pipeline), (colour, dash, marker) in zip(pipelines.items(), _SERIES, strict=False):
        step = pipeline.solve(workers=dense)
        axes.plot(dense, step.utilization, color=colour, linestyle=dash, linewidth=2, label=name)
        turns = np.flatnonzero(step.binding != "CPU")
        if len(turns):
            first = turns[0]
            axes.plot(dense[first], step.utilization[first], marker=marker, color=colour, markersize=9)
            said.append(f"{name}: from {dense[first]} workers the {step.binding[first]} binds, at {percent(step.utilization[first])}")
        else:
            needed = workers_needed(pipeline)
            rest = f"{needed.workers} would be needed" if needed.workers else "no number is enough"
            said.append(f"{name}: the CPU binds up to {dense[-1]} workers, {rest}")
        columns[name] = pipeline.solve(workers=ticks).utilization
    axes.set(xlabel="CPU workers", ylabel="accelerator busy (share of a step)", ylim=(0, 1.05), xlim=(0, ticks[-1] * 1.02))
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.legend(frameon=False, loc="lower right")
    _bare(axes)
    rows = [[n, *(percent(column[i]) for column in columns.values())] for i, n in enumerate(ticks)]
    caption = f"Utilisation over workers; a marker shows where the next constraint takes over. {'; '.join(said)}."
    alt = f"Line chart of utilisation over the number of workers. {'; '.join(said)}."
    return picture(figure, alt=alt, caption=caption, headers=["workers", *columns], rows=rows)


def roofline(*, model: Any, hardware: Any, batches: Sequence[int], assumptions: Any, precision: str = "fp16") -> Picture:
    """The accelerator's roof (memory bandwidth, then peak arithmetic) and where batches of a model lie below it.

    Parameters
    ----------
    model, hardware : catalogue entries
    batches : sequence of int
    assumptions : Assumptions
    precision : str
    """
    single = SingleNodeModel(assumptions)
    found = single.solve(model=model, hardware=hardware, batch_size=list(batches), precision=precision)
    peak = found.peak.m_as("TFLOP/s")
    bandwidth = hardware.memory_bandwidth.m_as("TB/s")
    flop = found.work.m_as("TFLOP") * np.asarray(batches)
    traffic = found.memory_time.m_as("s") * bandwidth  # TB
    intensity, reached = flop / traffic, flop / found.latency.m_as("s")
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.add_subplot()
    x = np.geomspace(min(1.0, intensity.min() / 2), max(intensity.max() * 3, 1e4), 200)
    axes.plot(x, np.minimum(peak, bandwidth * x), color=_GREY, linewidth=2, label=f"roof of the {hardware.name}")
    axes.axhline(peak * assumptions.efficiency, color=_GREY, linestyle=":", label=f"{percent(assumptions.efficiency, 0)} of the peak")
    axes.plot(intensity, reached, color="#D55E00", marker="o", linestyle="none", markersize=8, label=f"{model.name}, whole step")
    for b, i, r in zip(batches, intensity, reached, strict=True):
        axes.annotate(f"batch {b}", (i, r), xytext=(-8, 0), textcoords="offset points", ha="right", va="center", fontsize=9)
    axes.set(xscale="log", yscale="log", xlabel="arithmetic intensity (FLOP per byte of memory traffic)", ylabel="arithmetic rate (TFLOP/s)")
    axes.legend(frameon=False, loc="lower right")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(ScalarFormatter())
    _bare(axes)
    headers = ["batch", "FLOP per byte", "TFLOP/s reached", "share of peak", "step"]
    rows = [
        [b, float(i), float(r), percent(r / peak), found.latency[k]]
        for k, (b, i, r) in enumerate(zip(batches, intensity, reached, strict=True))
    ]
    caption = (
        f"Roofline of the {hardware.name} in {precision}. A step reaches {percent(reached[0] / peak)} of the peak at batch "
        f"{batches[0]} and {percent(reached[-1] / peak)} at {batches[-1]}: the distance to the roof is fixed overhead and efficiency."
    )
    return picture(figure, alt=f"Roofline chart on logarithmic axes. {caption}", caption=caption, headers=headers, rows=rows)


def _bare(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
