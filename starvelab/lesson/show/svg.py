"""Figures in SVG, of explorers and of notebooks: bars, lines over the batch, and the lanes of a loader."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil

import numpy as np

from ...errors import InputError
from ...model.resources import ACCELERATOR, CPU, LINK, RESOURCES, STORAGE, capitalized
from ...model.stages import STAGES, SingleNodeModel
from ...model.stages.single_node import SingleNodeResult
from ...model.step import Step, one_step
from ...pipeline import Pipeline
from ...simulate import Trace
from ...tables import percent
from ...units import format_number, format_quantity
from .drawing import (
    BAR,
    HATCHED,
    LEFT,
    TOP,
    WIDTH,
    Bar,
    bar_rows,
    fill,
    frame,
    hatching,
    line,
    rect,
    tag,
    text,
)
from .figure import COLORS, PART_COLORS, caveat

_LANES, _LANE, _SPAN = 500, 18, 600.0  # how long the lanes of a loader are, from one to the next, and ms
_HEIGHT = 200  # of the plane of lines
_DASHES = {"-": "none", "--": "8 4", "-.": "10 4 2 4", ":": "2 4"}  # of lines that matplotlib has by name


def _dashes(resource: str) -> str:
    dash = RESOURCES[resource].dash
    return _DASHES[dash] if isinstance(dash, str) else " ".join(map(str, dash[1]))


def _below(y: int, sentences: Iterable[str]) -> str:
    """Small text from that height on, line by line."""
    return "".join(text(LEFT, y + 18 * i, one, size=12) for i, one in enumerate(sentences))


def _ticks(end: float, y: int, unit: str = "") -> str:
    """Five numbers below a horizontal axis, from 0 to its end."""
    numbers = [format_number(end * i / 4) for i in range(5)]
    return "".join(
        text(LEFT + _LANES * i // 4, y, number + unit * (i == 4), size=11, text_anchor="middle")
        for i, number in enumerate(numbers)
    )


def _listed(times: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {format_number(ms)} ms" for name, ms in times.items())


def _reasons(drawn: str, reason: str) -> list[str]:
    """Say below a figure of a step that cannot run, a sentence on each line."""
    return re.findall(r"\S.*?\.(?= |$)", caveat(drawn, reason))


def _times(
    times: Mapping[str, float], whole: float, bars: Callable[[str, float], Bar], longest: float = 0.0
) -> tuple[str, int]:
    """A bar for each time, with a line where the step ends; also the y below the last of them."""
    longest = longest or max(whole, *times.values())
    drawn, y = bar_rows(bars(name, ms / longest) for name, ms in times.items())
    x = LEFT + BAR * whole / longest
    return drawn + line(x, 2, x, y - 6, stroke_dasharray="4 3"), y


def _of_one_step(
    drawn: str, y: int, below: list[str], spoken: list[str], *, feasible: bool, title: str, about: str
) -> str:
    """A figure of one step: what is drawn, sentences below it, and those that are heard as well."""
    return frame(
        drawn + _below(y, below),
        height=y - 10 + 18 * len(below),
        title=title if feasible else f"Not feasible. {title}",
        description=" ".join((about, *spoken)),
    )


# --- figures ----------------------------------------------------------------------------------------------


def share_bars(shares: Mapping[str, float], *, title: str) -> str:
    """One bar for each named share, within an outline that stands for the whole.

    More than the whole fills the outline, in another color. A name in which "accelerator" or "GPU" stands has
    the accelerator's color.
    """

    def color(name: str) -> str:
        of = ACCELERATOR if "accelerator" in name or "GPU" in name else CPU
        return (STORAGE if shares[name] > 1 else of).color

    notes = {name: percent(share) for name, share in shares.items()}
    rows = (Bar(name, min(share, 1), color(name), notes[name], 1) for name, share in shares.items())
    drawn, height = bar_rows(rows, left=170, length=380)
    each = ", ".join(f"{name} {note}" for name, note in notes.items())
    return frame(drawn, height=height, title=title, description=f"{each}.")


def cost_bars(costs: Mapping[str, float], adds: Mapping[str, float], *, title: str) -> str:
    """An outline for what each part costs, and a filled bar for what it adds, both by its name [ms]."""
    longest = max(costs.values())
    rows = (
        Bar(part, adds[part] / longest, (ACCELERATOR if part == "compute" else CPU).color,
            f"costs {cost:.1f}, adds {adds[part]:.1f} ms", cost / longest)
        for part, cost in costs.items()
    )  # fmt: skip
    drawn, height = bar_rows(rows, row=34)
    each = ", ".join(f"{part} costs {cost:.1f} ms" for part, cost in costs.items())
    return frame(drawn, height=height, title=title, description=f"{each}.")


def noted_bars(
    labels: Sequence[str], values: Sequence[float], notes: Sequence[str], *, title: str, description: str
) -> str:
    """A bar for each value with its label and its note, from a common zero; below it they are hatched."""
    left, right = (10 + round(8 * max(map(len, texts))) for texts in (labels, notes))
    low, high = min(0.0, *values), max(0.0, *values)
    span = high - low or 1.0
    rows = [
        Bar(label, abs(value) / span, (CPU if value >= 0 else STORAGE).color, note,
            start=(min(value, 0.0) - low) / span, hatched=max(-value, 0.0) / span)
        for label, value, note in zip(labels, values, notes, strict=True)
    ]  # fmt: skip
    length = max(120, WIDTH - left - right - 14)
    drawn, y = bar_rows(rows, left=left, length=length, row=34)
    zero = left - length * low / span
    drawn = hatching() + drawn + line(zero, 2, zero, y - 4)
    return frame(drawn, height=y, title=title, description=description)


def step_bars(step: Step, *, longest: float = 0.0) -> str:
    """One bar for each resource on a common scale, the step as a dashed line, and a gauge of utilization.

    What a resource spends on something else than its work is hatched: workers that wait, launches, other work
    of the accelerator. Figures with one `longest` [ms] compare.
    """
    one_step(step, "step_bars")
    whole, length = step.step_time.m_as("ms"), format_quantity(step.step_time)
    chip, busy = step.labels[ACCELERATOR.name], percent(step.utilization)
    times = {name: time.m_as("ms") for name, time in step.resource_times.items()}
    other = _other_work(step)
    notes = {name: f"({percent(ms / whole, 0)})" for name, ms in times.items()}
    rule, bold, title = ": nothing overlaps, so it is their sum", "", "Nothing overlaps"
    if step.overlap:
        rule, bold, title = "", step.bottleneck, capitalized(step.labels.does(step.bottleneck, "bind"))
        notes[step.bottleneck] = "binds"

    def bar(name: str, share: float) -> Bar:
        return Bar(
            step.labels[name], share, COLORS[name], f"{format_number(times[name])} ms {notes[name]}",
            hollow=not step.feasible, bold=name == bold,
            hatched=share * sum(other.get(name, {}).values()) / times[name] if times[name] else 0.0,
        )  # fmt: skip

    drawn, y = _times(times, whole, bar, longest)
    named = {step.labels[name]: ms for name, ms in times.items()}
    hatched = [f"{capitalized(step.labels[name])}, hatched: {_listed(what)}." for name, what in other.items()]
    gauge, counted = _gauge(step, y, other)
    below = [
        f"A step takes {length} (dashed line){rule}.",
        *hatched,
        step.spoken_busy
        or f"Busy: the share of it in which the {chip} works{', its launches among them' * counted}.",
        *([f"{step.spoken_range}."] if step.spoken_range else []),
        *_reasons("hollow", step.infeasible_reason),
    ]
    title = f"{title}; the {chip} is busy {busy}"
    drawn = hatching() * bool(other) + drawn + gauge
    about = f"Time for one batch: {_listed(named)}. A step takes {length}."
    return _of_one_step(drawn, y + 54, below, below[1:], feasible=step.feasible, title=title, about=about)


def _other_work(step: Step) -> dict[str, dict[str, float]]:
    """By resource, what it does beside its own work, and for how long [ms]: waiting and launching, too."""
    other: dict[str, dict[str, float]] = {}
    if waits := step.waits.get(CPU.name):
        other[CPU.name] = {f"waiting for {step.labels.the(STORAGE.name)}": waits.m_as("ms")}
    names = {stage.NAME for stage in STAGES if stage.RESOURCE is ACCELERATOR} - {SingleNodeModel.NAME}
    on_chip = {name: time.m_as("ms") for name, time in step.stage_times.items() if name in names}
    if launches := step.waits.get(ACCELERATOR.name):
        on_chip["launches"] = launches.m_as("ms")
    return {**other, ACCELERATOR.name: on_chip} if on_chip else other


def _gauge(step: Step, y: int, other: Mapping[str, Mapping[str, float]]) -> tuple[str, bool]:
    """Draw how busy the accelerator is, and tell whether its launches, which are hatched, count as busy."""
    whole, taken = (time.m_as("ms") for time in (step.step_time, step.resource_times[ACCELERATOR.name]))
    launches = other.get(ACCELERATOR.name, {}).get("launches", 0.0)
    awaited = sum(step.stage_times[name].m_as("ms") for name in step.awaited)
    counted = launches > 0 and step.utilization * whole + awaited > taken * (1 - 1e-9)
    drawn = text(LEFT - 10, y + 25, "busy", text_anchor="end")
    drawn += rect(LEFT, y + 10, BAR, 20, fill="none", stroke="currentColor")
    color = fill(ACCELERATOR.color, hollow=not step.feasible)
    drawn += rect(LEFT, y + 10, BAR * step.utilization, 20, **color)
    if counted:
        drawn += rect(LEFT, y + 10, BAR * launches / whole, 20, **HATCHED)
    said = f"{percent(step.utilization)}, {format_quantity(step.throughput)}"
    return drawn + text(LEFT + BAR + 12, y + 25, said), counted


def step_parts(result: SingleNodeResult) -> str:
    """The parts of one step of the accelerator: arithmetic beside memory traffic, and overhead on top."""
    if not isinstance(result, SingleNodeResult) or np.ndim(result.latency.magnitude):
        came = "a sweep" if isinstance(result, SingleNodeResult) else type(result).__name__
        raise InputError(f"step_parts draws one result of SingleNodeModel, got {came}. Solve one batch size.")
    parts = result.compute_time, result.memory_time, result.overhead_time
    times = {name: part.m_as("ms") for name, part in zip(PART_COLORS, parts, strict=True)}
    whole, length = result.latency.m_as("ms"), format_quantity(result.latency)
    feasible = bool(result.feasible)

    def bar(name: str, share: float) -> Bar:
        note = f"{format_number(times[name])} ms ({percent(times[name] / whole)})"
        return Bar(name, share, PART_COLORS[name], note, hollow=not feasible, bold=name == result.cause)

    drawn, y = _times(times, whole, bar)
    measured = result.basis.startswith("measured")
    rule = ", as measured; the parts are the formula's" if measured else ": max(compute, memory) + overhead"
    below = [
        f"A step takes {length} (dashed line){rule}.",
        f"That makes {format_quantity(result.throughput)}.",
        *_reasons("hollow", result.infeasible_reason),
    ]
    title = f"The largest part of the step is {result.cause}"
    about = f"Parts of one step: {_listed(times)}. The step takes {length}."
    return _of_one_step(drawn, y + 18, below, below[2:], feasible=feasible, title=title, about=about)


def lines_over_batch(pipeline: Pipeline, *, batches: int = 160) -> str:
    """The time of each resource for up to so many samples, and where the accelerator begins to wait.

    The pipeline's own batch size is marked, too. The axes depend on the accelerator alone, so that figures of
    two numbers of workers compare.
    """
    found = pipeline.crossover()
    sizes = np.arange(1, batches + 1)
    step, own = pipeline.solve(batch_size=sizes), pipeline.solve()
    one_step(own, "lines_over_batch")
    times = {name: time.m_as("ms") for name, time in step.resource_times.items()}
    top = 4 * ceil(2.5 * float(times[ACCELERATOR.name][-1]) / 4)  # ms; the axis has four parts
    x, y = _LANES / batches, _HEIGHT / top
    looks = {n: {"stroke": COLORS[n], "stroke_width": "2.5", "stroke_dasharray": _dashes(n)} for n in times}
    names_left, apart = (LEFT, 130) if len(times) <= 4 else (8, (WIDTH - 8) // len(times))

    def upright(at: float, dashes: str = "none") -> str:
        return line(x * at, 0, x * at, _HEIGHT, stroke_dasharray=dashes)

    curves, names = "", ""
    for i, (name, time) in enumerate(times.items()):
        points = (f"{x * size:.1f},{_HEIGHT - y * ms:.1f}" for size, ms in zip(sizes, time, strict=True))
        curves += tag("polyline", fill="none", points=" ".join(points), **looks[name])
        left = names_left + apart * i
        names += tag("path", d=f"M{left} 12h30", **looks[name]) + text(
            left + 36, 16, own.labels[name], size=12
        )
    if found.batch is not None and found.batch <= batches:
        at = float(found.batch)
        ms = float(np.interp(at, sizes, times[ACCELERATOR.name]))
        curves += upright(at, "4 3") + tag("circle", cx=x * at, cy=_HEIGHT - y * ms, r=5)
    curves += upright(int(own.batch_size))
    cannot = sizes[~np.broadcast_to(step.feasible, sizes.shape)]
    if len(cannot):
        first, fill = x * int(cannot[0]), "url(#cannot-run)"
        curves += hatching("cannot-run") + rect(first, 0, _LANES - first, _HEIGHT, rx=0, fill=fill)
    curves += line(0, _HEIGHT, _LANES, _HEIGHT)
    heights = "".join(
        text(LEFT - 8, 34 + _HEIGHT - _HEIGHT * i // 4, f"{top * i // 4}{' ms' * (i == 4)}", size=11,
             text_anchor="end")
        for i in range(5)
    )  # fmt: skip
    busy = f"{own.labels.the(ACCELERATOR.name)} is busy {percent(own.utilization)} of a step."
    where = f"batch {own.batch_size}, where {busy}"
    below = [
        f"Time for one batch, over the batch size.{' Dashed: where the lines cross.' * ('circle' in curves)}",
        f"Solid: {where}",
        *_reasons("hatched", step.infeasible_reason),
    ]
    clip = tag("clipPath", tag("rect", x=0, y=0, width=_LANES, height=_HEIGHT), id="plane")
    plane = tag("g", curves, transform=f"translate({LEFT} 30)", clip_path="url(#plane)")
    axes = _ticks(batches, _HEIGHT + 52) + heights
    listed = ", ".join(own.labels[name] for name in times)
    about = f"Time for a batch of each of {listed}, up to batch {batches}. Marked: {where}"
    drawn = f"{names}<defs>{clip}</defs>{plane}{axes}"
    return _of_one_step(drawn, _HEIGHT + 74, below, below[2:], feasible=True, title=str(found), about=about)


def loader_lanes(trace: Trace, *, whole: bool = False) -> str:
    """The first 600 milliseconds of a loader: a lane for each worker, the copies, and the accelerator.

    Where the accelerator's lane is hatched it waits; a box is one batch. The span is always the same, so that
    figures of two settings compare: more boxes are more batches. It is doubled until the last step has ended
    where the `whole` trace is to be seen. `show.loader_timeline` has more to say and takes longer.
    """
    if not isinstance(trace, Trace):
        raise InputError(
            f"loader_lanes draws a trace, got {type(trace).__name__}. "
            "Pass pipeline.simulate().trace(), or the trace of a measurement."
        )
    numbers = sorted({int(worker) for worker in trace.worker})
    lanes = [f"worker {number + 1}" if number >= 0 else "loop" for number in numbers]
    lanes += ["copy", ACCELERATOR.label]
    last, span = len(lanes) - 1, _SPAN
    while whole and span < trace.step_end[-1]:
        span *= 2

    def box(lane: int, start: float, end: float, color: str) -> str:
        """One batch on its lane, if it can be seen."""
        start, end, scale = max(start, 0.0), min(end, span), _LANES / span
        if end <= start:
            return ""
        width = max(scale * (end - start) - 1.5, 0.8)
        return rect(LEFT + scale * start, TOP + _LANE * lane, width, 14, rx=0, fill=color)

    # Hatched from end to end, and the steps drawn over it: what is left are the gaps.
    drawn = hatching("waits") + rect(LEFT, TOP + _LANE * last, _LANES, 14, rx=0, fill="url(#waits)")
    for i, worker in enumerate(trace.worker):
        drawn += box(numbers.index(int(worker)), trace.prepare_start[i], trace.prepared[i], CPU.color)
        drawn += box(last - 1, trace.copy_start[i], trace.copied[i], LINK.color)
        drawn += box(last, trace.step_start[i], trace.step_end[i], ACCELERATOR.color)
    for lane, name in enumerate(lanes):
        drawn += text(LEFT - 8, 20 + _LANE * lane, name, size=12, text_anchor="end")
    end = 14 + _LANE * len(lanes)
    workers, busy = f"{len(numbers)} workers", percent(trace.utilization)
    return frame(
        drawn + _ticks(span, end + 8, " ms"),
        height=end + 16,
        title=f"{format_number(span)} ms of a loader, {workers}; the GPU is busy {busy}",
        description="A box is one batch. Where the GPU's lane is hatched it waits.",
    )
