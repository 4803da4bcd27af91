"""Figures for explorers: SVG strings made in Python, cheap enough to redraw while a slider moves.

Text and lines take the page's color, so that they read in the light and the dark theme.
"""

from __future__ import annotations

import re
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
from ...units import Number, format_number, format_quantity
from .feasibility import caveat
from .style import COLORS, PART_COLORS
from .svg_bars import cost_bars as cost_bars
from .svg_bars import share_bars as share_bars
from .svg_parts import BAR, LEFT, NUMBERS, ROW, bars, fill, frame, hatching, lines, listed

_LANES, _LANE = 500, 18  # how long the lanes of a loader are, and from one to the next
_HEIGHT = 200  # of the plane of lines
_SVG_DASHES = {"storage": "10 4 2 4", "CPU": "8 4", "link": "2 4", "decoder": "5 1", "accelerator": "none"}


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
    drawn, y = bars(
        times,
        COLORS,
        whole=whole,
        bold=step.bottleneck if overlap else "",
        notes=notes,
        hollow=not step.feasible,
    )
    other_work = _other_work(step)
    if other_work:
        row, scale = list(times).index(ACCELERATOR.name), BAR / max(whole, *times.values())
        drawn += (
            f"{hatching('other-work')}"
            f'<rect x="{LEFT}" y="{8 + row * ROW}" width="{scale * sum(other_work.values()):.1f}" '
            'height="28" rx="3" fill="url(#other-work)" stroke="currentColor"/>'
            f"{lines(y + 8, [f'Accelerator: {listed(other_work)} (hatched); the rest is the model.'])}"
        )
        y += 20
    rule = "" if overlap else ": nothing overlaps, so it is their sum"
    body = (
        f"{drawn}"
        f'<text x="{LEFT - 10}" y="{y + 25}" text-anchor="end">busy</text>'
        f'<rect x="{LEFT}" y="{y + 10}" width="{BAR}" height="20" rx="3" fill="none" '
        'stroke="currentColor"/>'
        f'<rect x="{LEFT}" y="{y + 10}" width="{BAR * step.utilization:.1f}" height="20" rx="3" '
        f"{fill(ACCELERATOR.color, hollow=not step.feasible)}/>"
        f'<text x="{NUMBERS}" y="{y + 25}">{busy}, {format_quantity(step.throughput)}</text>'
    )
    below = [
        f"A step takes {length} (dashed line){rule}.",
        step.spoken_busy or "Busy: the share of it in which the accelerator works.",
        *([f"{step.spoken_range}."] if step.spoken_range else []),
        *_why_drawn("hollow", step.infeasible_reason),
    ]
    besides = [f"Of the accelerator's time: {listed(other_work)}."] if other_work else []
    binds = f"{LABELS[step.bottleneck]} binds" if overlap else "nothing overlaps"
    return frame(
        f"{body}{lines(y + 54, below)}",
        height=y + 44 + 18 * len(below),
        title=f"{_cannot_run(step.feasible)}{binds[0].upper()}{binds[1:]}; the accelerator is busy {busy}",
        description=" ".join(
            (f"Time for one batch: {listed(times)}. A step takes {length}.", *besides, *below[2:])
        ),
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
    drawn, y = bars(
        times, PART_COLORS, whole=whole, bold=result.cause, notes=notes, hollow=not result.feasible
    )
    rule = (
        ", as measured; the parts are the formula's"
        if result.basis.startswith("measured")
        else ": max(compute, memory) + overhead"
    )
    below = [
        f"A step takes {length} (dashed line){rule}.",
        f"That makes {format_quantity(result.throughput)}.",
        *_why_drawn("hollow", result.infeasible_reason),
    ]
    return frame(
        f"{drawn}{lines(y + 18, below)}",
        height=y + 8 + 18 * len(below),
        title=f"{_cannot_run(result.feasible)}The largest part of the step is {result.cause}",
        description=" ".join((f"Parts of one step: {listed(times)}. The step takes {length}.", *below[2:])),
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
    curves = "".join(
        f'<polyline fill="none" stroke="{COLORS[name]}" stroke-width="2.5" '
        f'stroke-dasharray="{_SVG_DASHES[name]}" points="'
        + " ".join(f"{x * size:.1f},{_HEIGHT - y * ms:.1f}" for size, ms in zip(sizes, time, strict=True))
        + '"/>'
        for name, time in times.items()
    )
    if found.batch is not None and found.batch <= batches:
        at = float(found.batch)
        ms = float(np.interp(at, sizes, times[ACCELERATOR.name]))
        curves += (
            f'<line x1="{x * at:.1f}" y1="0" x2="{x * at:.1f}" y2="{_HEIGHT}" stroke="currentColor" '
            f'stroke-dasharray="4 3"/><circle cx="{x * at:.1f}" cy="{_HEIGHT - y * ms:.1f}" r="5"/>'
        )
    chosen = x * int(own.pipeline.batch_size)
    curves += f'<line x1="{chosen:.1f}" y1="0" x2="{chosen:.1f}" y2="{_HEIGHT}" stroke="currentColor"/>'
    ticks = "".join(
        f'<text x="{LEFT + _LANES * i / 4:.0f}" y="{_HEIGHT + 52}" text-anchor="middle" font-size="11">'
        f"{format_number(batches * i / 4)}</text>"
        f'<text x="{LEFT - 8}" y="{34 + _HEIGHT * (1 - i / 4):.0f}" text-anchor="end" font-size="11">'
        f"{top * i // 4}{' ms' if i == 4 else ''}</text>"
        for i in range(5)
    )
    names = "".join(
        f'<path d="M{LEFT + 130 * i} 12h30" stroke="{COLORS[name]}" stroke-width="2.5" '
        f'stroke-dasharray="{_SVG_DASHES[name]}"/>'
        f'<text x="{LEFT + 36 + 130 * i}" y="16" font-size="12">{name}</text>'
        for i, name in enumerate(times)
    )
    busy = percent(own.utilization)
    cannot = sizes[~np.broadcast_to(step.feasible, sizes.shape)]
    if len(cannot):
        first = x * int(cannot[0])
        curves += (
            f'{hatching("cannot-run")}<rect x="{first:.1f}" y="0" width="{_LANES - first:.1f}" '
            f'height="{_HEIGHT}" fill="url(#cannot-run)"/>'
        )
    where = f"batch {own.pipeline.batch_size}, where the accelerator is busy {busy} of a step."
    below = [
        "Time for one batch, over the batch size. Dashed: where the lines cross.",
        f"Solid: {where}",
        *_why_drawn("hatched", step.infeasible_reason),
    ]
    return frame(
        f'{names}<defs><clipPath id="plane"><rect x="0" y="0" width="{_LANES}" height="{_HEIGHT}"/>'
        "</clipPath></defs>"
        f'<g transform="translate({LEFT} 30)" clip-path="url(#plane)">{curves}'
        f'<line x1="0" y1="{_HEIGHT}" x2="{_LANES}" y2="{_HEIGHT}" stroke="currentColor"/></g>{ticks}'
        f"{lines(_HEIGHT + 74, below)}",
        height=_HEIGHT + 64 + 18 * len(below),
        title=str(found),
        description=f"Time for a batch of each of {', '.join(times)}, up to batch {batches}. Marked: {where} "
        f"{' '.join(below[2:])}".strip(),
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
        f'<text x="{LEFT - 8}" y="{20 + _LANE * lane}" text-anchor="end" font-size="12">{name}</text>'
        for lane, name in enumerate(lanes)
    ]
    # Hatched from end to end, and the steps drawn over it: what is left are the gaps.
    gaps = (
        f"{hatching('waits')}"
        f'<rect x="{LEFT}" y="{8 + _LANE * last}" width="{_LANES}" height="14" fill="url(#waits)"/>'
    )
    end = 14 + _LANE * len(lanes)
    axis = "".join(
        f'<text x="{LEFT + _LANES * i / 4:.0f}" y="{end + 8}" text-anchor="middle" font-size="11">'
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


def _box(lane: int, start: float, end: float, name: str, span: float) -> str:
    """One batch on its lane, if it can be seen."""
    start, end, scale = max(start, 0.0), min(end, span), _LANES / span
    if end <= start:
        return ""
    return (
        f'<rect x="{LEFT + scale * start:.1f}" y="{8 + _LANE * lane}" height="14" '
        f'width="{max(scale * (end - start) - 1.5, 0.8):.1f}" fill="{COLORS[name]}"/>'
    )


def _cannot_run(feasible: Number) -> str:
    return "" if feasible else "Not feasible. "


def _why_drawn(how: str, reason: str) -> list[str]:
    """What stands below a figure of a step that cannot run, a sentence on each line."""
    return re.findall(r"\S.*?\.(?= |$)", caveat(how, reason))
