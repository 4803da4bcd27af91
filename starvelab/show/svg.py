"""Pictures for explorers: SVG strings made in Python, cheap enough to redraw while a slider moves.

Text and lines take the page's colour, so that they read in the light and the dark theme.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from ..tables import percent
from ..units import format_number, format_quantity

_COLOURS = {"storage": "#D55E00", "CPU": "#0072B2", "link": "#CC79A7", "accelerator": "#009E73"}
_COLOURS |= {"compute": "#009E73", "memory": "#CC79A7", "overhead": "#D55E00"}
_WIDTH, _LEFT, _BAR, _ROW = 640, 110, 330, 40


def step_bars(step: Any) -> str:
    """One bar for each resource on a common scale, the step as a dashed line, and a gauge of utilisation.

    Parameters
    ----------
    step : Step
        At one point.
    """
    times = {name: t.m_as("ms") for name, t in step.resource_times.items()}
    length = step.step_time.m_as("ms")
    notes = {name: f"({percent(ms / length, 0)})" for name, ms in times.items()} | {step.binding: "binds"}
    bars, y = _bars(times, length=length, bold=step.binding, notes=notes)
    bars += (
        f'<text x="{_LEFT - 10}" y="{y + 25}" text-anchor="end">busy</text>'
        f'<rect x="{_LEFT}" y="{y + 10}" width="{_BAR}" height="20" rx="3" fill="none" stroke="currentColor"/>'
        f'<rect x="{_LEFT}" y="{y + 10}" width="{_BAR * step.utilization:.1f}" height="20" rx="3" fill="{_COLOURS["accelerator"]}"/>'
        f'<text x="{_LEFT + _BAR + 8}" y="{y + 25}">{percent(step.utilization)}, {format_quantity(step.throughput)}</text>'
        f'<text x="{_LEFT}" y="{y + 54}" font-size="12">A step takes {format_quantity(step.step_time)} (dashed line). '
        f"Busy: the share of it in which the accelerator works.</text>"
    )
    said = ", ".join(f"{name} {format_number(ms)} ms" for name, ms in times.items())
    return frame(
        bars,
        height=y + 64,
        title=f"The {step.binding} binds; the accelerator is busy {percent(step.utilization)}",
        description=f"Time for one batch: {said}. A step takes {format_quantity(step.step_time)}.",
    )


def step_parts(result: Any) -> str:
    """What one step of the accelerator is made of: arithmetic and memory traffic overlap, overhead comes on top.

    Parameters
    ----------
    result : SingleNodeResult
        At one point.
    """
    times = {
        "compute": result.compute_time.m_as("ms"),
        "memory": result.memory_time.m_as("ms"),
        "overhead": result.overhead_time.m_as("ms"),
    }
    length = result.latency.m_as("ms")
    notes = {name: f"({percent(ms / length)} of the step)" for name, ms in times.items()}
    bars, y = _bars(times, length=length, bold=result.cause, notes=notes)
    bars += (
        f'<text x="{_LEFT}" y="{y + 18}" font-size="12">A step takes {format_quantity(result.latency)} (dashed line): '
        f"the longer of compute and memory, plus overhead. {format_quantity(result.throughput)}.</text>"
    )
    said = ", ".join(f"{name} {format_number(ms)} ms" for name, ms in times.items())
    return frame(
        bars,
        height=y + 28,
        title=f"The largest part of the step is {result.cause}",
        description=f"Parts of one step: {said}. The step takes {format_quantity(result.latency)}.",
    )


def _bars(times: Mapping[str, float], *, length: float, bold: str, notes: Mapping[str, str]) -> tuple[str, int]:
    """Labelled bars on a scale on which `length` fills the width; also the y below the last of them."""
    parts = []
    for i, (name, ms) in enumerate(times.items()):
        y, width = 8 + i * _ROW, max(1.0, _BAR * ms / length)
        weight = ' font-weight="bold"' if name == bold else ""
        parts.append(
            f'<text x="{_LEFT - 10}" y="{y + 19}" text-anchor="end"{weight}>{name}</text>'
            f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="28" rx="3" fill="{_COLOURS[name]}"/>'
            f'<text x="{_LEFT + width + 8:.1f}" y="{y + 19}"{weight}>{format_number(ms)} ms {notes[name]}</text>'
        )
    below, x = 8 + len(times) * _ROW, _LEFT + _BAR
    line = f'<line x1="{x}" y1="2" x2="{x}" y2="{below - 6}" stroke="currentColor" stroke-dasharray="4 3"/>'
    return "".join((*parts, line)), below


def frame(body: str, *, height: int, title: str, description: str) -> str:
    """An SVG element that screen readers announce and themes colour."""
    return (
        f'<svg role="img" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" style="max-width:100%;height:auto;'
        f'color:var(--jp-content-font-color1,currentColor)" font-family="var(--jp-content-font-family,sans-serif)" '
        f'font-size="14" fill="currentColor" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>{body}</svg>"
    )
