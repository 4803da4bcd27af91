"""What SVG figures are made of: the frame, bars, lines of text, and hatching."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from ...units import format_number

# Pixels: the whole, where bars begin, how long the longest is, and from one bar to the next.
_WIDTH, LEFT, BAR, ROW = 640, 110, 330, 40
NUMBERS = LEFT + BAR + 12  # where numbers stand: in a column, so that no line crosses them
_STYLE = (
    "max-width:100%;height:auto;color:var(--jp-content-font-color1,currentColor);"
    "font:14px var(--jp-content-font-family,sans-serif)"
)


def hatching(name: str) -> str:
    """The definition of a pattern, to fill with ``url(#name)``."""
    return (
        f'<defs><pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 6L6 0" '
        'stroke="currentColor" stroke-opacity="0.45"/></pattern></defs>'
    )


def bars(
    times: Mapping[str, float],
    colors: Mapping[str, str],
    *,
    whole: float,
    bold: str,
    notes: Mapping[str, str],
    hollow: bool,
) -> tuple[str, int]:
    """Labeled bars with a line where the step ends; also the y below the last of them."""
    scale = BAR / max(whole, *times.values())
    parts = []
    for i, (name, ms) in enumerate(times.items()):
        y, weight = 8 + i * ROW, ' font-weight="bold"' if name == bold else ""
        parts.append(
            f'<text x="{LEFT - 10}" y="{y + 19}" text-anchor="end"{weight}>{name}</text>'
            f'<rect x="{LEFT}" y="{y}" width="{max(1.0, scale * ms) if ms else 0:.1f}" height="28" rx="3" '
            f"{fill(colors[name], hollow=hollow)}/>"
            f'<text x="{NUMBERS}" y="{y + 19}"{weight}>{format_number(ms)} ms {notes[name]}</text>'
        )
    below, x = 8 + len(times) * ROW, f"{LEFT + scale * whole:.1f}"
    line = f'<line x1="{x}" y1="2" x2="{x}" y2="{below - 6}" stroke="currentColor" stroke-dasharray="4 3"/>'
    return "".join((*parts, line)), below


def fill(color: str, *, hollow: bool) -> str:
    """A bar of a step that cannot run has an outline only."""
    return f'fill="none" stroke="{color}" stroke-width="2"' if hollow else f'fill="{color}"'


def lines(y: int, texts: Iterable[str]) -> str:
    """Small text from that height on, line by line."""
    return "".join(
        f'<text x="{LEFT}" y="{y + 18 * i}" font-size="12">{escape(text)}</text>'
        for i, text in enumerate(texts)
    )


def listed(times: Mapping[str, float]) -> str:
    """Times in a sentence."""
    return ", ".join(f"{name} {format_number(ms)} ms" for name, ms in times.items())


def frame(body: str, *, height: int, title: str, description: str) -> str:
    """An SVG element that screen readers announce and themes color."""
    return (
        f'<svg role="img" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" style="{_STYLE}" '
        'fill="currentColor" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>{body}</svg>"
    )
