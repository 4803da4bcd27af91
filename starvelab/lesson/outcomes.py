"""Outcomes of predictions, of one learner and of a class: hits, answers in words, and who was too sure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from textwrap import shorten
from typing import Any, Protocol

import numpy as np

from .. import tables
from ..prediction_file import Prediction, read_file
from ..tables import count_of
from ..units import format_number
from .show.figure import SERIES, StaticFigure, as_percent, new_figure, render_figure
from .show.svg import Bar, bar_rows, frame

HEADERS = ["prediction", "yours", "how sure", "the answer", "result"]
# A gap this small says nothing: with ten predictions one hit more or less moves the rate by as much.
CALIBRATED_WITHIN = 0.10
# What comes of chance less often than this is not put down to it.
CHANCE = 0.05
# No question of the lab is as long: a file can hold anything.
MAX_QUESTION_LENGTH = 400
BRIER = (
    "Your Brier score is {:.2f}: the mean squared distance between how sure you were and what came true. "
    "Lower is better: 0 is perfect, and always saying 50 % gives 0.25."
)
# With fewer predictions nothing is said of calibration.
MIN_PREDICTIONS = 5
MAX_QUESTIONS, MAX_KEY = 100, 80  # of a class; of characters, the second


@dataclass(frozen=True, repr=False)
class Outcomes:
    """Predictions beside the truth, in the order in which they were locked."""

    predictions: tuple[Prediction, ...]

    @property
    def revealed(self) -> tuple[Prediction, ...]:
        """The predictions whose truth has been shown."""
        return tuple(one for one in self.predictions if one.revealed)

    @property
    def hits(self) -> int:
        """Count those that came true."""
        return sum(bool(one.hit) for one in self.revealed)

    @property
    def group(self) -> Group | None:
        """The revealed predictions that have a confidence, all together; None without any."""
        return Group.of("all", self.rated) if self.rated else None

    @property
    def brier(self) -> float:
        """Brier score of these: mean of (confidence - outcome)^2, with outcome 1 for a hit, 0 for a miss."""
        return fmean((confidence - hit) ** 2 for confidence, hit in self.rated)

    @property
    def rated(self) -> list[tuple[float, bool]]:
        """Confidence and hit of each revealed prediction that has a confidence."""
        return [pair for one in self.predictions if (pair := rated(one))]

    def sentences(self) -> list[str]:
        """Say in sentences what stands beneath the table."""
        locked = count_of(len(self.predictions), "prediction")
        said = f"{self.hits} of {count_of(len(self.revealed), 'revealed prediction')} came true."
        if not self.revealed:
            said = f"{locked} locked, none revealed yet. Run the cells that show the answers."
        if not self.predictions:
            said = "Nothing is locked yet. Lock a prediction in a notebook of this folder: it appears here."
        sentences = [said]
        if len(self.revealed) < MIN_PREDICTIONS:
            return sentences
        if self.group and self.group.number >= MIN_PREDICTIONS:
            sentences += [self._calibration(self.group), BRIER.format(self.brier)]
        unrated = len(self.revealed) - len(self.rated)
        if unrated:
            sentences.append(
                f"{count_of(unrated, 'prediction')} without a statement of how sure you were: the slider was "
                "not moved. Calibration leaves such predictions out."
            )
        return sentences

    def _calibration(self, group: Group) -> str:
        where = "You were" if group.number == len(self.revealed) else "Where you said how sure, you were"
        said = f"{where} {percent(group.sure)} sure on average and right {percent(group.right)} of the time"
        if abs(group.sure - group.right) <= CALIBRATED_WITHIN + 1e-9:
            return f"{said}: well matched."
        if self._by_chance(group.right > group.sure) >= CHANCE:
            return f"{said}: they differ, and with so few predictions chance can explain it."
        return f"{said}: {'underconfident' if group.right > group.sure else 'overconfident'}."

    def _by_chance(self, above: bool) -> float:
        """Return how often chance gives so many hits, or more extreme, to whoever is as right as they say."""
        of_hits = np.ones(1)
        for confidence, _ in self.rated:
            of_hits = np.convolve(of_hits, [1 - confidence, confidence])
        hits = sum(hit for _, hit in self.rated)
        return float(of_hits[hits:].sum() if above else of_hits[: hits + 1].sum())

    def rows(self) -> list[list[str]]:
        """The table's rows: prediction, yours, how sure, the answer, the result."""
        return [
            [
                title(one.question or one.key),
                value(one.answer, one.unit),
                "" if one.confidence is None else percent(one.confidence),
                truth(one),
                _result(one),
            ]
            for one in self.predictions
        ]


