"""Marks and comments of an assignment in the gradebook, as plain data: for pages that students read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from typing import Any

from nbgrader.api import BaseCell, Comment, Grade, Gradebook, Notebook, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import Select, select

from ..fingerprints import fingerprint


@dataclass(frozen=True)
class Mark:
    """The points of one exercise, None as long as nobody has marked it.

    It waits as long as a person still has to read the answer, for the first time or again.
    """

    points: float | None
    waits: bool


@dataclass
class Marks:
    """The marks and comments of one student, by notebook and cell, and the points that being late costs."""

    notebooks: dict[str, dict[str, Mark]] = field(default_factory=dict)
    comments: dict[str, dict[str, str]] = field(default_factory=dict)
    penalties: dict[str, float] = field(default_factory=dict)

    def of(self, notebook: str) -> dict[str, Mark]:
        """The marks of a notebook."""
        return self.notebooks.get(notebook, {})

    @property
    def waits(self) -> bool:
        """True if something is not marked yet."""
        return any(mark.points is None for each in self.notebooks.values() for mark in each.values())

    def fingerprint(self, files: Mapping[str, bytes], *values: object) -> str:
        """Another one where anything is different that a page shows."""
        return fingerprint(files, asdict(self), *values)


def submitted_notebooks(book: Gradebook, assignment: str) -> Select[tuple[str, str]]:
    """Select the student and the name of each notebook that was submitted."""
    return (
        select(SubmittedAssignment.student_id, Notebook.name)
        .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Notebook, SubmittedNotebook.notebook_id == Notebook.id)
        .where(SubmittedAssignment.assignment_id == book.find_assignment(assignment).id)
    )


def marks_of(book: Gradebook, assignment: str) -> dict[str, Marks]:
    """The marks of all who were graded, by student. They are sorted: a fingerprint is made of them."""
    submitted = submitted_notebooks(book, assignment)
    by_student: dict[str, Marks] = defaultdict(Marks)

    def rows(kind: type[Grade | Comment], *columns: Any) -> list[Any]:
        by_cell = (
            submitted.add_columns(BaseCell.name, *columns)
            .join(kind, kind.notebook_id == SubmittedNotebook.id)
            .join(BaseCell, kind.cell_id == BaseCell.id)
        )
        return sorted(book.db.execute(by_cell), key=itemgetter(0, 1, 2))

    penalties = book.db.execute(submitted.add_columns(SubmittedNotebook.late_submission_penalty))
    for student, notebook, penalty in sorted(penalties, key=itemgetter(0, 1)):
        by_student[student].penalties[notebook] = penalty or 0.0
    columns = (Grade.auto_score, Grade.manual_score, Grade.score, Grade.needs_manual_grade)
    for student, notebook, cell, by_test, by_hand, points, waits in rows(Grade, *columns):
        marked = by_test is not None or by_hand is not None or not waits
        mark = Mark(float(points) if marked else None, bool(waits))
        by_student[student].notebooks.setdefault(notebook, {})[cell] = mark
    for student, notebook, cell, by_test, by_hand in rows(
        Comment, Comment.auto_comment, Comment.manual_comment
    ):
        if comment := by_hand or by_test:
            by_student[student].comments.setdefault(notebook, {})[cell] = comment
    return by_student


def names_of(book: Gradebook) -> dict[str, str]:
    """Names of students, where the gradebook has some."""
    names = {
        one.id: " ".join(part for part in (one.first_name, one.last_name) if part) for one in book.students
    }
    return {student: name for student, name in names.items() if name}
