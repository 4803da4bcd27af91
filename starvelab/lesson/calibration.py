"""Calibration: how sure predictions were, beside how many of them came true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ..prediction_file import Prediction
from .show.drawing import Bar, bar_rows, frame
from .show.figure import SERIES
from .wording import percent


def rated(prediction: Prediction) -> tuple[float, bool] | None:
    """Confidence and hit of a prediction, if its truth was shown and it says how sure somebody was."""
    # A file can hold any number.
    if (
        prediction.hit is None
        or prediction.confidence is None
        or not (prediction.revealed and 0 <= prediction.confidence <= 1)
    ):
        return None
    return prediction.confidence, prediction.hit


@dataclass(frozen=True)
class RatedAnswers:
    """Predictions that belong together: how many, the mean confidence, and the share that came true."""

    what: str
    number: int
    sure: float
    right: float

    @classmethod
    def of(cls, what: str, pairs: Sequence[tuple[float, bool]]) -> RatedAnswers:
        """Return the group of so many pairs of a confidence and a hit."""
        return cls(what, len(pairs), fmean(sure for sure, _ in pairs), fmean(hit for _, hit in pairs))


def by_confidence(pairs: Sequence[tuple[float, bool]]) -> list[RatedAnswers]:
    """Return one group for each fifth of the scale of confidence in which there is a prediction."""
    fifths: dict[int, list[tuple[float, bool]]] = {}
    for sure, hit in sorted(pairs):
        fifths.setdefault(min(int(5 * sure), 4), []).append((sure, hit))
    return [
        RatedAnswers.of(f"{percent(fifth / 5)} to {percent((fifth + 1) / 5)}", pairs_of_fifth)
        for fifth, pairs_of_fifth in fifths.items()
    ]


def draw_calibration(groups: Sequence[RatedAnswers]) -> str:
    """Draw how often predictions of about the same confidence came true, as SVG; empty without any."""
    if not groups:
        return ""
    rows = [
        Bar(
            f"{group.what} sure",
            group.right,
            SERIES[0][0],
            f"{percent(group.right)} of {group.number} came true",
            1,
        )
        for group in groups
    ]
    body, height = bar_rows(rows, left=160, length=300, row=26)
    details = "; ".join(f"{row.name}: {row.note}" for row in rows)
    return frame(body, height=height, title="How sure, and how often right", description=f"{details}.")
