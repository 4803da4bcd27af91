"""What the gradebook says of an assignment, as plain data: for pages that students read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from nbgrader.api import BaseCell, Comment, Grade, Gradebook, Notebook, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import select

from ..fingerprints import fingerprint


@dataclass(frozen=True)
class Mark:
    """The points of one exercise.

    Attributes
    ----------
    points : float or None
        None as long as nobody has marked it.
    waits : bool
        Whether a person still has to read it, for the first time or again.
    """

    points: float | None
    waits: bool


@dataclass
class Marks:
    """The marks of one student.

    Attributes
    ----------
    notebooks : dict of dict of Mark
        By notebook and graded cell.
    comments : dict of dict of str
        By notebook and cell.
    penalties : dict of str to float
        What being late costs, in points, by notebook.
    """

    notebooks: dict[str, dict[str, Mark]] = field(default_factory=dict)
    comments: dict[str, dict[str, str]] = field(default_factory=dict)
    penalties: dict[str, float] = field(default_factory=dict)

    @property
    def waits(self) -> bool:
        """Whether something is not marked yet."""
        return any(mark.points is None for each in self.notebooks.values() for mark in each.values())

    def fingerprint(self, files: Mapping[str, bytes], *values: object) -> str:
        """Another one where anything is different that a page shows."""
        return fingerprint(files, asdict(self), *values)


def marks_of(book: Gradebook, assignment: str) -> dict[str, Marks]:
    """The marks of all who were graded, by student."""
    by_student: dict[str, Marks] = {}
    which = SubmittedAssignment.assignment_id == book.find_assignment(assignment).id
    who = (SubmittedAssignment.student_id, Notebook.name)
    submitted = (
        select(*who, SubmittedNotebook.late_submission_penalty)
        .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Notebook, SubmittedNotebook.notebook_id == Notebook.id)
    )
    for student, notebook, penalty in book.db.execute(submitted.where(which)):
        by_student.setdefault(student, Marks()).penalties[notebook] = penalty or 0.0
    for kind, columns in (
        (Grade, (Grade.auto_score, Grade.manual_score, Grade.score, Grade.needs_manual_grade)),
        (Comment, (Comment.auto_comment, Comment.manual_comment)),
    ):
        query = (
            select(*who, BaseCell.name, *columns)
            .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
            .join(Notebook, SubmittedNotebook.notebook_id == Notebook.id)
            .join(kind, kind.notebook_id == SubmittedNotebook.id)
            .join(BaseCell, kind.cell_id == BaseCell.id)
        )
        for student, notebook, cell, *values in book.db.execute(query.where(which)):
            marks = by_student.setdefault(student, Marks())
            if kind is Grade:
                by_test, by_hand, points, waits = values
                marked = by_test is not None or by_hand is not None or not waits
                mark = Mark(float(points) if marked else None, bool(waits))
                marks.notebooks.setdefault(notebook, {})[cell] = mark
            elif comment := values[1] or values[0]:
                marks.comments.setdefault(notebook, {})[cell] = comment
    # A database promises no order, and a fingerprint needs one.
    for marks in by_student.values():
        marks.notebooks = {name: dict(sorted(each.items())) for name, each in sorted(marks.notebooks.items())}
        marks.comments = {name: dict(sorted(each.items())) for name, each in sorted(marks.comments.items())}
        marks.penalties = dict(sorted(marks.penalties.items()))
    return by_student


def names_of(book: Gradebook) -> dict[str, str]:
    """Names of students, where the gradebook has some."""
    names = {
        one.id: " ".join(part for part in (one.first_name, one.last_name) if part) for one in book.students
    }
    return {student: name for student, name in names.items() if name}
