"""The report of a class: a page with tables and pictures, and each table as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from ...lesson.show.figure import StaticFigure, render_figure
from ...lesson.show.style import GRAY, SERIES
from ...prediction_file import Prediction, read_file
from ...tables import percent, to_html
from ..autograde.definition import Definition
from ..batch.one_student import READ_TIMEOUT, one_student
from ..batch.records import Record, Records
from ..lms.spreadsheet import no_formula
from .findings import (
    Distribution,
    Item,
    Predicted,
    by_confidence,
    by_question,
    distribution,
    for_a_person,
    items,
    mistakes,
)
from .similar import Pair, same_files, similar, written_by_exercise, written_by_student

EXCERPT = 120  # letters
STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 1rem; }
table { border-collapse: collapse; margin: 0.5rem 0; }
th, td { padding: 0.2rem 0.7rem; border-bottom: 1px solid #8886; vertical-align: top; text-align: left; }
.wide { overflow-x: auto; }
img { max-width: 100%; height: auto; }
"""


@dataclass(frozen=True)
class Section:
    """A part of the report.

    Attributes
    ----------
    name : str
        Of its CSV file.
    title, about : str
    headers, rows
        The table.
    drawn : StaticFigure or None
    """

    name: str
    title: str
    about: str
    headers: Sequence[str]
    rows: Sequence[Sequence[Any]]
    drawn: StaticFigure | None = None

    def html(self) -> str:
        """The section of the page."""
        body = self.drawn._repr_html_() if self.drawn else ""
        table = to_html(self.headers, self.rows) if self.rows else "<p>None.</p>"
        return (
            f"<h2>{escape(self.title)}</h2><p>{escape(self.about)}</p>{body}<div class='wide'>{table}</div>"
        )


def sections(
    records: Records, definition: Definition, names: Mapping[str, str] | None = None
) -> list[Section]:
    """Everything that the records of a class show.

    Parameters
    ----------
    names : mapping of str to str, optional
        By student, what to call them; by default as their folders are called.
    """
    known, cells = list(records), definition.cells
    given_out = _given_out(definition)
    essays = {cell.name for each in cells.values() for cell in each if cell.grade and cell.answered}
    predictions: list[Prediction] = []
    texts: dict[str, dict[str, str]] = {}
    files: dict[str, dict[str, str]] = {}
    failed: dict[str, str] = {}
    for record in known:
        with one_student(record.student, failed, "The report leaves this submission out", READ_TIMEOUT):
            written = {name: _written(records, record, name, definition, given_out) for name in cells}
            texts[record.student] = {what: text for each in written.values() for what, text in each.items()}
            files[record.student] = {name: record.submitted.get(name, "") for name in cells if written[name]}
            predictions += _predictions(records, record)
    called = _Called(names or {})
    return [
        _persons(known, failed, called),
        _distribution(distribution(known, cells)),
        _items(items(known, cells), len(known)),
        _mistakes(known),
        _calibration(by_confidence(predictions)),
        _questions(by_question(predictions)),
        _similar([*same_files(files), *similar(texts, essays, given_out)], called),
        _graded(known, called),
    ]


class _Called(dict[str, str]):
    """What each student is called: the name, if there is one, and the name of the folder."""

    def __missing__(self, student: str) -> str:
        return student


def write(folder: Path, title: str, parts: Iterable[Section]) -> Path:
    """Write the page and the tables; the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = list(parts)
    for part in parts:
        with (folder / f"{part.name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(part.headers)
            writer.writerows([["" if v is None else no_formula(v) for v in row] for row in part.rows])
    page = (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1>{''.join(part.html() for part in parts)}</body></html>"
    )
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    return path


def _predictions(records: Records, record: Record) -> Iterable[Prediction]:
    return read_file(records.notebooks(record.student)).predictions.values()


def _given_out(definition: Definition) -> set[str]:
    """Texts that everybody may have: what was given out, and the solution."""
    texts = {
        text.strip()
        for each in definition.cells.values()
        for one in each
        for text in (one.released, one.source)
    }
    for name, content in definition.source.items():
        if name.endswith(".ipynb"):
            texts |= {cell.source.strip() for cell in nbformat.reads(content.decode(), as_version=4).cells}
    return texts


def _written(
    records: Records, record: Record, name: str, definition: Definition, given_out: set[str]
) -> dict[str, str]:
    """What a student wrote in a notebook: by exercise, and what stands in cells of the student's own."""
    if name in record.refused:
        return {}
    nb = nbformat.read(records.notebooks(record.student) / f"{name}.ipynb", as_version=4)
    truth = definition.cells[name]
    own = written_by_student(nb, {one.name for one in truth}, given_out)
    return written_by_exercise(nb, truth, given_out) | ({f"{name}, own cells": own} if own else {})


