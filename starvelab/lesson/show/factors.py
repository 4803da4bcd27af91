"""Numbers as factors of what is true, on a logarithmic scale, with a row for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log

from .drawing import frame, legend, line, rect, tag, text

_LEFT, _LENGTH, _ROW = 44, 560, 18  # pixels
# A number that is further off than this factor is drawn at the edge.
_MAX_FACTOR = 4.0
_TICKS = (
    (0.25, "a quarter or less", "start"),
    (0.5, "half", "middle"),
    (1, "", "middle"),
    (2, "twice", "middle"),
    (4, "four times or more", "end"),
)
# Marks at the origin.
DISC = tag("circle", cx=0, cy=0, r=6, fill="#009E73")
CROSS = tag("path", d="M-5 -5l10 10m0 -10l-10 10", fill="none", stroke="#D55E00", stroke_width=3)
SQUARE = rect(-4, -4, 8, 8, fill="none", stroke="#D55E00", stroke_width="2", rx=0)
DOT = tag("circle", cx=0, cy=0, r=5, fill="#0072B2")
TRIANGLE = tag("path", d="M0 -5l5 9h-10z", fill="#009E73")


def draw_factors(
    rows: Sequence[tuple[int, Mapping[str, float]]],
    marks: Mapping[str, str],
    *,
    truth: str,
    title: str,
    description: str,
) -> str:
    """Draw rows of factors, each by its number, with a mark for each kind of factor; `truth` names 1."""
    body, bottom = "", 30 + _ROW * len(rows)
    for factor, name, anchor in _TICKS:
        x = _place(factor)
        body += text(round(x), 14, name or truth, size=11, text_anchor=anchor)
        body += line(x, 20, x, bottom, stroke_opacity="0.25" if name else "0.9")
    for row, (number, factors) in enumerate(rows):
        y = 34 + _ROW * row
        body += text(_LEFT - 8, y + 4, str(number), size=11, text_anchor="end")
        body += line(_LEFT, y, _LEFT + _LENGTH, y, stroke_opacity="0.15")
        for kind, factor in factors.items():
            body += tag("g", marks[kind], transform=f"translate({_place(factor):.1f} {y})")
    swatches = {kind: tag("g", mark, transform="translate(20 6)") for kind, mark in marks.items()}
    said, height = legend(swatches, bottom + 8, columns=3)
    return frame(body + said, height=height, title=title, description=description)


def _place(factor: float) -> float:
    """Return the x of a factor."""
    bounded = min(max(factor, 1 / _MAX_FACTOR), _MAX_FACTOR)
    return _LEFT + _LENGTH * (0.5 + log(bounded) / (2 * log(_MAX_FACTOR)))
