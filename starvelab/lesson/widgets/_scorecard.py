"""The score card: what was predicted, what came true, and whether the learner was as sure as they were right.

A prediction counts for having been made. Being wrong costs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean
from textwrap import shorten

from ...prediction_file import Prediction
from ...tables import to_text
from . import words
from .store import PredictionStore

# A gap this small says nothing: with ten predictions one hit more or less moves the rate by as much.
CALIBRATED_WITHIN = 0.10
# Characters of a question that name it in the table.
MAX_QUESTION_LENGTH = 80
# With fewer predictions the comparison is only a hint.
MIN_PREDICTIONS = 5


@dataclass(frozen=True)
class ScoreCard:
    """Predictions beside the truth; shows itself as a table in a notebook and as text elsewhere.

    Attributes
    ----------
    predictions : tuple of Prediction
        Every prediction, in the order it was locked.
    problem : str or None
        In words, what could not be read.
    """

    predictions: tuple[Prediction, ...]
    problem: str | None = None

    @property
    def revealed(self) -> tuple[Prediction, ...]:
        """The predictions whose truth has been shown."""
        return tuple(one for one in self.predictions if one.revealed)

    @property
    def hits(self) -> int:
        """How many came true."""
        return sum(bool(one.hit) for one in self.revealed)

    @property
    def mean_confidence(self) -> float | None:
        """Mean confidence of the revealed predictions that have one, 0 to 1; None without any."""
        return _mean(confidence for confidence, _ in self._rated)

    @property
    def hit_rate(self) -> float | None:
        """Share of the same predictions that came true; None without any."""
        return _mean(float(hit) for _, hit in self._rated)

    @property
    def brier(self) -> float | None:
        """Brier score: mean of (confidence - outcome)^2, with outcome 1 for a hit and 0 for a miss."""
        return _mean((confidence - hit) ** 2 for confidence, hit in self._rated)

    @property
    def _rated(self) -> list[tuple[float, bool]]:
        """Confidence and hit of each revealed prediction that has a confidence."""
        return [(one.confidence, bool(one.hit)) for one in self.revealed if one.confidence is not None]

    def sentences(self) -> list[str]:
        """What the card says beneath its table."""
        if not self.predictions:
            sentences = [
                "Nothing is locked yet. Lock a prediction in a notebook of this folder, and it appears here."
            ]
        elif not self.revealed:
            sentences = [
                f"{count_of(len(self.predictions), 'prediction')} locked, none revealed yet. "
                "Run the cells that show the answers."
            ]
        else:
            sentences = [f"{self.hits} of {count_of(len(self.revealed), 'revealed prediction')} came true."]
        confidence, hit_rate, brier = self.mean_confidence, self.hit_rate, self.brier
        if confidence is not None and hit_rate is not None and brier is not None:
            sentences += [self._calibration(confidence, hit_rate), _brier_in_words(brier)]
        unrated = len(self.revealed) - len(self._rated)
        if unrated:
            sentences.append(
                f"{count_of(unrated, 'prediction')} without a statement of how sure you were: the slider was "
                "not moved. Calibration leaves such predictions out."
            )
        if self.problem is not None:
            sentences.append(self.problem)
        return sentences

    def _calibration(self, confidence: float, hit_rate: float) -> str:
        gap = confidence - hit_rate
        verdict = "well matched"
        if gap > CALIBRATED_WITHIN + 1e-9:
            verdict = "overconfident"
        elif gap < -CALIBRATED_WITHIN - 1e-9:
            verdict = "underconfident"
        hint = (
            ""
            if len(self._rated) >= MIN_PREDICTIONS
            else f" From {count_of(len(self._rated), 'prediction')} this is only a hint."
        )
        where = "You were" if len(self._rated) == len(self.revealed) else "Where you said how sure, you were"
        return (
            f"{where} {words.percent(confidence)} sure on average "
            f"and right {words.percent(hit_rate)} of the time: {verdict}.{hint}"
        )

    def rows(self) -> list[list[str]]:
        """The table's rows: prediction, yours, how sure, the answer, the result."""
        return [
            [
                shorten(words.one_line(one.question or one.key), MAX_QUESTION_LENGTH, placeholder=" ..."),
                words.value(one.answer, one.unit),
                "" if one.confidence is None else words.percent(one.confidence),
                words.truth(one),
                _result(one),
            ]
            for one in self.predictions
        ]

    def _repr_html_(self) -> str:
        body = words.left_aligned(words.table(_HEADERS, self.rows())) if self.predictions else ""
        return body + "".join(f"<p>{words.escape(sentence)}</p>" for sentence in self.sentences())

    def __repr__(self) -> str:
        table = [to_text(_HEADERS, self.rows()), ""] if self.predictions else []
        return "\n".join([*table, *self.sentences()])


_HEADERS = ["prediction", "yours", "how sure", "the answer", "result"]


def scorecard(folder: str | os.PathLike[str] | None = None) -> ScoreCard:
    """The score card of one folder.

    Parameters
    ----------
    folder : path, optional
        Where ``predictions.json`` stands; the folder the notebook runs in unless given.

    Returns
    -------
    ScoreCard
        Shows itself when it ends a cell.
    """
    contents = PredictionStore(folder).read()
    return ScoreCard(
        tuple(sorted(contents.predictions.values(), key=lambda one: one.locked_at)), contents.problem
    )


def _result(prediction: Prediction) -> str:
    if not prediction.revealed:
        return "not revealed"
    if prediction.measured is not None:
        return f"hit: {words.number(prediction.measured, prediction.unit)} were measured"
    return "hit" if prediction.hit else "miss"


def _brier_in_words(brier: float) -> str:
    return (
        f"Your Brier score is {brier:.2f}: the mean squared distance between how sure you were "
        "and what came true. 0 is perfect, 0.25 is what saying 50 % every time earns, lower is better."
    )


def _mean(values: Iterable[float]) -> float | None:
    collected = list(values)
    return fmean(collected) if collected else None


def count_of(number: int, thing: str) -> str:
    """A number with its noun, in the plural unless it is one."""
    return f"{number} {thing}{'' if number == 1 else 's'}"
