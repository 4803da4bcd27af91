"""Figures for explorers: SVG strings made in Python, cheap enough to redraw while a slider moves.

Text and lines take the page's color, so that they read in the light and the dark theme.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from math import ceil

import numpy as np

from ...errors import InputError
from ...model.analysis import crossover
from ...model.analysis._schedule import one_step
from ...model.pipeline import Pipeline
from ...model.resources import ACCELERATOR, CPU, LABELS, LINK
from ...model.stages import STAGES, SingleNodeModel
from ...model.stages.single_node import SingleNodeResult
from ...model.step import Step
from ...simulate import Trace
from ...tables import percent
from ...units import format_number, format_quantity
from .style import COLORS, PART_COLORS

# Pixels: the whole, where bars begin, how long the longest is, and from one bar to the next.
_WIDTH, _LEFT, _BAR, _ROW = 640, 110, 330, 40
_LANES, _LANE = 500, 18  # how long the lanes of a loader are, and from one to the next
_NUMBERS = _LEFT + _BAR + 12  # where numbers stand: in a column, so that no line crosses them
_HEIGHT = 200  # of the plane of lines
_SVG_DASHES = {"storage": "10 4 2 4", "CPU": "8 4", "link": "2 4", "accelerator": "none"}
_STYLE = (
    "max-width:100%;height:auto;color:var(--jp-content-font-color1,currentColor);"
    "font:14px var(--jp-content-font-family,sans-serif)"
)


def step_bars(step: Step) -> str:
    """One bar for each resource on a common scale, the step as a dashed line, and a gauge of utilization.

    Parameters
    ----------
    step : Step
        At one point.

    Raises
    ------
    InputError
    """
    one_step(step, "step_bars")
    overlap, busy, length = step.pipeline.overlap, percent(step.utilization), format_quantity(step.step_time)
    times = {name: time.m_as("ms") for name, time in step.resource_times.items()}
    whole = step.step_time.m_as("ms")
    notes = {name: f"({percent(ms / whole, 0)})" for name, ms in times.items()}
    if overlap:
        notes[step.bottleneck] = "binds"
    bars, y = _bars(times, COLORS, whole=whole, bold=step.bottleneck if overlap else "", notes=notes)
    other_work = _other_work(step)
    if other_work:
        row, scale = list(times).index(ACCELERATOR.name), _BAR / max(whole, *times.values())
        bars += (
            f"{_hatching('other-work')}"
            f'<rect x="{_LEFT}" y="{8 + row * _ROW}" width="{scale * sum(other_work.values()):.1f}" '
            'height="28" rx="3" fill="url(#other-work)" stroke="currentColor"/>'
            f"{_small(y + 8, f'Accelerator: {_listed(other_work)} (hatched); the rest is the model.')}"
        )
        y += 20
    rule = "" if overlap else ": nothing overlaps, so it is their sum"
    body = (
        f"{bars}"
        f'<text x="{_LEFT - 10}" y="{y + 25}" text-anchor="end">busy</text>'
        f'<rect x="{_LEFT}" y="{y + 10}" width="{_BAR}" height="20" rx="3" fill="none" '
        'stroke="currentColor"/>'
        f'<rect x="{_LEFT}" y="{y + 10}" width="{_BAR * step.utilization:.1f}" height="20" rx="3" '
        f'fill="{ACCELERATOR.color}"/>'
        f'<text x="{_NUMBERS}" y="{y + 25}">{busy}, {format_quantity(step.throughput)}</text>'
        f"{_small(y + 54, f'A step takes {length} (dashed line){rule}.')}"
        f"{_small(y + 72, 'Busy: the share of it in which the accelerator works.')}"
    )
    binds = f"{LABELS[step.bottleneck]} binds" if overlap else "nothing overlaps"
    return frame(
        body,
        height=y + 80,
        title=f"{binds[0].upper()}{binds[1:]}; the accelerator is busy {busy}",
        description=f"Time for one batch: {_listed(times)}. A step takes {length}."
        + (f" Of the accelerator's time: {_listed(other_work)}." if other_work else ""),
    )


def _other_work(step: Step) -> dict[str, float]:
    """What the accelerator does besides the model, in ms."""
    names = {stage.NAME for stage in STAGES if stage.RESOURCE is ACCELERATOR} - {SingleNodeModel.NAME}
    return {name: time.m_as("ms") for name, time in step.stage_times.items() if name in names}


def step_parts(result: SingleNodeResult) -> str:
    """What one step of the accelerator is made of: arithmetic beside memory traffic, and overhead on top.

    Parameters
    ----------
    result : SingleNodeResult
        At one point.

    Raises
    ------
    InputError
    """
    is_result = isinstance(result, SingleNodeResult)
    parts = (result.compute_time, result.memory_time, result.overhead_time) if is_result else ()
    unknown = any(part is None for part in parts)
    if not is_result or unknown or np.ndim(result.latency.magnitude):
        came = type(result).__name__
        if is_result:
            came = "a step of which only the rate is known" if unknown else "a sweep"
        raise InputError(f"step_parts draws one result of SingleNodeModel, got {came}. Solve one batch size.")
    times = {
        name: part.m_as("ms")
        for name, part in zip(("compute", "memory", "overhead"), parts, strict=True)
        if part is not None
    }
    whole, length = result.latency.m_as("ms"), format_quantity(result.latency)
    notes = {name: f"({percent(ms / whole)})" for name, ms in times.items()}
    bars, y = _bars(times, PART_COLORS, whole=whole, bold=result.cause, notes=notes)
    rule = (
        ", as measured; the parts are the formula's"
        if result.basis.startswith("measured")
        else ": max(compute, memory) + overhead"
    )
    return frame(
        f"{bars}{_small(y + 18, f'A step takes {length} (dashed line){rule}.')}"
        f"{_small(y + 36, f'That makes {format_quantity(result.throughput)}.')}",
        height=y + 44,
        title=f"The largest part of the step is {result.cause}",
        description=f"Parts of one step: {_listed(times)}. The step takes {length}.",
    )


def lines_over_batch(pipeline: Pipeline, *, batches: int = 160) -> str:
    """What each resource takes for a batch, over the batch size, and where the accelerator begins to wait.

    The axes depend on the accelerator alone, so that figures of two numbers of workers compare.

    Parameters
    ----------
    pipeline : Pipeline
        Its own batch size is marked, too.
    batches : int
        The largest batch size that is drawn.

    Raises
    ------
    InputError
    """
    found = crossover(pipeline)
    sizes = np.arange(1, batches + 1)
    step, own = pipeline.solve(batch_size=sizes), pipeline.solve()
    one_step(own, "lines_over_batch")
    times = {name: time.m_as("ms") for name, time in step.resource_times.items()}
    top = 4 * ceil(2.5 * float(times[ACCELERATOR.name][-1]) / 4)  # ms; the axis has four parts
    x, y = _LANES / batches, _HEIGHT / top
    lines = "".join(
        f'<polyline fill="none" stroke="{COLORS[name]}" stroke-width="2.5" '
        f'stroke-dasharray="{_SVG_DASHES[name]}" points="'
        + " ".join(f"{x * size:.1f},{_HEIGHT - y * ms:.1f}" for size, ms in zip(sizes, time, strict=True))
        + '"/>'
        for name, time in times.items()
    )
    if found.batch is not None and found.batch <= batches:
        at = float(found.batch)
        ms = float(np.interp(at, sizes, times[ACCELERATOR.name]))
        lines += (
            f'<line x1="{x * at:.1f}" y1="0" x2="{x * at:.1f}" y2="{_HEIGHT}" stroke="currentColor" '
            f'stroke-dasharray="4 3"/><circle cx="{x * at:.1f}" cy="{_HEIGHT - y * ms:.1f}" r="5"/>'
        )
    chosen = x * int(own.pipeline.batch_size)
    lines += f'<line x1="{chosen:.1f}" y1="0" x2="{chosen:.1f}" y2="{_HEIGHT}" stroke="currentColor"/>'
    ticks = "".join(
        f'<text x="{_LEFT + _LANES * i / 4:.0f}" y="{_HEIGHT + 52}" text-anchor="middle" font-size="11">'
        f"{format_number(batches * i / 4)}</text>"
        f'<text x="{_LEFT - 8}" y="{34 + _HEIGHT * (1 - i / 4):.0f}" text-anchor="end" font-size="11">'
        f"{top * i // 4}{' ms' if i == 4 else ''}</text>"
        for i in range(5)
    )
    names = "".join(
        f'<path d="M{_LEFT + 130 * i} 12h30" stroke="{COLORS[name]}" stroke-width="2.5" '
        f'stroke-dasharray="{_SVG_DASHES[name]}"/>'
        f'<text x="{_LEFT + 36 + 130 * i}" y="16" font-size="12">{name}</text>'
        for i, name in enumerate(times)
    )
    busy = percent(own.utilization)
    where = f"batch {own.pipeline.batch_size}, where the accelerator is busy {busy} of a step."
    return frame(
        f'{names}<defs><clipPath id="plane"><rect x="0" y="0" width="{_LANES}" height="{_HEIGHT}"/>'
        "</clipPath></defs>"
        f'<g transform="translate({_LEFT} 30)" clip-path="url(#plane)">{lines}'
        f'<line x1="0" y1="{_HEIGHT}" x2="{_LANES}" y2="{_HEIGHT}" stroke="currentColor"/></g>{ticks}'
        f"{_small(_HEIGHT + 74, 'Time for one batch, over the batch size. Dashed: where the lines cross.')}"
        f"{_small(_HEIGHT + 92, f'Solid: {where}')}",
        height=_HEIGHT + 100,
        title=str(found),
        description=f"Time for a batch of each of {', '.join(times)}, up to batch {batches}. Marked: {where}",
    )


def loader_lanes(trace: Trace, *, span: float = 600.0) -> str:
    """The first `span` milliseconds of a loader: a lane for each worker, the copies, and the accelerator.

    Where the accelerator's lane is hatched it waits; a box is one batch. `show.loader_timeline` has more to
    say and takes longer.

    Parameters
    ----------
    trace : Trace
    span : float
        Always the same, so that figures of two settings compare: more boxes are more batches.

    Raises
    ------
    InputError
    """
    if not isinstance(trace, Trace):
        raise InputError(
            f"loader_lanes draws a trace, got {type(trace).__name__}. "
            "Pass simulate(...).trace() or record.trace."
        )
    numbers = sorted({int(worker) for worker in trace.worker})
    lanes = [
        *(f"worker {number + 1}" if number >= 0 else "loop" for number in numbers),
        "copy",
        ACCELERATOR.name,
    ]
    place = {number: lane for lane, number in enumerate(numbers)}
    prepared = zip((place[int(w)] for w in trace.worker), trace.prepare_start, trace.prepared, strict=True)
    boxes = [_box(*one, CPU.name, span) for one in prepared]
    last = len(lanes) - 1
    boxes += [
        _box(last - 1, *one, LINK.name, span) for one in zip(trace.copy_start, trace.copied, strict=True)
    ]
    boxes += [
        _box(last, *one, ACCELERATOR.name, span) for one in zip(trace.step_start, trace.step_end, strict=True)
    ]
    names = [
        f'<text x="{_LEFT - 8}" y="{20 + _LANE * lane}" text-anchor="end" font-size="12">{name}</text>'
        for lane, name in enumerate(lanes)
    ]
    # Hatched from end to end, and the steps drawn over it: what is left are the gaps.
    gaps = (
        f"{_hatching('waits')}"
        f'<rect x="{_LEFT}" y="{8 + _LANE * last}" width="{_LANES}" height="14" fill="url(#waits)"/>'
    )
    end = 14 + _LANE * len(lanes)
    axis = "".join(
        f'<text x="{_LEFT + _LANES * i / 4:.0f}" y="{end + 8}" text-anchor="middle" font-size="11">'
        f"{format_number(span * i / 4)}{' ms' if i == 4 else ''}</text>"
        for i in range(5)
    )
    busy = percent(trace.utilization)
    return frame(
        "".join((gaps, *boxes, *names, axis)),
        height=end + 16,
        title=f"{format_number(span)} ms of a loader, {len(numbers)} workers; the accelerator is busy {busy}",
        description="A box is one batch. Where the accelerator's lane is hatched it waits.",
    )


def _hatching(name: str) -> str:
    return (
        f'<defs><pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 6L6 0" '
        'stroke="currentColor" stroke-opacity="0.45"/></pattern></defs>'
    )


def _box(lane: int, start: float, end: float, name: str, span: float) -> str:
    """One batch on its lane, if it can be seen."""
    start, end, scale = max(start, 0.0), min(end, span), _LANES / span
    if end <= start:
        return ""
    return (
        f'<rect x="{_LEFT + scale * start:.1f}" y="{8 + _LANE * lane}" height="14" '
        f'width="{max(scale * (end - start) - 1.5, 0.8):.1f}" fill="{COLORS[name]}"/>'
    )


def _bars(
    times: Mapping[str, float],
    colors: Mapping[str, str],
    *,
    whole: float,
    bold: str,
    notes: Mapping[str, str],
) -> tuple[str, int]:
    """Labeled bars with a line where the step ends; also the y below the last of them."""
    scale = _BAR / max(whole, *times.values())
    parts = []
    for i, (name, ms) in enumerate(times.items()):
        y, weight = 8 + i * _ROW, ' font-weight="bold"' if name == bold else ""
        parts.append(
            f'<text x="{_LEFT - 10}" y="{y + 19}" text-anchor="end"{weight}>{name}</text>'
            f'<rect x="{_LEFT}" y="{y}" width="{max(1.0, scale * ms) if ms else 0:.1f}" height="28" rx="3" '
            f'fill="{colors[name]}"/>'
            f'<text x="{_NUMBERS}" y="{y + 19}"{weight}>{format_number(ms)} ms {notes[name]}</text>'
        )
    below, x = 8 + len(times) * _ROW, f"{_LEFT + scale * whole:.1f}"
    line = f'<line x1="{x}" y1="2" x2="{x}" y2="{below - 6}" stroke="currentColor" stroke-dasharray="4 3"/>'
    return "".join((*parts, line)), below


def _small(y: int, text: str) -> str:
    return f'<text x="{_LEFT}" y="{y}" font-size="12">{escape(text)}</text>'


def _listed(times: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {format_number(ms)} ms" for name, ms in times.items())


def frame(body: str, *, height: int, title: str, description: str) -> str:
    """An SVG element that screen readers announce and themes color."""
    return (
        f'<svg role="img" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" style="{_STYLE}" '
        'fill="currentColor" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>{body}</svg>"
    )
