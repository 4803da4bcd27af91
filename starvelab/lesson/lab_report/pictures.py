"""The pictures of a lab report, as SVG in the page, with words for a screen reader."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from ...prediction_file import Prediction
from ..outcomes import Outcomes, percent
from ..show.svg_parts import frame

LEFT, LENGTH, ROW = 40, 560, 22
# A number that is further off than this factor is drawn at the edge.
MAX_FACTOR = 4.0
HIT, MISS = "#009E73", "#D55E00"
# Confidence is drawn in fifths.
BINS = tuple((step / 5, (step + 1) / 5) for step in range(5))


def numbers_beside_truths(predictions: Sequence[Prediction]) -> str:
    """Each predicted number as a factor of its truth, by its row in the table; empty where there is none."""
    factors = [
        (number, one, float(one.answer) / float(one.truth))
        for number, one in enumerate(predictions, start=1)
        if isinstance(one.answer, int | float) and isinstance(one.truth, int | float) and one.truth
    ]
    if not factors:
        return ""
    marks, words = [], []
    for row, (number, one, factor) in enumerate(factors):
        y = 34 + ROW * row
        shape = _disc if one.hit else _cross
        words.append(f"prediction {number}: {factor:.2g} times the answer, a {'hit' if one.hit else 'miss'}")
        marks.append(
            f'<line x1="{LEFT}" y1="{y}" x2="{LEFT + LENGTH}" y2="{y}" stroke="currentColor" '
            f'stroke-opacity="0.2"/>{shape(_place(factor), y)}'
            f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end" font-size="11">{number}</text>'
        )
    ticks = "".join(
        f'<text x="{_place(factor):.0f}" y="14" text-anchor="{anchor}" font-size="11">{text}</text>'
        f'<line x1="{_place(factor):.0f}" y1="20" x2="{_place(factor):.0f}" y2="{22 + ROW * len(factors)}" '
        f'stroke="currentColor" stroke-opacity="{0.9 if factor == 1 else 0.25}"/>'
        for factor, text, anchor in (
            (0.25, "a quarter or less", "start"),
            (0.5, "half", "middle"),
            (1, "the answer", "middle"),
            (2, "twice", "middle"),
            (4, "four times or more", "end"),
        )
    )
    return frame(
        ticks + "".join(marks),
        height=30 + ROW * len(factors),
        title="Predicted numbers beside the answers",
        description=f"{'; '.join(words)}. A disc is a hit, a cross a miss.",
    )


def calibration(outcomes: Outcomes) -> str:
    """How often predictions of about the same confidence came true; empty where nobody said how sure."""
    rated = [(one.confidence, bool(one.hit)) for one in outcomes.revealed if one.confidence is not None]
    rows = []
    for low, high in BINS:
        hits = [hit for sure, hit in rated if low <= sure < high or (high == 1 and sure == 1)]
        if hits:
            rows.append((f"{percent(low)} to {percent(high)}", len(hits), sum(hits) / len(hits)))
    if not rows:
        return ""
    body = "".join(
        f'<text x="150" y="{22 + 26 * n}" text-anchor="end">{name} sure</text>'
        f'<rect x="160" y="{8 + 26 * n}" width="300" height="18" fill="none" stroke="currentColor"/>'
        f'<rect x="160" y="{8 + 26 * n}" width="{max(1.0, 300 * share):.0f}" height="18" fill="#0072B2"/>'
        f'<text x="470" y="{22 + 26 * n}">{percent(share)} of {number} came true</text>'
        for n, (name, number, share) in enumerate(rows)
    )
    said = "; ".join(f"{name} sure: {percent(share)} of {number} came true" for name, number, share in rows)
    return frame(
        body, height=14 + 26 * len(rows), title="How sure, and how often right", description=f"{said}."
    )


def _place(factor: float) -> float:
    """Where a factor stands, on a logarithmic scale."""
    bounded = min(max(factor, 1 / MAX_FACTOR), MAX_FACTOR)
    return LEFT + LENGTH * (0.5 + log(bounded) / (2 * log(MAX_FACTOR)))


def _disc(x: float, y: float) -> str:
    return f'<circle cx="{x:.1f}" cy="{y}" r="6" fill="{HIT}"/>'


def _cross(x: float, y: float) -> str:
    return f'<path d="M{x - 5:.1f} {y - 5}l10 10m0 -10l-10 10" stroke="{MISS}" stroke-width="3" fill="none"/>'