# --- one function for each section ------------------------------------------------------------------------


def _items(found: list[Item], students: int) -> Section:
    headers = [
        "notebook",
        "exercise",
        "points",
        "tried",
        "all points",
        "none",
        "difficulty",
        "discrimination",
    ]
    rows = [
        [
            one.notebook,
            one.cell,
            one.points,
            one.tried,
            one.full,
            one.none,
            round(one.difficulty, 3),
            None if one.discrimination is None else round(one.discrimination, 3),
        ]
        for one in found
    ]
    about = (
        f"{students} submissions. Difficulty is the mean share of the points: 1 is easy. Discrimination is "
        "the correlation of that share with the points of all other exercises: near 0, an exercise does not "
        "tell who knows the rest; below 0, look at the exercise. The column none counts those who tried."
    )
    drawn = _difficulty(found) if found and students else None
    return Section("items", "Exercises", about, headers, rows, drawn)


def _difficulty(found: list[Item]) -> StaticFigure:
    colour, _, _ = SERIES[0]
    other, _, marker = SERIES[1]
    figure = Figure(figsize=(7.5, 1.2 + 0.26 * len(found)), layout="constrained")
    axes = figure.add_subplot()
    at = range(len(found))
    axes.barh(
        at, [one.difficulty for one in found], color=colour, height=0.6, label="mean share of the points"
    )
    known = [(y, one.discrimination) for y, one in enumerate(found) if one.discrimination is not None]
    if known:
        ys, values = zip(*known, strict=True)
        axes.plot(values, ys, linestyle="", marker=marker, color=other, mec="white", label="discrimination")
    axes.set_yticks(at, [one.cell for one in found])
    axes.invert_yaxis()
    axes.axvline(0, color=GRAY, linewidth=0.8)
    axes.set_xlim(min([0.0, *(value for _, value in known)]) - 0.02, 1.02)
    axes.set_xlabel("share of the points; correlation with the rest")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    hardest, easiest = min(found, key=_by_difficulty), max(found, key=_by_difficulty)
    said = (
        f"Hardest: {hardest.cell} ({percent(hardest.difficulty, 0)} of the points). "
        f"Easiest: {easiest.cell} ({percent(easiest.difficulty, 0)})."
    )
    return render_figure(
        figure,
        alt=f"Bar chart of the mean share of points for {len(found)} exercises. {said}",
        caption=f"Mean share of the points of each exercise, and its discrimination. {said}",
        headers=["exercise", "mean share of the points", "discrimination"],
        rows=[[one.cell, one.difficulty, one.discrimination] for one in found],
    )


def _by_difficulty(item: Item) -> float:
    return item.difficulty


def _mistakes(known: Sequence[Record]) -> Section:
    rows = [[one.students, one.notebook, one.cell, one.message] for one in mistakes(known)]
    about = "Mistakes that the checks named, visible and hidden ones, and how many students made each."
    return Section("mistakes", "Mistakes", about, ["students", "notebook", "exercise", "mistake"], rows)


def _calibration(found: list[Predicted]) -> Section:
    headers = ["confidence", "predictions", "sure on average", "came true"]
    rows = [[one.what, one.number, round(one.sure, 3), round(one.right, 3)] for one in found]
    about = "Whether the class was as sure of its predictions as it was right, before the truth was shown."
    return Section("calibration", "Predictions", about, headers, rows, _reliability(found) if found else None)


