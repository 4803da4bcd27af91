"""The report of a class: a page with tables and pictures, and each table as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import nbformat

from starvelab.tables import to_html

from ..autograde.definition import Definition
from ..batch.one_student import READ_TIMEOUT, one_student
from ..batch.records import GradedSubmission, GradedSubmissions
from ..plugins import functions
from ..text import escape_csv_formulas
from .charts import difficulty_chart, points_histogram
from .findings import (
    Distribution,
    Item,
    distribution,
    for_a_person,
    items,
    mistakes,
)
from .similar import MAX_TEXT, Pair, same_files, similar, too_long, written_by_exercise, written_by_student

MAX_EXCERPT = 120  # characters
LOST = (
    "This report leaves the submission out: the graded notebooks are not those of its record. Grade it again."
)
LONG = f"only the first {MAX_TEXT} characters are compared with what others wrote."
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
    figure : str
        A picture in HTML.
    """

    name: str
    title: str
    about: str
    headers: Sequence[str]
    rows: Sequence[Sequence[object]]
    figure: str = ""

    def html(self) -> str:
        """The section of the page."""
        table = to_html(self.headers, self.rows) if self.rows else "<p>None.</p>"
        about = f"<p>{escape(self.about)}</p>{self.figure}"
        return f"<h2>{escape(self.title)}</h2>{about}<div class='wide'>{table}</div>"


@dataclass(frozen=True)
class Member:
    """A student of the class, for the sections of a course's own package.

    Attributes
    ----------
    name : str
        What the report calls the student.
    folder : Path
        Of the graded notebooks, and of what came with them.
    notes : dict
        By notebook and cell, what the checks noted.
    """

    name: str
    folder: Path
    notes: Mapping[str, Mapping[str, Mapping[str, Sequence[object]]]]


def sections(
    records: GradedSubmissions,
    definition: Definition,
    names: Mapping[str, str] | None = None,
    not_graded: Mapping[str, str] | None = None,
) -> list[Section]:
    """The sections of the report of a class.

    Parameters
    ----------
    names : mapping of str to str, optional
        By student, what to call them; by default as their folders are called.
    not_graded : mapping of str to str, optional
        Students whose submissions could not be graded, and why.
    """
    loaded = {student: records.load(student) for student in records.students}
    submissions, cells = list(filter(None, loaded.values())), definition.cells
    names = _Names(names or {})
    released = _common_texts(definition)
    essays = {cell.name for each in cells.values() for cell in each if cell.grade and cell.answered}
    texts: dict[str, dict[str, str]] = {}
    files: dict[str, dict[str, str]] = {}
    lost = {student: LOST for student, record in loaded.items() if record is None}
    failed: dict[str, str] = {}
    members: list[Member] = []
    cut: list[tuple[str, str, str]] = []
    for record in submissions:
        with one_student(record.student, failed, "The report leaves this submission out", READ_TIMEOUT):
            written = {name: _written(records, record, name, definition, released) for name in cells}
            texts[record.student] = {what: text for each in written.values() for what, text in each.items()}
            files[record.student] = {name: record.submitted.get(name, "") for name in cells if written[name]}
            members.append(
                Member(names[record.student], records.notebooks(record.student), record.notes)
            )
            cut += [(record.student, "", f"{what}: {LONG}") for what in too_long(texts[record.student])]
    to_check = [(student, "", reason) for student, reason in (lost | failed | dict(not_graded or {})).items()]
    return [
        _look_at([*for_a_person(submissions), *cut, *to_check], names),
        _distribution(distribution(submissions, cells)),
        _items(items(submissions, cells), len(submissions)),
        _mistakes(submissions),
        *(Section(**each) for make in functions("sections") for each in make(members)),
        _similar([*same_files(files), *similar(texts, essays, released)], names),
        _graded(submissions, names),
    ]


class _Names(dict[str, str]):
    """The name of each student in the report; by default that of the folder."""

    def __missing__(self, student: str) -> str:
        return student


