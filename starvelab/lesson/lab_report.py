"""The lab report: one HTML file that needs nothing else, and what its owner wrote into an earlier one.

Own measurements that it shows beside the model's numbers are saved beside the notebook.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from math import isfinite, log
from pathlib import Path
from typing import TYPE_CHECKING

from .. import runtime, tables
from ..host import whole_file
from ..prediction_file import Prediction
from ..units import Quantity, unit_name
from .outcomes import HEADERS, Outcomes, by_confidence, grouped, one_line, percent, quoted, truth, value
from .show.svg import Bar, bar_rows, frame

if TYPE_CHECKING:
    from jinja2 import Template

TEMPLATE = Path(__file__).with_name("lab_report.html.j2")
NOTES = re.compile(r'<script type="application/json" id="starvelab-notes">(.*?)</script>', re.DOTALL)
# What somebody who made the report says of their misses; longer texts are for an essay.
MAX_LESSON = 600

_LEFT, _LENGTH, _ROW = 40, 560, 22  # of the picture of numbers, in pixels
# A number that is further off than this factor is drawn at the edge.
_MAX_FACTOR = 4.0
_TICKS = (
    (0.25, "a quarter or less", "start"),
    (0.5, "half", "middle"),
    (1, "the answer", "middle"),
    (2, "twice", "middle"),
    (4, "four times or more", "end"),
)
_HIT, _MISS, _BLUE = "#009E73", "#D55E00", "#0072B2"
FILE_NAME = "measurements.json"
MAX_MEASUREMENTS = 40


@dataclass(frozen=True)
class Entry:
    """One exercise: its points so far (None for an explanation that nobody has marked), and the most."""

    notebook: str
    title: str
    points: float | None
    most: float
    is_done: bool

    @property
    def score(self) -> str:
        """Its points in words."""
        if self.points is None:
            return f"{'written' if self.is_done else 'open'} (of {self.most:g})"
        return f"{tables.points(self.points)} of {self.most:g}"


@dataclass(frozen=True, kw_only=True)
class LabReport:
    """The contents of a report, by whom, made on which day, with which version.

    By key of a prediction, `learned` has the first `MAX_LESSON` characters of what its owner learned from it.
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
        """Count the exercises that are done."""
        return sum(one.is_done for one in self.exercises)


@dataclass(frozen=True)
class Notes:
    """Texts of the owner of a report: their name, and by key of a prediction what a miss taught."""

    owner: str = ""
    learned: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A file can hold anything.
        if not all(isinstance(text, str) for text in (self.owner, *self.learned.values())):
            raise ValueError("a note is a text")


def read_notes(path: Path) -> Notes:
    """Read what the owner of a report wrote into it; nothing where there is none that can be read."""
    try:
        match = NOTES.search(path.read_text(encoding="utf-8"))
        return Notes() if match is None else Notes(**json.loads(match[1]))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return Notes()


@cache
def _template() -> Template:
    # Loaded here: nothing else of the package needs it.
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8"))


def render(report: LabReport) -> str:
    """The page."""
    measurements = [
        [
            one.what,
            f"{grouped(one.measured)} {one.unit}",
            f"{grouped(one.model)} {one.unit}",
            f"{one.error:+.1%}".replace("%", " %"),
        ]
        for one in report.measurements
    ]
    earned, most = report.points
    page = _template().render(
        report=report,
        outcomes=report.outcomes,
        headers=HEADERS,
        numbers=_numbers_beside_truths(report.predictions),
        calibration=_calibration(report.outcomes),
        measurements=measurements,
        earned=f"{tables.points(earned)} of {most:g}",
        share=tables.percent(earned / most) if most else "",
        # In a script nothing ends the page, whatever somebody wrote.
        notes=json.dumps({"owner": report.owner, "learned": report.learned}).replace("<", "\\u003c"),
    )
    # Half a character, which JSON can hold, is shown by its number.
    return page.encode("utf-8", "backslashreplace").decode() + "\n"


# --- pictures, as SVG in the page, with words for a screen reader -----------------------------------------


