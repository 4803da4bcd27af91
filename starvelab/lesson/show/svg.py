"""Figures for explorers: SVG strings made in Python, cheap enough to redraw while a slider moves.

Text and lines take the page's color, so that they read in the light and the dark theme.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from math import ceil
from types import MappingProxyType

import numpy as np

from ...errors import InputError
from ...model.analysis._point import one_step
from ...model.resources import ACCELERATOR, CPU, LABELS, LINK, STORAGE
from ...model.stages import STAGES, SingleNodeModel
from ...model.stages.single_node import SingleNodeResult
from ...model.step import Step
from ...pipeline import Pipeline
from ...simulate import Trace
from ...tables import percent
from ...units import format_number, format_quantity
from .style import COLORS, PART_COLORS, caveat

# Pixels: the whole, where bars begin, how long the longest is, and from one bar to the next.
_WIDTH, LEFT, BAR, ROW, _TOP = 640, 110, 330, 40, 8
_LANES, _LANE = 500, 18  # how long the lanes of a loader are, and from one to the next
_HEIGHT = 200  # of the plane of lines
_DASHES = {"storage": "10 4 2 4", "CPU": "8 4", "link": "2 4", "decoder": "5 1", "accelerator": "none"}
_STYLE = (
    "max-width:100%;height:auto;color:var(--jp-content-font-color1,currentColor);"
    "font:14px var(--jp-content-font-family,sans-serif)"
)


# --- what figures are made of -----------------------------------------------------------------------------


def frame(body: str, *, height: int, title: str, description: str) -> str:
    """An SVG element that screen readers announce and themes color."""
    return (
        f'<svg role="img" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" style="{_STYLE}" '
        'fill="currentColor" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>{body}</svg>"
    )


@dataclass(frozen=True)
class Bar:
    """A bar with its name and a note, as long as its share of the longest."""

    name: str
    share: float
    color: str
    note: str
    outline: float = 0.0  # the share that a line around it encloses
    hollow: bool = False  # of what cannot run
    bold: bool = False


def bar_rows(rows: Iterable[Bar], *, left: int = LEFT, length: int = BAR, row: int = ROW) -> tuple[str, int]:
    """Bars below each other, and the y below the last of them."""
    parts, y, height = [], _TOP, round(0.7 * row)
    for bar in rows:
        weight = ' font-weight="bold"' if bar.bold else ""
        wide = max(1.0, length * bar.share) if bar.share else 0
        place = f'<rect x="{left}" y="{y}" height="{height}" rx="3"'
        line = f'y="{y + height // 2 + 5}"{weight}'
        parts.append(
            f'<text x="{left - 10}" text-anchor="end" {line}>{escape(bar.name)}</text>'
            f'{place} width="{wide:.1f}" {_fill(bar.color, hollow=bar.hollow)}/>'
            f'<text x="{left + length + 12}" {line}>{escape(bar.note)}</text>'
        )
        if bar.outline:
            parts.append(f'{place} width="{length * bar.outline:.1f}" fill="none" stroke="currentColor"/>')
        y += row
    return "".join(parts), y


def _fill(color: str, *, hollow: bool) -> str:
    return f'fill="none" stroke="{color}" stroke-width="2"' if hollow else f'fill="{color}"'


def _hatching(name: str) -> str:
    """The definition of a pattern, to fill with ``url(#name)``."""
    return (
        f'<defs><pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 6L6 0" '
        'stroke="currentColor" stroke-opacity="0.45"/></pattern></defs>'
    )


def _lines(y: int, texts: Iterable[str]) -> str:
    """Small text from that height on, line by line."""
    return "".join(
        f'<text x="{LEFT}" y="{y + 18 * i}" font-size="12">{escape(text)}</text>'
        for i, text in enumerate(texts)
    )


def _ticks(end: float, y: int, unit: str = "") -> str:
    """Five numbers below a horizontal axis, from 0 to its end."""
    return "".join(
        f'<text x="{LEFT + _LANES * i / 4:.0f}" y="{y}" text-anchor="middle" font-size="11">'
        f"{format_number(end * i / 4)}{unit if i == 4 else ''}</text>"
        for i in range(5)
    )


def _listed(times: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {format_number(ms)} ms" for name, ms in times.items())


def _reasons(drawn: str, reason: str) -> list[str]:
    """Say below a figure of a step that cannot run, a sentence on each line."""
    return re.findall(r"\S.*?\.(?= |$)", caveat(drawn, reason))


def _times(
    times: Mapping[str, float],
    colors: Mapping[str, str],
    *,
    whole: float,
    bold: str,
    notes: Mapping[str, str],
    feasible: bool,
) -> tuple[str, int]:
    """A bar for each time, with a line where the step ends; also the y below the last of them."""
    longest = max(whole, *times.values())
    drawn, y = bar_rows(
        Bar(name, ms / longest, colors[name], f"{format_number(ms)} ms {notes[name]}",
            hollow=not feasible, bold=name == bold)
        for name, ms in times.items()
    )  # fmt: skip
    x = f"{LEFT + BAR * whole / longest:.1f}"
    line = f'<line x1="{x}" y1="2" x2="{x}" y2="{y - 6}" stroke="currentColor" stroke-dasharray="4 3"/>'
    return drawn + line, y


# --- figures ----------------------------------------------------------------------------------------------


def share_bars(
    shares: Mapping[str, float], *, title: str, labels: Mapping[str, str] = MappingProxyType({})
) -> str:
    """One bar for each named share, within an outline that stands for the whole.

    More than the whole fills the outline, in another color. A name in which "accelerator" or "GPU" stands has
    the accelerator's color. Beside a bar stands what `labels` has of its name, or the share in percent.
    """
    notes = {name: labels.get(name, percent(share)) for name, share in shares.items()}

    def color(name: str) -> str:
        if shares[name] > 1:
            return STORAGE.color
        return (ACCELERATOR if "accelerator" in name or "GPU" in name else CPU).color

    rows = (Bar(name, min(share, 1), color(name), notes[name], 1) for name, share in shares.items())
    drawn, height = bar_rows(rows, left=170, length=380)
    each = ", ".join(f"{name} {note}" for name, note in notes.items())
    return frame(drawn, height=height, title=title, description=f"{each}.")


def cost_bars(costs: Mapping[str, float], adds: Mapping[str, float], *, title: str) -> str:
    """An outline for what each part costs, and a filled bar for what it adds, both by its name [ms].

    The part "compute" is the accelerator's.
    """
    longest = max(costs.values())
    drawn, height = bar_rows(
        (
            Bar(part, adds[part] / longest, (ACCELERATOR if part == "compute" else CPU).color,
                f"costs {cost:.1f}, adds {adds[part]:.1f} ms", cost / longest)
            for part, cost in costs.items()
        ),
        row=34,
    )  # fmt: skip
    each = ", ".join(f"{part} costs {cost:.1f} ms" for part, cost in costs.items())
    return frame(drawn, height=height, title=title, description=f"{each}.")


def step_bars(step: Step) -> str:
    """One bar for each resource on a common scale, the step as a dashed line, and a gauge of utilization."""
    one_step(step, "step_bars")
    overlap, busy, length = step.overlap, percent(step.utilization), format_quantity(step.step_time)
    times = {name: time.m_as("ms") for name, time in step.resource_times.items()}
    whole = step.step_time.m_as("ms")
    notes = {name: f"({percent(ms / whole, 0)})" for name, ms in times.items()}
    if overlap:
        notes[step.bottleneck] = "binds"
    bold = step.bottleneck if overlap else ""
    drawn, y = _times(times, COLORS, whole=whole, bold=bold, notes=notes, feasible=step.feasible)
    other_work = _other_work(step)
    if other_work:
        place, scale = list(times).index(ACCELERATOR.name), BAR / max(whole, *times.values())
        drawn += (
            f"{_hatching('other-work')}"
            f'<rect x="{LEFT}" y="{_TOP + place * ROW}" width="{scale * sum(other_work.values()):.1f}" '
            'height="28" rx="3" fill="url(#other-work)" stroke="currentColor"/>'
            f"{_lines(y + 8, [f'Accelerator: {_listed(other_work)} (hatched); the rest is the model.'])}"
        )
        y += 20
    rule = "" if overlap else ": nothing overlaps, so it is their sum"
    gauge = f'<rect x="{LEFT}" y="{y + 10}" height="20" rx="3"'
    body = (
        f"{drawn}"
        f'<text x="{LEFT - 10}" y="{y + 25}" text-anchor="end">busy</text>'
        f'{gauge} width="{BAR}" fill="none" stroke="currentColor"/>'
        f'{gauge} width="{BAR * step.utilization:.1f}" {_fill(ACCELERATOR.color, hollow=not step.feasible)}/>'
        f'<text x="{LEFT + BAR + 12}" y="{y + 25}">{busy}, {format_quantity(step.throughput)}</text>'
    )
    below = [
        f"A step takes {length} (dashed line){rule}.",
        step.spoken_busy or "Busy: the share of it in which the accelerator works.",
        *([f"{step.spoken_range}."] if step.spoken_range else []),
        *_reasons("hollow", step.infeasible_reason),
    ]
    besides = [f"Of the accelerator's time: {_listed(other_work)}."] if other_work else []
    binds = f"{LABELS[step.bottleneck]} binds" if overlap else "nothing overlaps"
    return frame(
        f"{body}{_lines(y + 54, below)}",
        height=y + 44 + 18 * len(below),
        title=f"{'' if step.feasible else 'Not feasible. '}{binds[0].upper()}{binds[1:]}; "
        f"the accelerator is busy {busy}",
        description=" ".join(
            (f"Time for one batch: {_listed(times)}. A step takes {length}.", *besides, *below[2:])
        ),
    )


def _other_work(step: Step) -> dict[str, float]:
    """Return the times of the accelerator's work besides the model [ms]."""
    names = {stage.NAME for stage in STAGES if stage.RESOURCE is ACCELERATOR} - {SingleNodeModel.NAME}
    return {name: time.m_as("ms") for name, time in step.stage_times.items() if name in names}


def step_parts(result: SingleNodeResult) -> str:
    """The parts of one step of the accelerator: arithmetic beside memory traffic, and overhead on top."""
    is_result = isinstance(result, SingleNodeResult)
    parts = (result.compute_time, result.memory_time, result.overhead_time) if is_result else ()
    unknown = any(part is None for part in parts)
    if not is_result or unknown or np.ndim(result.latency.magnitude):
        came = type(result).__name__
        if is_result:
            came = "a step of which only the rate is known" if unknown else "a sweep"
        raise InputError(f"step_parts draws one result of SingleNodeModel, got {came}. Solve one batch size.")
    names = ("compute", "memory", "overhead")
    times = {name: part.m_as("ms") for name, part in zip(names, parts, strict=True) if part is not None}
    whole, length = result.latency.m_as("ms"), format_quantity(result.latency)
    notes = {name: f"({percent(ms / whole)})" for name, ms in times.items()}
    drawn, y = _times(
        times, PART_COLORS, whole=whole, bold=result.cause, notes=notes, feasible=bool(result.feasible)
    )
    rule = (
        ", as measured; the parts are the formula's"
        if result.basis.startswith("measured")
        else ": max(compute, memory) + overhead"
    )
    below = [
        f"A step takes {length} (dashed line){rule}.",
        f"That makes {format_quantity(result.throughput)}.",
        *_reasons("hollow", result.infeasible_reason),
    ]
    return frame(
        f"{drawn}{_lines(y + 18, below)}",
        height=y + 8 + 18 * len(below),
        title=f"{'' if result.feasible else 'Not feasible. '}The largest part of the step is {result.cause}",
        description=" ".join((f"Parts of one step: {_listed(times)}. The step takes {length}.", *below[2:])),
    )


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

    def upright(at: float, dashes: str = "none") -> str:
        place = f'x1="{x * at:.1f}" y1="0" x2="{x * at:.1f}" y2="{_HEIGHT}"'
        return f'<line {place} stroke="currentColor" stroke-dasharray="{dashes}"/>'

    curves = "".join(
        f'<polyline fill="none" stroke="{COLORS[name]}" stroke-width="2.5" '
        f'stroke-dasharray="{_DASHES[name]}" points="'
        + " ".join(f"{x * size:.1f},{_HEIGHT - y * ms:.1f}" for size, ms in zip(sizes, time, strict=True))
        + '"/>'
        for name, time in times.items()
    )
    if found.batch is not None and found.batch <= batches:
        at = float(found.batch)
        ms = float(np.interp(at, sizes, times[ACCELERATOR.name]))
        curves += f'{upright(at, "4 3")}<circle cx="{x * at:.1f}" cy="{_HEIGHT - y * ms:.1f}" r="5"/>'
    curves += upright(int(own.batch_size))
    cannot = sizes[~np.broadcast_to(step.feasible, sizes.shape)]
    if len(cannot):
        first = x * int(cannot[0])
        curves += (
            f'{_hatching("cannot-run")}<rect x="{first:.1f}" y="0" width="{_LANES - first:.1f}" '
            f'height="{_HEIGHT}" fill="url(#cannot-run)"/>'
        )
    heights = "".join(
        f'<text x="{LEFT - 8}" y="{34 + _HEIGHT * (1 - i / 4):.0f}" text-anchor="end" font-size="11">'
        f"{top * i // 4}{' ms' if i == 4 else ''}</text>"
        for i in range(5)
    )
    names = "".join(
        f'<path d="M{LEFT + 130 * i} 12h30" stroke="{COLORS[name]}" stroke-width="2.5" '
        f'stroke-dasharray="{_DASHES[name]}"/>'
        f'<text x="{LEFT + 36 + 130 * i}" y="16" font-size="12">{name}</text>'
        for i, name in enumerate(times)
    )
    busy = percent(own.utilization)
    where = f"batch {own.batch_size}, where the accelerator is busy {busy} of a step."
    below = [
        "Time for one batch, over the batch size. Dashed: where the lines cross.",
        f"Solid: {where}",
        *_reasons("hatched", step.infeasible_reason),
    ]
    return frame(
        f'{names}<defs><clipPath id="plane"><rect x="0" y="0" width="{_LANES}" height="{_HEIGHT}"/>'
        "</clipPath></defs>"
        f'<g transform="translate({LEFT} 30)" clip-path="url(#plane)">{curves}'
        f'<line x1="0" y1="{_HEIGHT}" x2="{_LANES}" y2="{_HEIGHT}" stroke="currentColor"/></g>'
        f"{_ticks(batches, _HEIGHT + 52)}{heights}{_lines(_HEIGHT + 74, below)}",
        height=_HEIGHT + 64 + 18 * len(below),
        title=str(found),
        description=f"Time for a batch of each of {', '.join(times)}, up to batch {batches}. Marked: {where} "
        f"{' '.join(below[2:])}".strip(),
    )


def loader_lanes(trace: Trace, *, span: float = 600.0) -> str:
    """The first `span` milliseconds of a loader: a lane for each worker, the copies, and the accelerator.

    Where the accelerator's lane is hatched it waits; a box is one batch. The span is always the same, so that
    figures of two settings compare: more boxes are more batches. `show.loader_timeline` has more to say and
    takes longer.
    """
    if not isinstance(trace, Trace):
        raise InputError(
            f"loader_lanes draws a trace, got {type(trace).__name__}. "
            "Pass pipeline.simulate().trace(), or the trace of a measurement."
        )
    numbers = sorted({int(worker) for worker in trace.worker})
    lanes = [*(f"worker {number + 1}" if number >= 0 else "loop" for number in numbers), "copy"]
    lanes.append(ACCELERATOR.name)
    last = len(lanes) - 1

    def box(lane: int, start: float, end: float, color: str) -> str:
        """One batch on its lane, if it can be seen."""
        start, end, scale = max(start, 0.0), min(end, span), _LANES / span
        if end <= start:
            return ""
        return (
            f'<rect x="{LEFT + scale * start:.1f}" y="{_TOP + _LANE * lane}" height="14" '
            f'width="{max(scale * (end - start) - 1.5, 0.8):.1f}" fill="{color}"/>'
        )

    parts = [  # hatched from end to end, and the steps drawn over it: what is left are the gaps
        f"{_hatching('waits')}"
        f'<rect x="{LEFT}" y="{_TOP + _LANE * last}" width="{_LANES}" height="14" fill="url(#waits)"/>'
    ]
    for i, worker in enumerate(trace.worker):
        parts += (
            box(numbers.index(int(worker)), trace.prepare_start[i], trace.prepared[i], CPU.color),
            box(last - 1, trace.copy_start[i], trace.copied[i], LINK.color),
            box(last, trace.step_start[i], trace.step_end[i], ACCELERATOR.color),
        )
    parts += (
        f'<text x="{LEFT - 8}" y="{20 + _LANE * lane}" text-anchor="end" font-size="12">{name}</text>'
        for lane, name in enumerate(lanes)
    )
    end = 14 + _LANE * len(lanes)
    busy = percent(trace.utilization)
    return frame(
        "".join((*parts, _ticks(span, end + 8, " ms"))),
        height=end + 16,
        title=f"{format_number(span)} ms of a loader, {len(numbers)} workers; the accelerator is busy {busy}",
        description="A box is one batch. Where the accelerator's lane is hatched it waits.",
    )