def write(folder: Path, title: str, parts: Iterable[Section]) -> Path:
    """Write the page and the tables; the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = list(parts)
    for part in parts:
        path = folder / f"{part.name}.csv"
        # A text of a student's that no file can hold costs no other student the report.
        with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(part.headers)
            writer.writerows(
                [["" if v is None else escape_csv_formulas(v) for v in row] for row in part.rows]
            )
    page = (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1>{''.join(part.html() for part in parts)}</body></html>"
    )
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8", errors="replace")
    return path


def _common_texts(definition: Definition) -> set[str]:
    """Texts that everybody may have: what students were given, and the solution."""
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
    records: GradedSubmissions,
    record: GradedSubmission,
    name: str,
    definition: Definition,
    released: set[str],
) -> dict[str, str]:
    """What a student wrote in a notebook: by exercise, and what stands in cells of the student's own."""
    if name in record.rejected:
        return {}
    nb = nbformat.read(records.notebooks(record.student) / f"{name}.ipynb", as_version=4)
    reference = definition.cells[name]
    own = written_by_student(nb, {one.name for one in reference}, released)
    return written_by_exercise(nb, reference, released) | ({f"{name}, own cells": own} if own else {})


# --- one function for each section ------------------------------------------------------------------------


def _items(items: Sequence[Item], students: int) -> Section:
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
            item.notebook,
            item.cell,
            item.points,
            item.tried,
            item.full,
            item.none,
            round(item.difficulty, 3),
            None if item.discrimination is None else round(item.discrimination, 3),
        ]
        for item in items
    ]
    about = (
        f"{students} submissions. Difficulty is the mean share of the points: 1 is easy. Discrimination is "
        "the correlation of that share with the points of all other exercises: near 0, those who solve this "
        "exercise do no better in the others; below 0, look for an error in the exercise. The column none "
        "counts those who tried and earned nothing."
    )
    figure = difficulty_chart(items)._repr_html_() if items and students else ""
    return Section("items", "Exercises", about, headers, rows, figure)


def _mistakes(submissions: Sequence[GradedSubmission]) -> Section:
    rows = [[one.students, one.notebook, one.cell, one.message] for one in mistakes(submissions)]
    about = "Mistakes that the checks named, visible and hidden ones, and how many students made each."
    return Section("mistakes", "Mistakes", about, ["students", "notebook", "exercise", "mistake"], rows)


def _look_at(to_check: Sequence[tuple[str, str, str]], names: Mapping[str, str]) -> Section:
    about = "Submissions about which the grader cannot decide alone: decide whether the grade is just."
    headers = ["student", "notebook", "what"]
    rows = [[names[student], notebook, what] for student, notebook, what in to_check]
    return Section("look_at", "For a person to look at", about, headers, rows)


def _distribution(points: Distribution | None) -> Section:
    headers = ["points from", "to", "students"]
    if points is None:
        return Section("distribution", "Points", "Nobody has points by test.", headers, [])
    rows = [[round(low, 3), round(high, 3), students] for low, high, students in points.bins]
    about = (
        f"Points by test, of {points.possible:g}, without the points that a person gives. "
        f"Mean {points.mean:.1f}, median {points.median:.1f}."
    )
    return Section("distribution", "Points", about, headers, rows, points_histogram(points)._repr_html_())


def _similar(pairs: Sequence[Pair], names: Mapping[str, str]) -> Section:
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
        [
            names[pair.one],
            names[pair.other],
            pair.where,
            pair.characters or None,
            round(pair.share, 3),
            pair.passage[:MAX_EXCERPT],
        ]
        for pair in pairs
    ]
    return Section("similar", "Nearly the same", about, headers, rows)


def _graded(submissions: Sequence[GradedSubmission], names: Mapping[str, str]) -> Section:
    about = "When each submission was graded, by which version and in which mode, and its points by test."
    headers = ["student", "points by test", "waiting for a mark", "graded", "grader", "mode", "seconds"]
    rows = []
    for one in submissions:
        grades = [grade for cells in one.grades.values() for grade in cells.values()]
        waiting = sum(by_hand for _, by_hand in grades)
        points = sum(points or 0 for points, _ in grades)
        rows.append([names[one.student], points, waiting, one.at, one.grader, one.mode, one.seconds])
    return Section("graded", "Submissions", about, headers, rows)