def rated(one: Prediction) -> tuple[float, bool] | None:
    """Confidence and hit of a prediction, if its truth was shown and it says how sure somebody was."""
    # A file can hold any number.
    if one.hit is None or one.confidence is None or not (one.revealed and 0 <= one.confidence <= 1):
        return None
    return one.confidence, one.hit


@dataclass(frozen=True)
class Group:
    """Predictions that belong together: how many, the mean confidence, and the share that came true."""

    what: str
    number: int
    sure: float
    right: float

    @classmethod
    def of(cls, what: str, pairs: Sequence[tuple[float, bool]]) -> Group:
        """The group of so many pairs of a confidence and a hit."""
        return cls(what, len(pairs), fmean(sure for sure, _ in pairs), fmean(hit for _, hit in pairs))


def by_confidence(pairs: Sequence[tuple[float, bool]]) -> list[Group]:
    """One group for each fifth of the scale of confidence in which there is a prediction."""
    fifths: dict[int, list[tuple[float, bool]]] = {}
    for sure, hit in sorted(pairs):
        fifths.setdefault(min(int(5 * sure), 4), []).append((sure, hit))
    return [
        Group.of(f"{percent(fifth / 5)} to {percent((fifth + 1) / 5)}", each)
        for fifth, each in fifths.items()
    ]


def draw_calibration(groups: Sequence[Group]) -> str:
    """Draw how often predictions of about the same confidence came true, as SVG; empty without any."""
    if not groups:
        return ""
    rows = [
        Bar(f"{one.what} sure", one.right, SERIES[0][0], f"{percent(one.right)} of {one.number} came true", 1)
        for one in groups
    ]
    body, height = bar_rows(rows, left=160, length=300, row=26)
    each = "; ".join(f"{row.name}: {row.note}" for row in rows)
    return frame(body, height=height, title="How sure, and how often right", description=f"{each}.")


# --- in words ---------------------------------------------------------------------------------------------


def one_line(text: str) -> str:
    """The same text without its marks, on one line: a name for a screen reader."""
    return " ".join(re.sub(r"\*\*|`", "", text).split())


def title(question: str) -> str:
    """Name a question by its first paragraph, whole, since what matters often stands at its end."""
    return shorten(one_line(question.partition("\n\n")[0]), MAX_QUESTION_LENGTH, placeholder=" ...")


def grouped(number: float, digits: int = 4) -> str:
    """A number with its thousands apart, so that 1,000,000,000 is not read as 100,000,000."""
    return re.sub(r"\d+", lambda whole: f"{int(whole[0]):,}", format_number(number, digits), count=1)


def value(answer: str | float, unit: str | None) -> str:
    """An answer with its unit: ``CPU``, ``18.3 %``, ``21,800 img/s``."""
    if isinstance(answer, str):
        return answer
    return f"{grouped(answer, 10)} {unit or ''}".strip()


def quoted(text: str, answer: str | float) -> str:
    """An answer within a sentence: a choice stands in quotation marks, a number does not."""
    return f'"{text}"' if isinstance(answer, str) else text


def truth(locked: Prediction) -> str:
    """The answer as it was revealed; nothing before that."""
    if locked.truth is None or isinstance(locked.truth, str):
        return locked.truth or ""
    return number(locked.truth, locked.unit)


def number(value: float, unit: str | None) -> str:
    """A number with its unit, to four significant digits; a percentage as tables have it: ``18.3 %``."""
    if unit == "%":
        return tables.percent(value / 100)
    return f"{grouped(value)} {unit or ''}".strip()


def percent(share: float) -> str:
    """A share as a whole percentage: ``70 %``."""
    return tables.percent(share, 0)


def _result(prediction: Prediction) -> str:
    if not prediction.revealed:
        return "not revealed"
    if prediction.measured is not None:
        return f"hit: {number(prediction.measured, prediction.unit)} were measured"
    return "hit" if prediction.hit else "miss"


# --- of a class: the lab's own sections of its report ------------------------------------------------------


class Member(Protocol):
    """A student, as the grader tells of one."""

    name: str
    folder: Path  # of the graded notebooks, and of what came with them
    notes: Mapping[str, Mapping[str, Mapping[str, Sequence[Any]]]]  # of checks, by notebook, cell and name