def _reliability(found: list[Predicted]) -> StaticFigure:
    colour, dash, marker = SERIES[0]
    figure = Figure(figsize=(5, 4.4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color=GRAY, linewidth=1, linestyle=":", label="as sure as right")
    sure, right = [one.sure for one in found], [one.right for one in found]
    axes.plot(sure, right, color=colour, linestyle=dash, marker=marker, label="the class")
    for one in found:
        axes.annotate(f"{one.number}", (one.sure, one.right), xytext=(6, -12), textcoords="offset points")
    axes.set(xlim=(0, 1.05), ylim=(0, 1.05), xlabel="sure (mean confidence)", ylabel="came true")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1))
    axes.legend(frameon=False, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
    number = sum(one.number for one in found)
    mean_sure = sum(one.sure * one.number for one in found) / number
    mean_right = sum(one.right * one.number for one in found) / number
    said = (
        f"Of {number} predictions {percent(mean_right, 0)} came true, and their students were "
        f"{percent(mean_sure, 0)} sure on average."
    )
    return render_figure(
        figure,
        alt=f"Line of how often predictions came true over how sure students were. {said}",
        caption=f"{said} Below the dotted line the class was too sure; numbers count predictions.",
        headers=["confidence", "predictions", "sure on average", "came true"],
        rows=[[one.what, one.number, percent(one.sure), percent(one.right)] for one in found],
    )


def _questions(found: list[Predicted]) -> Section:
    headers = ["prediction", "students", "sure on average", "came true"]
    rows = [[one.what, one.number, round(one.sure, 3), round(one.right, 3)] for one in found]
    about = "The same by question: where the class was sure and wrong there is something to teach."
    return Section("questions", "Predictions by question", about, headers, rows)


def _persons(known: Sequence[Record], failed: Mapping[str, str], called: Mapping[str, str]) -> Section:
    about = "What was odd about a submission, where somebody should decide whether the grade is just."
    headers = ["student", "notebook", "what"]
    rows = [*for_a_person(known), *((student, "", why) for student, why in failed.items())]
    rows = [[called[student], notebook, what] for student, notebook, what in rows]
    return Section("look_at", "For a person to look at", about, headers, rows)


def _distribution(found: Distribution | None) -> Section:
    headers = ["points from", "to", "students"]
    if found is None:
        return Section("distribution", "Points", "Nobody has points by test.", headers, [])
    rows = [[round(low, 3), round(high, 3), students] for low, high, students in found.bins]
    about = (
        f"Points by test, of {found.possible:g}; what a person marks is not among them. "
        f"Mean {found.mean:.1f}, median {found.median:.1f}."
    )
    return Section("distribution", "Points", about, headers, rows, _histogram(found))


def _histogram(found: Distribution) -> StaticFigure:
    color, _, _ = SERIES[0]
    other, dash, _ = SERIES[1]
    figure = Figure(figsize=(7.5, 3), layout="constrained")
    axes = figure.add_subplot()
    lows, highs, students = zip(*found.bins, strict=True)
    axes.bar(lows, students, width=[high - low for low, high in zip(lows, highs, strict=True)],
             align="edge", color=color, edgecolor="white")  # fmt: skip
    axes.axvline(found.mean, color=other, linestyle=dash, label=f"mean {found.mean:.1f}")
    axes.axvline(found.median, color=GRAY, linestyle=":", label=f"median {found.median:.1f}")
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.set(xlim=(0, found.possible), xlabel=f"points by test, of {found.possible:g}", ylabel="students")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    said = f"Mean {found.mean:.1f}, median {found.median:.1f} of {found.possible:g} points."
    return render_figure(
        figure,
        alt=f"Histogram of the points of {sum(students)} students in {len(students)} classes. {said}",
        caption=said,
        headers=["points from", "to", "students"],
        rows=[list(row) for row in found.bins],
    )


def _similar(found: list[Pair], called: Mapping[str, str]) -> Section:
    about = (
        "Students who share passages that hardly anybody else wrote, in an exercise, in an essay, in cells "
        "of their own or in all of them together; and students who submitted the same file. That proves "
        "nothing: read both, and ask."
    )
    headers = [
        "student",
        "and",
        "where",
        "characters in common",
        "share of the shorter text",
        "the longest passage",
    ]
    rows = [
        [called[p.one], called[p.other], p.where, p.letters or None, round(p.share, 3), p.passage[:EXCERPT]]
        for p in found
    ]
    return Section("similar", "Nearly the same", about, headers, rows)


def _graded(known: Sequence[Record], called: Mapping[str, str]) -> Section:
    about = "What was graded when, by which version, in which mode, and what the tests gave."
    headers = ["student", "points by test", "waiting for a mark", "graded", "starvelab", "mode", "seconds"]
    rows = []
    for one in known:
        grades = [grade for cells in one.grades.values() for grade in cells.values()]
        waiting = sum(by_hand for _, by_hand in grades)
        points = sum(points or 0 for points, _ in grades)
        rows.append([called[one.student], points, waiting, one.at, one.starvelab, one.mode, one.seconds])
    return Section("graded", "Submissions", about, headers, rows)
