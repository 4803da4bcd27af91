"""The lab's own sections of the report of a class: calibration, questions, and designs under a budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from .. import tables
from ..prediction_file import Prediction, read_file
from .calibration import RatedAnswers, by_confidence, draw_calibration, rated
from .outcomes import Outcomes
from .show.figure import SERIES, StaticFigure, as_percent, new_figure, render_figure
from .wording import percent

MAX_QUESTIONS, MAX_KEY = 100, 80  # of a class; of characters, the second


class ReportedStudent(Protocol):
    """A student, as the grader tells of one."""

    name: str
    folder: Path  # of the graded notebooks, and of what came with them
    notes: Mapping[str, Mapping[str, Mapping[str, Sequence[Any]]]]  # of checks, by notebook, cell and name


def sections(members: Sequence[ReportedStudent]) -> Iterator[dict[str, object]]:
    """Yield the sections of the report, each a table and perhaps a picture in HTML."""
    predictions = [
        prediction for member in members for prediction in read_file(member.folder).predictions.values()
    ]
    headers = ["confidence", "predictions", "sure on average", "came true"]
    outcomes = Outcomes(tuple(predictions))
    groups, picture = by_confidence(outcomes.rated), ""
    if (whole := outcomes.group) is not None:
        came_true = f"Of {whole.number} predictions {percent(whole.right)} came true, and their students were"
        caption = f"<figcaption>{came_true} {percent(whole.sure)} sure on average.</figcaption>"
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
    if points := designs(_noted(members)):
        yield {
            "name": "designs",
            "title": "Designs under a budget",
            "about": "What each student designed under a budget. A design is on the frontier if nobody's is "
            "both cheaper and busier. There are many right answers; the frontier shows what is left to win.",
            "headers": ["student", "costs [USD]", "busy", "on the frontier"],
            "rows": [
                [
                    point.student,
                    round(point.dollars, 2),
                    round(point.busy, 3),
                    "yes" if point.on_frontier else "",
                ]
                for point in points
            ],
            "figure": frontier_chart(points)._repr_html_(),
        }


def _rows(groups: Iterable[RatedAnswers]) -> list[list[object]]:
    return [[group.what, group.number, round(group.sure, 3), round(group.right, 3)] for group in groups]


def _noted(members: Iterable[ReportedStudent]) -> Iterator[tuple[str, float, float]]:
    """Yield the last design that each test judged: student, dollars, busy share."""
    for member in members:
        for cells in member.notes.values():
            for notes in cells.values():
                for dollars, busy in notes.get("design", ())[-1:]:
                    yield member.name, dollars, busy


def by_question(predictions: Iterable[Prediction]) -> list[RatedAnswers]:
    """Return one group for each question, by its key."""
    by_key: dict[str, list[tuple[float, bool]]] = {}
    for prediction in predictions:
        if pair := rated(prediction):
            by_key.setdefault(prediction.key, []).append(pair)
    # A student can write any number of keys into a file. The keys of the notebooks are those that many have.
    asked = sorted(by_key, key=lambda key: (-len(by_key[key]), key))[:MAX_QUESTIONS]
    return [RatedAnswers.of(key[:MAX_KEY], by_key[key]) for key in sorted(asked)]


@dataclass(frozen=True)
class DesignPoint:
    """A student's design under a budget; on the frontier if nobody's is both cheaper and busier."""

    student: str
    dollars: float
    busy: float
    on_frontier: bool


def designs(noted: Iterable[tuple[str, float, float]]) -> list[DesignPoint]:
    """Return everybody's design, of student, dollars and busy share; the cheapest first."""
    points, busiest = [], -1.0
    for student, dollars, busy in sorted(noted, key=lambda row: (row[1], -row[2], row[0])):
        points.append(DesignPoint(student, dollars, busy, busy > busiest))
        busiest = max(busiest, busy)
    return points


def frontier_chart(designs: Sequence[DesignPoint]) -> StaticFigure:
    """Each design by what it costs and how busy it keeps its GPUs, and the frontier of the class."""
    color, _, marker = SERIES[0]
    other, dash, _ = SERIES[1]
    figure = new_figure(6.5, 3.6)
    axes = figure.add_subplot()
    best = [point for point in designs if point.on_frontier]
    dollars, busy = [point.dollars for point in best], [point.busy for point in best]
    axes.step(dollars, busy, where="post", color=other, linestyle=dash, label="frontier of the class")
    dollars, busy = [point.dollars for point in designs], [point.busy for point in designs]
    axes.plot(dollars, busy, linestyle="", marker=marker, color=color, label="a design")
    axes.set(xlabel="what the training costs [USD]", ylabel="busy share of the GPUs", ylim=(0, 1.05))
    axes.yaxis.set_major_formatter(as_percent)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    places = ", ".join(f"{point.dollars:.0f} USD at {percent(point.busy)}" for point in best)
    summary = f"{len(best)} of {len(designs)} designs are on the frontier: {places}."
    return render_figure(
        figure,
        alt="Scatter plot of designs by cost and busy share, with a stepped line.",
        found=(summary, "Nobody's design is both cheaper and busier than one on the frontier."),
        headers=["costs [USD]", "busy", "on the frontier"],
        rows=[
            [point.dollars, tables.percent(point.busy), "yes" if point.on_frontier else ""]
            for point in designs
        ],
    )
