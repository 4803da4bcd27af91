"""The report of a class: a page with tables and pictures, and each table as CSV."""

import csv
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import count
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

import nbformat

from ..batch.classroom import Classroom
from ..batch.one_student import READ_TIMEOUT, one_student
from ..batch.records import GradedSubmission
from ..plugins import functions
from ..text import escape_csv_formulas
from . import findings
from .rendering import TEMPLATES, templates
from .same_texts import MIN_FILE_WORDS, PUBLISHED, same_texts

MAX_EXCERPT = 120  # characters
LOST = (
    "This report leaves the submission out: the graded notebooks are not those of its record. Grade it again."
)
# By section: its title, what it is about, and the columns of its table.
TEXTS = tomllib.loads((TEMPLATES / "sections.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Section:
    """A part of the report: a table, which is a CSV file of that name too, and perhaps a picture in HTML."""

    name: str
    title: str
    about: str
    headers: Sequence[str]
    rows: Sequence[Sequence[object]]
    figure: str = ""

    @classmethod
    def of(cls, name: str, rows: Sequence[Sequence[object]], figure: str = "", *values: object) -> Self:
        """Make a section of our own, with values in its text."""
        texts = TEXTS[name]
        return cls(name, texts["title"], texts["about"].format(*values), texts["columns"], rows, figure)


@dataclass(frozen=True)
class Member:
    """A student of the class, for the sections of a course's own package, see `plugins`."""

    name: str  # what the report calls the student
    folder: Path  # of the graded notebooks, and of what came with them
    notes: Mapping[str, Mapping[str, Mapping[str, Sequence[object]]]]  # of checks, by notebook and test cell


def sections(classroom: Classroom, names: Mapping[str, str], not_graded: Mapping[str, str]) -> list[Section]:
    """Return the sections of the report of a class; `not_graded` says why, and `names` call students."""
    records, definition = classroom.records, classroom.definition
    loaded = {student: records.load(student) for student in records.students}
    submissions, cells = list(filter(None, loaded.values())), definition.cells
    left_out = {student: LOST for student, record in loaded.items() if record is None}
    called = {student: names.get(student, student) for student in [*loaded, *not_graded]}
    notebooks = definition.notebooks
    titles = {(one.name, cell): title for one in notebooks for cell, title in one.titles.items()}
    title_of_cell = {cell: title for (_, cell), title in titles.items()}
    published = {
        cell.name: one.model_answers.get(cell.name, "")
        for one in notebooks for cell in one.reference if cell.grade and cell.answered
    }  # fmt: skip
    released = {text for one in notebooks for text in one.given_out}
    essays, files, members = dict[str, dict[str, str]](), dict[str, dict[str, str]](), list[Member]()
    for record in submissions:
        with one_student(record.student, left_out, "The report leaves this submission out", READ_TIMEOUT):
            folder, essay, file = records.notebooks(record.student), dict[str, str](), dict[str, str]()
            for name in (name for name in cells if name not in record.rejected):
                nb = nbformat.read(folder / f"{name}.ipynb", as_version=4)
                written = findings.texts_by_exercise(nb, cells[name], released, f"{name}, own cells")
                essay |= {
                    title_of_cell.get(cell, cell): written[cell] for cell in written.keys() & published.keys()
                }
                file[f"{name}.ipynb"] = "\n".join(written.values())
            essays[record.student], files[record.student] = essay, file
            members.append(Member(called[record.student], folder, record.notes))
    left_out |= not_graded
    to_check = [
        *((one.student, one.to_do, " ".join(one.remarks))
          for one in findings.to_look_at(submissions)),
        *((student, "grade it again", why) for student, why in left_out.items()),
    ]  # fmt: skip
    answers = {title_of_cell.get(cell, cell): text for cell, text in published.items() if text}
    same = [*same_texts(files, MIN_FILE_WORDS), *same_texts(essays | {PUBLISHED: answers})]
    items = findings.items(submissions, cells)
    exercises = [replace(one, cell=titles[one.notebook, one.cell]) for one in items]
    return [
        Section.of("look_at", [[called[one], *more] for one, *more in to_check]),
        _points(findings.distribution(submissions, cells)),
        _exercises(exercises, len(submissions)),
        Section.of("mistakes", [
            [len(students), f"{100 * len(students) / len(submissions):.0f} %", notebook,
             titles.get((notebook, cell), cell), message]
            for notebook, cell, message, students in findings.mistakes(submissions)
        ]),
        Section.of("should_come", [
            [called[student], points,
             "; ".join(" ".join([titles[notebook, cell], *(f"({each})" for each in made)])
                       for notebook, cell, made in nothing)]
            for student, points, nothing in findings.should_come(submissions, cells)
        ]),
        *(Section(**each) for function in functions("sections") for each in function(members)),
        Section.of("same", [
            [", ".join(called.get(student, student) for student in group.students), group.where,
             " ".join(group.text.split())[:MAX_EXCERPT]]
            for group in same
        ]),
        Section.of("graded", [[called[one.student], *_graded(one)] for one in submissions]),
    ]  # fmt: skip


def write(folder: Path, title: str, parts: Sequence[Section]) -> Path:
    """Write the page and the tables, and return the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in parts:
        # A text of a student's that no file can hold costs no other student the report.
        with (folder / f"{part.name}.csv").open("w", encoding="utf-8", errors="replace", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(part.headers)
            # None is an empty cell.
            writer.writerows([[escape_csv_formulas(value) for value in row] for row in part.rows])
    path = folder / "report.html"
    page = templates().get_template("report.html.j2").render(title=title, sections=parts)
    path.write_text(page, encoding="utf-8", errors="replace")
    return path


def _graded(record: GradedSubmission) -> list[object]:
    grades = [grade for cells in record.grades.values() for grade in cells.values()]
    by_test, by_hand = (sum(points or 0 for points, _ in grades), sum(by_hand for _, by_hand in grades))
    return [by_test, by_hand, record.at, record.grader, record.mode, record.seconds]


def _points(points: findings.Distribution | None) -> Section:
    if points is None:
        texts = TEXTS["distribution"]
        return Section("distribution", texts["title"], "Nobody has points by test.", texts["columns"], [])
    rows = [[round(low, 3), round(high, 3), students] for low, high, students in points.bins]
    caption = f"Mean {points.mean:.1f}, median {points.median:.1f} of {points.possible:g} points."
    number = sum(students for *_, students in points.bins)
    alt = f"Histogram of the points of {number} students in {len(points.bins)} classes. {caption}"
    return Section.of("distribution", rows, _charts().histogram(points, alt, caption, _ticks), points)


def _exercises(items: Sequence[findings.Item], students: int) -> Section:
    rounded = ((one, round(one.difficulty, 3), one.discrimination) for one in items)
    rows = [[*astuple(one)[:-2], mean, other and round(other, 3)] for one, mean, other in rounded]
    if not items or not students:
        return Section.of("items", rows, "", students)
    hardest, easiest = (of(items, key=attrgetter("difficulty")) for of in (min, max))
    extremes = (
        f"Hardest: {hardest.cell} ({100 * hardest.difficulty:.0f} % of the points). "
        f"Easiest: {easiest.cell} ({100 * easiest.difficulty:.0f} %)."
    )
    alt = f"Bar chart of the mean share of points for {len(items)} exercises. {extremes}"
    caption = f"Mean share of the points of each exercise, and its discrimination. {extremes}"
    low = min(0.0, *(one.discrimination or 0.0 for one in items)) - 0.02
    return Section.of("items", rows, _charts().difficulty(items, low, alt, caption), students)


def _charts() -> Any:
    """Return the macros of the template that draws."""
    return templates().get_template("charts.html.j2").module


def _ticks(end: float) -> range:
    """Return round numbers from 0 on, at most nine."""
    steps = (factor * 10**power for power in count() for factor in (1, 2, 5))
    return range(0, int(end) + 1, next(step for step in steps if 8 * step >= end))
