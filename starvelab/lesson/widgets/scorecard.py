"""The score card: what was predicted, what came true, and whether the learner was as sure as they were right.

It does not know marks. A prediction counts for having been made; being wrong costs nothing.
"""

from __future__ import annotations

import os
import re
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
LONGEST_QUESTION = 80
# Below this many predictions the comparison is a hint.
ENOUGH = 5


@dataclass(frozen=True)
class ScoreCard:
    """Predictions beside the truth; shows itself as a table in a notebook and as text elsewhere.

    Attributes
    ----------
    records : tuple of Prediction
        Every prediction, in the order it was locked.
    problem : str or None
        In words, what could not be read.
    """

    records: tuple[Prediction, ...]
    problem: str | None = None

    @property
    def revealed(self) -> tuple[Prediction, ...]:
        """The predictions whose truth has been shown."""
        return tuple(record for record in self.records if record.revealed)

    @property
    def hits(self) -> int:
        """How many came true."""
        return sum(bool(record.hit) for record in self.revealed)

    @property
    def mean_confidence(self) -> float | None:
        """Mean confidence of the revealed predictions that have one, 0 to 1; None without any."""
        return _mean(record.confidence for record in self._rated)

    @property
    def hit_rate(self) -> float | None:
        """Share of the same predictions that came true; None without any."""
        return _mean(float(bool(record.hit)) for record in self._rated)

    @property
    def brier(self) -> float | None:
        """Brier score: mean of (confidence - outcome)^2, with outcome 1 for a hit and 0 for a miss."""
        return _mean((record.confidence - bool(record.hit)) ** 2 for record in self._rated)

    @property
    def _rated(self) -> list[Prediction]:
        return [record for record in self.revealed if record.confidence is not None]

    def sentences(self) -> list[str]:
        """What the card says beneath its table."""
        if not self.records:
            said = [
                "Nothing is locked yet. Lock a prediction in a notebook of this folder, and it appears here."
            ]
        elif not self.revealed:
            said = [
                f"{_count(len(self.records), 'prediction')} locked, none revealed yet. "
                "Run the cells that show the answers."
            ]
        else:
            said = [f"{self.hits} of {_count(len(self.revealed), 'revealed prediction')} came true."]
        if self._rated:
            said += [self._calibration(), self._brier_in_words()]
        unrated = len(self.revealed) - len(self._rated)
        if unrated:
            said.append(
                f"{_count(unrated, 'prediction')} without a statement of how sure you were: the slider was "
                "not moved. Calibration leaves such predictions out."
            )
        if self.problem is not None:
            said.append(self.problem)
        return said

    def _calibration(self) -> str:
        sure, right = self.mean_confidence, self.hit_rate
        gap = sure - right
        verdict = "well matched"
        if gap > CALIBRATED_WITHIN + 1e-9:
            verdict = "overconfident"
        elif gap < -CALIBRATED_WITHIN - 1e-9:
            verdict = "underconfident"
        hint = (
            ""
            if len(self._rated) >= ENOUGH
            else f" From {_count(len(self._rated), 'prediction')} this is only a hint."
        )
        where = "You were" if len(self._rated) == len(self.revealed) else "Where you said how sure, you were"
        return (
            f"{where} {words.percent(sure)} sure on average "
            f"and right {words.percent(right)} of the time: {verdict}.{hint}"
        )

    def _brier_in_words(self) -> str:
        return (
            f"Your Brier score is {self.brier:.2f}: the mean squared distance between how sure you were "
            "and what came true. 0 is perfect, 0.25 is what saying 50 % every time earns, lower is better."
        )

    def rows(self) -> list[list[str]]:
        """The table's rows: prediction, yours, how sure, the answer, the result."""
        return [
            [
                shorten(words.one_line(record.question or record.key), LONGEST_QUESTION, placeholder=" ..."),
                words.value(record.answer, record.unit),
                "" if record.confidence is None else words.percent(record.confidence),
                words.truth(record),
                _result(record),
            ]
            for record in self.records
        ]

    def _repr_html_(self) -> str:
        body = words.table(_HEADERS, self.rows()) if self.records else ""
        # JupyterLab sets cells to the right, which is for figures; these are texts.
        body = re.sub(r"<(th|td)\b", r'<\1 style="text-align: left"', body)
        return body + "".join(f"<p>{words.escape(sentence)}</p>" for sentence in self.sentences())

    def __repr__(self) -> str:
        table = [to_text(_HEADERS, self.rows()), ""] if self.records else []
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
        tuple(sorted(contents.predictions.values(), key=lambda record: record.locked_at)), contents.problem
    )


def _result(record: Prediction) -> str:
    if not record.revealed:
        return "not revealed"
    if record.measured is not None:
        return f"hit: {words.number(record.measured, record.unit)} were measured"
    return "hit" if record.hit else "miss"


def _mean(values: Iterable[float]) -> float | None:
    collected = list(values)
    return fmean(collected) if collected else None


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
