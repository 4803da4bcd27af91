"""The lab's own sections of the report of a class: how sure the class was, and what it designed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..prediction_file import Prediction, read_file
from ..tables import percent
from .outcomes import Group, Outcomes, by_confidence, rated
from .show.figure import GRAY, SERIES, StaticFigure, as_percent, new_figure, render_figure

MAX_QUESTIONS, MAX_KEY = 100, 80  # of characters, the second


class Member(Protocol):
    """A student, as the grader tells of one."""

    name: str
    folder: Path  # of the graded notebooks, and of what came with them
    notes: Mapping[str, Mapping[str, Mapping[str, Sequence[Any]]]]  # of checks, by notebook, cell and name


def sections(members: Sequence[Member]) -> Iterator[dict[str, object]]:
    """Yield the sections of the report, each a table and perhaps a picture in HTML."""
    predictions = [one for each in members for one in read_file(each.folder).predictions.values()]
    headers = ["confidence", "predictions", "sure on average", "came true"]
    groups = by_confidence(Outcomes(tuple(predictions)).rated)
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


def calibration_chart(groups: Sequence[Group]) -> StaticFigure:
    """Draw how often predictions came true, over how sure the students were."""
    color, dash, marker = SERIES[0]
    figure = new_figure(5, 4.4)
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color=GRAY, linewidth=1, linestyle=":", label="as sure as right")
    sure, right = [one.sure for one in groups], [one.right for one in groups]
    axes.plot(sure, right, color=color, linestyle=dash, marker=marker, label="the class")
    for one in groups:
        axes.annotate(f"{one.number}", (one.sure, one.right), xytext=(6, -12), textcoords="offset points")
    axes.set(xlim=(0, 1.05), ylim=(0, 1.05), xlabel="sure (mean confidence)", ylabel="came true")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(as_percent)
    axes.legend(frameon=False, loc="upper left")
    number = sum(one.number for one in groups)
    mean_sure, mean_right = (
        percent(sum(share * one.number for share, one in zip(shares, groups, strict=True)) / number, 0)
        for shares in (sure, right)
    )
    summary = (
        f"Of {number} predictions {mean_right} came true, and their students were {mean_sure} "
        "sure on average."
    )
    return render_figure(
        figure,
        alt="Line of how often predictions came true over how sure students were.",
        found=(summary, "Below the dotted line the class was too sure; numbers count predictions."),
        headers=["confidence", "predictions", "sure on average", "came true"],
        rows=[[one.what, one.number, percent(one.sure), percent(one.right)] for one in groups],
    )


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
    points = ", ".join(f"{one.dollars:.0f} USD at {percent(one.busy, 0)}" for one in best)
    summary = f"{len(best)} of {len(designs)} designs are on the frontier: {points}."
    return render_figure(
        figure,
        alt="Scatter plot of designs by cost and busy share, with a stepped line.",
        found=(summary, "Nobody's design is both cheaper and busier than one on the frontier."),
        headers=["costs [USD]", "busy", "on the frontier"],
        rows=[[one.dollars, percent(one.busy), "yes" if one.on_frontier else ""] for one in designs],
    )
