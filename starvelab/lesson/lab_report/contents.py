"""What a lab report says, as plain data from which everything else in it is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ... import tables
from ...prediction_file import Prediction
from ..outcomes import Outcomes, one_line, quoted, truth, value
from .measurements import OwnMeasurement

# What somebody who made the report says of their misses; longer texts are for an essay.
MAX_LESSON = 600


@dataclass(frozen=True)
class Entry:
    """One exercise of a notebook.

    Attributes
    ----------
    notebook, title : str
    points : float or None
        What it earned so far; None for an explanation that nobody has marked.
    most : float
        The most that it can earn.
    is_done : bool
        Whether nothing is left to do that its owner could see.
    """

    notebook: str
    title: str
    points: float | None
    most: float
    is_done: bool

    @property
    def score(self) -> str:
        """Its points in words."""
        if self.points is None:
            return f"written (of {self.most:g})" if self.is_done else f"open (of {self.most:g})"
        return f"{tables.points(self.points)} of {self.most:g}"


@dataclass(frozen=True, kw_only=True)
class LabReport:
    """The contents of a report.

    Attributes
    ----------
    assignment, owner, date, starvelab : str
        Which assignment, whose report, the day on which it was made, and the version that made it.
    predictions : tuple of Prediction
    exercises : tuple of Entry
    measurements : tuple of OwnMeasurement
    learned : mapping of str to str
        By key of a prediction, the first `MAX_LESSON` characters of what its owner learned from the miss.
    """

    assignment: str
    owner: str
    date: str
    starvelab: str
    predictions: tuple[Prediction, ...] = ()
    exercises: tuple[Entry, ...] = ()
    measurements: tuple[OwnMeasurement, ...] = ()
    learned: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kept = {key: text[:MAX_LESSON] for key, text in self.learned.items()}
        object.__setattr__(self, "learned", kept)

    @cached_property
    def outcomes(self) -> Outcomes:
        """Hits and calibration, computed from the predictions."""
        return Outcomes(self.predictions)

    @property
    def misses(self) -> tuple[Prediction, ...]:
        """The predictions that did not come true."""
        return tuple(one for one in self.predictions if one.revealed and not one.hit)

    @property
    def explained(self) -> int:
        """Of how many misses their owner says what they taught."""
        return sum(bool(self.learned.get(miss.key)) for miss in self.misses)

    def sentence_of(self, miss: Prediction) -> str:
        """A miss in words: what was asked, predicted, and true."""
        mine = quoted(value(miss.answer, miss.unit), miss.answer)
        right = "" if miss.truth is None else quoted(truth(miss), miss.truth)
        return f"{one_line(miss.question or miss.key)} Predicted: {mine}. The answer: {right}."

    @property
    def points(self) -> tuple[float, float]:
        """Points so far, and the most, of the exercises that have points."""
        counted = [one for one in self.exercises if one.points is not None]
        return sum(one.points or 0.0 for one in counted), sum(one.most for one in counted)

    @property
    def done(self) -> int:
        """How many exercises are done."""
        return sum(one.is_done for one in self.exercises)
