"""What came of predictions: hits, answers in words, and whether somebody was too sure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..prediction_file import Prediction
from ..tables import count_of
from .calibration import RatedAnswers, rated
from .wording import number, percent, title, truth, value

HEADERS = ["prediction", "yours", "how sure", "the answer", "result"]
# A gap this small says nothing: with ten predictions prediction hit more or less moves the rate by as much.
CALIBRATED_WITHIN = 0.10
# What comes of chance less often than this is not put down to it.
CHANCE = 0.05
# With fewer predictions nothing is said of calibration.
MIN_PREDICTIONS = 5


@dataclass(frozen=True, repr=False)
class Outcomes:
    """Predictions beside the truth, in the order in which they were locked."""

    predictions: tuple[Prediction, ...]

    @property
    def revealed(self) -> tuple[Prediction, ...]:
        """The predictions whose truth has been shown."""
        return tuple(prediction for prediction in self.predictions if prediction.revealed)

    @property
    def hits(self) -> int:
        """Count those that came true."""
        return sum(bool(prediction.hit) for prediction in self.revealed)

    @property
    def group(self) -> RatedAnswers | None:
        """The revealed predictions that have a confidence, all together; None without any."""
        return RatedAnswers.of("all", self.rated) if self.rated else None

    @property
    def rated(self) -> list[tuple[float, bool]]:
        """Confidence and hit of each revealed prediction that has a confidence."""
        return [pair for prediction in self.predictions if (pair := rated(prediction))]

    def sentences(self) -> list[str]:
        """Say in sentences what stands beneath the table."""
        locked = count_of(len(self.predictions), "prediction")
        summary = f"{self.hits} of {count_of(len(self.revealed), 'revealed prediction')} came true."
        if not self.revealed:
            summary = f"{locked} locked, none revealed yet. Run the cells that show the answers."
        if not self.predictions:
            summary = (
                "Nothing is locked yet. Lock a prediction in a notebook of this folder: it appears here."
            )
        sentences = [summary]
        if len(self.revealed) < MIN_PREDICTIONS:
            return sentences
        if self.group and self.group.number >= MIN_PREDICTIONS:
            sentences.append(self._calibration(self.group))
        return sentences

    def _calibration(self, group: RatedAnswers) -> str:
        where = "You were" if group.number == len(self.revealed) else "Where you gave a confidence, you were"
        summary = (
            f"{where} {percent(group.sure)} sure on average and right {percent(group.right)} of the time"
        )
        if abs(group.sure - group.right) <= CALIBRATED_WITHIN + 1e-9:
            return f"{summary}: well matched."
        if self._by_chance(group.right > group.sure) >= CHANCE:
            return f"{summary}: they differ, and with so few predictions chance can explain it."
        return f"{summary}: {'underconfident' if group.right > group.sure else 'overconfident'}."

    def _by_chance(self, above: bool) -> float:
        """Return how often chance gives so many hits, or more extreme, to whoever is as right as they say."""
        of_hits = np.ones(1)
        for confidence, _ in self.rated:
            of_hits = np.convolve(of_hits, [1 - confidence, confidence])
        hits = sum(hit for _, hit in self.rated)
        return float(of_hits[hits:].sum() if above else of_hits[: hits + 1].sum())

    def rows(self) -> list[list[str]]:
        """Return the table's rows: prediction, yours, how sure, the answer, the result."""
        return [
            [
                title(prediction.question or prediction.key),
                value(prediction.answer, prediction.unit),
                "" if prediction.confidence is None else percent(prediction.confidence),
                truth(prediction),
                _result(prediction),
            ]
            for prediction in self.predictions
        ]


def _result(prediction: Prediction) -> str:
    if not prediction.revealed:
        return "not revealed"
    if prediction.measured is not None:
        return f"hit: {number(prediction.measured, prediction.unit)} were measured"
    return "hit" if prediction.hit else "miss"
