"""What a quiet machine measured, for a learner whose own measurement was disturbed and who chooses it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import ipywidgets

from ...prediction_file import Prediction
from ...units import Q_
from . import words
from .judging import comparable, is_hit, result_in_words
from .keyboard import Box, spoken
from .question import WITHIN, Answer
from .store import PredictionStore

# Written by `python -m benchmarks.quiet_runs`.
RECORD = Path(__file__).with_name("quiet_runs.toml")


@dataclass(frozen=True, kw_only=True)
class QuietRun:
    """One recorded measurement that nothing disturbed.

    Attributes
    ----------
    value : float
        In `unit`.
    unit : str
        Empty for a plain number.
    machine : str
        Where it was measured.
    date : date
        When.
    """

    value: float
    unit: str
    machine: str
    date: date

    @property
    def truth(self) -> Answer:
        """The value with its unit."""
        return Q_(self.value, self.unit) if self.unit else self.value

    @property
    def origin(self) -> str:
        """Where and when it was measured, in a sentence."""
        return f"Measured on a quiet machine ({self.machine}) on {self.date:%Y-%m-%d}."


def recorded_run(key: str, record: Path = RECORD) -> QuietRun | None:
    """The quiet run that was recorded for a prediction, or None."""
    found = tomllib.loads(record.read_text(encoding="utf-8")).get(key)
    return None if found is None else QuietRun(**found)


class QuietRunOffer(Box):
    """A button that makes a recorded quiet run the answer to a prediction.

    Attributes
    ----------
    button : Button
        Chooses the recorded run.
    message : HTML
        What came of it.
    """

    def __init__(
        self, prediction: Prediction, quiet: QuietRun, store: PredictionStore, within: float = WITHIN
    ) -> None:
        self._prediction, self._quiet, self._store, self._within = prediction, quiet, store, within
        self.button = ipywidgets.Button(
            description="Use a recorded quiet run instead", layout={"width": "max-content"}
        )
        self.button.on_click(self._clicked)
        self.message = spoken()
        super().__init__("A recorded quiet run", [self.button, self.message])

    def _clicked(self, _button: ipywidgets.Button) -> None:
        # Nothing raised in a callback reaches the page: every error has to be shown in the widget.
        try:
            self._choose()
        except Exception as error:
            self.message.value = words.notice(f"{type(error).__name__}: {error}", "Problem")

    def _choose(self) -> None:
        truth = comparable(self._quiet.truth, self._prediction)
        hit = is_hit(self._prediction, truth, self._within)
        result = self._store.reveal(self._prediction.key, truth=truth, hit=hit)
        text, word = result_in_words(result.prediction, now=truth, within=self._within)
        problem = f" {result.problem}" if result.problem else ""
        self.message.value = words.notice(f"{text} {self._quiet.origin}{problem}", word)
        self.button.disabled = True