def sections(members: Sequence[Member]) -> Iterator[dict[str, object]]:
    """Yield the sections of the report, each a table and perhaps a picture in HTML."""
    predictions = [one for each in members for one in read_file(each.folder).predictions.values()]
    headers = ["confidence", "predictions", "sure on average", "came true"]
    outcomes = Outcomes(tuple(predictions))
    groups, picture = by_confidence(outcomes.rated), ""
    if (whole := outcomes.group) is not None:
        came = f"Of {whole.number} predictions {percent(whole.right)} came true, and their students were"
        caption = f"<figcaption>{came} {percent(whole.sure)} sure on average.</figcaption>"
        picture = f"<figure>{draw_calibration(groups)}{caption}</figure>"
    yield {
        "name": "calibration",
        "title": "Predictions",
        "about": "How sure the students were of their predictions, and how many of these came true.",
        "headers": headers,
        "rows": _rows(groups),
        "figure": picture,
    }
    groups = by_question(predictions)
    about = "The same by question: teach again what the class was sure of and had wrong."
    if len(groups) == MAX_QUESTIONS:
        about += f" These are the {MAX_QUESTIONS} that most students answered; the files may hold more."
    yield {
        "name": "questions",
        "title": "Predictions by question",
        "about": about,
        "headers": ["prediction", "students", *headers[2:]],
        "rows": _rows(groups),
    }
    if made := designs(_noted(members)):
        yield {
            "name": "designs",
            "title": "Designs under a budget",
            "about": "What each student designed under a budget. A design is on the frontier if nobody's is "
            "both cheaper and busier. There are many right answers; the frontier shows what is left to win.",
            "headers": ["student", "costs [USD]", "busy", "on the frontier"],
            "rows": [
                [one.student, round(one.dollars, 2), round(one.busy, 3), "yes" if one.on_frontier else ""]
                for one in made
            ],
            "figure": frontier_chart(made)._repr_html_(),
        }


def _rows(groups: Iterable[Group]) -> list[list[object]]:
    return [[one.what, one.number, round(one.sure, 3), round(one.right, 3)] for one in groups]


def _noted(members: Iterable[Member]) -> Iterator[tuple[str, float, float]]:
    """Yield the last design that each test judged: student, dollars, busy share."""
    for member in members:
        for cells in member.notes.values():
            for notes in cells.values():
                for dollars, busy in notes.get("design", ())[-1:]:
                    yield member.name, dollars, busy


def by_question(predictions: Iterable[Prediction]) -> list[Group]:
    """One line for each question, by its key."""
    by_key: dict[str, list[tuple[float, bool]]] = {}
    for one in predictions:
        if pair := rated(one):
            by_key.setdefault(one.key, []).append(pair)
    # A student can write any number of keys into a file. The keys of the notebooks are those that many have.
    asked = sorted(by_key, key=lambda key: (-len(by_key[key]), key))[:MAX_QUESTIONS]
    return [Group.of(key[:MAX_KEY], by_key[key]) for key in sorted(asked)]


@dataclass(frozen=True)
class Design:
    """A student's design under a budget; on the frontier if nobody's is both cheaper and busier."""

    student: str
    dollars: float
    busy: float
    on_frontier: bool


def designs(made: Iterable[tuple[str, float, float]]) -> list[Design]:
    """Everybody's design, of student, dollars and busy share; the cheapest first."""
    found, busiest = [], -1.0
    for student, dollars, busy in sorted(made, key=lambda one: (one[1], -one[2], one[0])):
        found.append(Design(student, dollars, busy, busy > busiest))
        busiest = max(busiest, busy)
    return found


def frontier_chart(designs: Sequence[Design]) -> StaticFigure:
    """Each design by what it costs and how busy it keeps its GPUs, and the frontier of the class."""
    color, _, marker = SERIES[0]
    other, dash, _ = SERIES[1]
    figure = new_figure(6.5, 3.6)
    axes = figure.add_subplot()
    best = [one for one in designs if one.on_frontier]
    dollars, busy = [one.dollars for one in best], [one.busy for one in best]
    axes.step(dollars, busy, where="post", color=other, linestyle=dash, label="frontier of the class")
    dollars, busy = [one.dollars for one in designs], [one.busy for one in designs]
    axes.plot(dollars, busy, linestyle="", marker=marker, color=color, label="a design")
    axes.set(xlabel="what the training costs [USD]", ylabel="busy share of the GPUs", ylim=(0, 1.05))
    axes.yaxis.set_major_formatter(as_percent)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    points = ", ".join(f"{one.dollars:.0f} USD at {percent(one.busy)}" for one in best)
    summary = f"{len(best)} of {len(designs)} designs are on the frontier: {points}."
    return render_figure(
        figure,
        alt="Scatter plot of designs by cost and busy share, with a stepped line.",
        found=(summary, "Nobody's design is both cheaper and busier than one on the frontier."),
        headers=["costs [USD]", "busy", "on the frontier"],
        rows=[[one.dollars, tables.percent(one.busy), "yes" if one.on_frontier else ""] for one in designs],
    )