def _numbers_beside_truths(predictions: Sequence[Prediction]) -> str:
    """Draw each predicted number as a factor of its truth, by its row in the table; empty for none."""
    factors = [
        (number, one, float(one.answer) / float(one.truth))
        for number, one in enumerate(predictions, start=1)
        if isinstance(one.answer, int | float) and isinstance(one.truth, int | float) and one.truth
    ]
    if not factors:
        return ""
    body = "".join(
        f'<text x="{_place(factor):.0f}" y="14" text-anchor="{anchor}" font-size="11">{text}</text>'
        f'<line x1="{_place(factor):.0f}" y1="20" x2="{_place(factor):.0f}" y2="{22 + _ROW * len(factors)}" '
        f'stroke="currentColor" stroke-opacity="{0.9 if factor == 1 else 0.25}"/>'
        for factor, text, anchor in _TICKS
    )
    words = []
    for y, (number, one, factor) in zip(range(34, 34 + _ROW * len(factors), _ROW), factors, strict=True):
        words.append(f"prediction {number}: {factor:.2g} times the answer, a {'hit' if one.hit else 'miss'}")
        x = _place(factor)
        cross = f'd="M{x - 5:.1f} {y - 5}l10 10m0 -10l-10 10" stroke="{_MISS}" stroke-width="3"'
        disc = f'<circle cx="{x:.1f}" cy="{y}" r="6" fill="{_HIT}"/>'
        mark = disc if one.hit else f'<path {cross} fill="none"/>'
        body += (
            f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + _LENGTH}" y2="{y}" stroke="currentColor" '
            f'stroke-opacity="0.2"/>{mark}'
            f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end" font-size="11">{number}</text>'
        )
    return frame(
        body,
        height=30 + _ROW * len(factors),
        title="Predicted numbers beside the answers",
        description=f"{'; '.join(words)}. A disc is a hit, a cross a miss.",
    )


def _place(factor: float) -> float:
    """Return the x of a factor, on a logarithmic scale."""
    bounded = min(max(factor, 1 / _MAX_FACTOR), _MAX_FACTOR)
    return _LEFT + _LENGTH * (0.5 + log(bounded) / (2 * log(_MAX_FACTOR)))


def _calibration(outcomes: Outcomes) -> str:
    """Draw how often predictions of about the same confidence came true; empty where nobody said how sure."""
    rows = [
        Bar(f"{one.what} sure", one.right, _BLUE, f"{percent(one.right)} of {one.number} came true", 1)
        for one in by_confidence(outcomes.rated)
    ]
    if not rows:
        return ""
    body, height = bar_rows(rows, left=160, length=300, row=26)
    words = "; ".join(f"{row.name}: {row.note}" for row in rows)
    return frame(body, height=height, title="How sure, and how often right", description=f"{words}.")


@dataclass(frozen=True)
class OwnMeasurement:
    """A measurement of a pipeline, named in words, beside what the model says of it, both in `unit`."""

    what: str
    measured: float
    model: float
    unit: str

    def __post_init__(self) -> None:
        # A file can hold anything.
        numbers = (self.measured, self.model)
        texts = isinstance(self.what, str) and isinstance(self.unit, str)
        if not texts or not all(isinstance(one, float) and isfinite(one) for one in numbers):
            raise ValueError("it is no measurement")

    @property
    def error(self) -> float:
        """Return how far the model is off, as a share of what was measured; too low is negative."""
        return self.model / self.measured - 1 if self.measured else 0.0


def save_measurement(
    what: str, measured: Quantity, model: Quantity, *, folder: str | os.PathLike[str] | None = None
) -> None:
    """Save what was measured for the lab report; the newest of each name counts. Grading saves nothing.

    Parameters
    ----------
    what : str
        The pipeline, in words.
    measured, model : quantity
        What was measured, and what the model says.
    folder : path, optional
        Where the file stands; the folder that the notebook runs in unless given.
    """
    if runtime.current().is_grading:
        return
    path = Path.cwd() if folder is None else Path(folder)
    unit = unit_name(measured.units)
    saved = {one.what: one for one in read_measurements(path)}
    saved[what] = OwnMeasurement(what, float(measured.magnitude), float(model.m_as(measured.units)), unit)
    text = json.dumps([asdict(one) for one in saved.values()], indent=2, ensure_ascii=False)
    with whole_file(path / FILE_NAME) as part:
        part.write_text(f"{text}\n", encoding="utf-8")


def read_measurements(folder: Path) -> tuple[OwnMeasurement, ...]:
    """The measurements in the file of a folder; none where it cannot be read."""
    try:
        found = json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))
        return tuple(OwnMeasurement(**one) for one in found)[:MAX_MEASUREMENTS]
    except (OSError, ValueError, TypeError, RecursionError):
        return ()
