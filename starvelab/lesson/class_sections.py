"""What the report of a class shows of the lab's own: how sure the class was, and what it designed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from ..prediction_file import Prediction, read_file
from ..tables import percent
from .show.figure import StaticFigure, render_figure
from .show.style import GRAY, SERIES

MAX_QUESTIONS, MAX_KEY = 100, 80  # of characters, the second
BINS = ((0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.0))


class Member(Protocol):
    """A student, as the grader tells of one."""

    name: str
    folder: Path  # of the graded notebooks, and of what came with them
    notes: Mapping[str, Mapping[str, Mapping[str, Sequence[Any]]]]  # of checks, by notebook, cell and name


def sections(members: Sequence[Member]) -> Iterator[dict[str, object]]:
    """Yield the sections of the report, each a table and perhaps a picture in HTML."""
    predictions = [one for each in members for one in read_file(each.folder).predictions.values()]
    headers = ["confidence", "predictions", "sure on average", "came true"]
    groups = by_confidence(predictions)
    yield {
        "name": "calibration",
        "title": "Predictions",
        "about": "How sure the students were of their predictions, and how many of these came true.",
        "headers": headers,
        "rows": _rows(groups),
        "figure": calibration_chart(groups)._repr_html_() if groups else "",
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


def _rows(groups: Iterable[Predicted]) -> list[list[object]]:
    return [[one.what, one.number, round(one.sure, 3), round(one.right, 3)] for one in groups]


def _noted(members: Iterable[Member]) -> Iterator[tuple[str, float, float]]:
    """Yield the last design that each test judged: student, dollars, busy share."""
    for member in members:
        for cells in member.notes.values():
            for notes in cells.values():
                for dollars, busy in notes.get("design", ())[-1:]:
                    yield member.name, dollars, busy


@dataclass(frozen=True)
class Predicted:
    """How a class predicted: one question, or all predictions of about the same confidence.

    Attributes
    ----------
    what : str
    number : int
        Predictions whose reference was shown, and that say how sure their students were.
    sure, right : float
        Mean confidence, and the share that came true.
    """

    what: str
    number: int
    sure: float
    right: float


def by_question(predictions: Iterable[Prediction]) -> list[Predicted]:
    """One line for each question, by its key."""
    by_key: dict[str, list[Prediction]] = {}
    for one in _rated(predictions):
        by_key.setdefault(one.key, []).append(one)
    # A student can write any number of keys into a file. The keys of the notebooks are those that many have.
    asked = sorted(by_key, key=lambda key: (-len(by_key[key]), key))[:MAX_QUESTIONS]
    return [_predicted(key[:MAX_KEY], by_key[key]) for key in sorted(asked)]


def by_confidence(predictions: Iterable[Prediction]) -> list[Predicted]:
    """One line for each fifth of the scale of confidence in which there is a prediction."""
    rated = _rated(predictions)
    results = []
    for low, high in BINS:
        each = [p for p in rated if low <= (p.confidence or 0.0) < high or (high == 1 and p.confidence == 1)]
        if each:
            results.append(_predicted(f"{low:.0%} to {high:.0%}", each))
    return results


def _rated(predictions: Iterable[Prediction]) -> list[Prediction]:
    # A file can hold any number.
    return [
        p
        for p in predictions
        if p.revealed and p.hit is not None and p.confidence is not None and 0 <= p.confidence <= 1
    ]


def _predicted(what: str, each: Sequence[Prediction]) -> Predicted:
    return Predicted(
        what, len(each), fmean(p.confidence or 0.0 for p in each), fmean(bool(p.hit) for p in each)
    )


@dataclass(frozen=True)
class Design:
    """What a student designed under a budget.

    Attributes
    ----------
    student : str
    dollars, busy : float
        What it costs, and the busy share of its accelerators.
    on_frontier : bool
        Whether nobody's is both cheaper and busier.
    """

    student: str
    dollars: float
    busy: float
    on_frontier: bool


def designs(made: Iterable[tuple[str, float, float]]) -> list[Design]:
    """Everybody's design, the cheapest first.

    Parameters
    ----------
    made : iterable of tuple
        Student, dollars and busy share.
    """
    ordered = sorted(made, key=lambda one: (one[1], -one[2], one[0]))
    found, busiest = [], -1.0
    for student, dollars, busy in ordered:
        found.append(Design(student, dollars, busy, busy > busiest))
        busiest = max(busiest, busy)
    return found


def calibration_chart(groups: Sequence[Predicted]) -> StaticFigure:
    """How often predictions came true, over how sure the students were."""
    color, dash, marker = SERIES[0]
    figure = Figure(figsize=(5, 4.4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color=GRAY, linewidth=1, linestyle=":", label="as sure as right")
    sure, right = [one.sure for one in groups], [one.right for one in groups]
    axes.plot(sure, right, color=color, linestyle=dash, marker=marker, label="the class")
    for one in groups:
        axes.annotate(f"{one.number}", (one.sure, one.right), xytext=(6, -12), textcoords="offset points")
    axes.set(xlim=(0, 1.05), ylim=(0, 1.05), xlabel="sure (mean confidence)", ylabel="came true")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1))
    axes.legend(frameon=False, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
    number = sum(one.number for one in groups)
    mean_sure = sum(one.sure * one.number for one in groups) / number
    mean_right = sum(one.right * one.number for one in groups) / number
    summary = (
        f"Of {number} predictions {percent(mean_right, 0)} came true, and their students were "
        f"{percent(mean_sure, 0)} sure on average."
    )
    return render_figure(
        figure,
        alt=f"Line of how often predictions came true over how sure students were. {summary}",
        caption=f"{summary} Below the dotted line the class was too sure; numbers count predictions.",
        headers=["confidence", "predictions", "sure on average", "came true"],
        rows=[[one.what, one.number, percent(one.sure), percent(one.right)] for one in groups],
    )


def frontier_chart(designs: Sequence[Design]) -> StaticFigure:
    """Each design by what it costs and how busy it keeps its GPUs, and the frontier of the class."""
    color, _, marker = SERIES[0]
    other, dash, _ = SERIES[1]
    figure = Figure(figsize=(6.5, 3.6), layout="constrained")
    axes = figure.add_subplot()
    best = [one for one in designs if one.on_frontier]
    dollars, busy = [one.dollars for one in best], [one.busy for one in best]
    axes.step(dollars, busy, where="post", color=other, linestyle=dash, label="frontier of the class")
    axes.plot(
        [one.dollars for one in designs],
        [one.busy for one in designs],
        linestyle="",
        marker=marker,
        color=color,
        label="a design",
    )
    axes.set(xlabel="what the training costs [USD]", ylabel="busy share of the GPUs", ylim=(0, 1.05))
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    points = ", ".join(f"{one.dollars:.0f} USD at {percent(one.busy, 0)}" for one in best)
    summary = f"{len(best)} of {len(designs)} designs are on the frontier: {points}."
    return render_figure(
        figure,
        alt=f"Scatter plot of designs by cost and busy share, with a stepped line. {summary}",
        caption=f"{summary} Nobody's design is both cheaper and busier than one on the frontier.",
        headers=["costs [USD]", "busy", "on the frontier"],
        rows=[[one.dollars, percent(one.busy), "yes" if one.on_frontier else ""] for one in designs],
    )
