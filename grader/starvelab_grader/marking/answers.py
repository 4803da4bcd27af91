"""Answers to an essay as the gradebook has them: who wrote them, and their points and comments."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nbformat import NotebookNode
from nbgrader.api import (
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    MissingEntry,
    Notebook,
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy import select

from ..errors import GraderError
from ..fingerprints import fingerprint
from ..report.marks import names_of
from .essays import Essay


class NothingToMarkError(GraderError, LookupError):
    """No person has to read anything, or there is nobody yet whose answers could be read."""


@dataclass(frozen=True)
class Answer:
    """An answer to an essay, with what the gradebook holds of it.

    Attributes
    ----------
    student, name : str
        The name of the folder, and the student's own; empty where the gradebook has none.
    number : int
        The number of the answer, which the page shows while names are hidden. Each essay has its own numbers.
    points : float or None
        What a person gave.
    by_test : float or None
        Points that were given without a person, such as 0 for an answer that nobody changed.
    waits : bool
        Whether a person still has to read it, for the first time or again.
    comment : str
        What a person wrote.
    """

    student: str
    name: str
    number: int
    points: float | None
    by_test: float | None
    waits: bool
    comment: str

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to read."""
        return not self.waits and self.points is None


def answers_in(book: Gradebook, assignment: str, essay: Essay) -> Iterator[Answer]:
    """Everybody's answers to an essay, in a random order that is always the same."""
    names = names_of(book)
    query = (
        select(
            SubmittedAssignment.student_id,
            Grade.manual_score,
            Grade.auto_score,
            Grade.needs_manual_grade,
            Comment.manual_comment,
        )
        .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Notebook, SubmittedNotebook.notebook_id == Notebook.id)
        .join(Grade, Grade.notebook_id == SubmittedNotebook.id)
        .join(BaseCell, Grade.cell_id == BaseCell.id)
        # The gradebook keeps a comment with the answer cell, and points with the graded cell of the same
        # name.
        .outerjoin(
            Comment,
            (Comment.notebook_id == SubmittedNotebook.id)
            & Comment.cell_id.in_(_cells_called(book, assignment, essay)),
        )
        .where(
            SubmittedAssignment.assignment_id == book.find_assignment(assignment).id,
            Notebook.name == essay.notebook,
            BaseCell.name == essay.cell,
        )
    )
    rows = {row[0]: row[1:] for row in book.db.execute(query)}
    shuffled = sorted(rows, key=lambda student: _random_key(assignment, essay, student))
    for number, student in enumerate(shuffled, start=1):
        points, by_test, waits, comment = rows[student]
        yield Answer(student, names.get(student, ""), number, points, by_test, bool(waits), comment or "")


def _cells_called(book: Gradebook, assignment: str, essay: Essay) -> list[str]:
    notebook = book.find_notebook(essay.notebook, assignment)
    cells = [*notebook.solution_cells, *notebook.task_cells]
    return [cell.id for cell in cells if cell.name == essay.cell]


def _random_key(assignment: str, essay: Essay, student: str) -> bytes:
    key = json.dumps([assignment, essay.notebook, essay.cell, student])
    return hashlib.sha256(key.encode()).digest()


def entry_of(book: Gradebook, assignment: str, essay: Essay, student: str) -> tuple[Grade, Comment]:
    """The points of an answer, and the comment on it.

    Raises
    ------
    NothingToMarkError
    """
    place = (essay.cell, essay.notebook, assignment, student)
    try:
        return book.find_grade(*place), book.find_comment(*place)
    except MissingEntry:
        raise NothingToMarkError(
            f"The gradebook has no answer of {student} to {essay.title} any more. Load this page again."
        ) from None


def version_of(cells: Sequence[NotebookNode], grade: Grade, comment: Comment) -> str:
    """Another text whenever the answer, its mark or its comment is different."""
    answer = json.dumps([[cell.source, cell.get("outputs", [])] for cell in cells]).encode()
    return fingerprint({"": answer}, grade.manual_score, grade.needs_manual_grade, comment.manual_comment)
