"""The instructor's gradebook, which may be locked for a moment: grades are written, and marks are read."""

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import Any, TypeAlias, TypeVar

from nbgrader.api import BaseCell, Comment, Grade, Gradebook, Notebook, SubmittedAssignment, SubmittedNotebook
from nbgrader.utils import parse_utc
from sqlalchemy import Select, select
from sqlalchemy.exc import InterfaceError, OperationalError
from traitlets.config import Config

from ..autograde.nbgrader_private import apply_late_penalty, one_transaction
from .one_student import CannotWriteError
from .records import GradedSubmission

T = TypeVar("T")
WRITE_TIMEOUT = 60.0  # seconds
RETRY_INTERVAL = 0.2  # seconds


def merge(book: Gradebook, record: GradedSubmission, config: Config) -> None:
    """Write the points and comments of a submission, as nbgrader's own autograder does; marks stay."""
    timestamp = {"timestamp": record.timestamp} if record.timestamp else {}
    with one_transaction(book):
        book.update_or_create_student(record.student)
        submission = book.update_or_create_submission(record.assignment, record.student, **timestamp)
        for notebook in submission.notebooks:
            grades = record.grades.get(notebook.name, {})
            for grade in notebook.grades:
                if grade.name in grades:
                    before, (grade.auto_score, needs_person) = grade.auto_score, grades[grade.name]
                    if grade.manual_score is None:
                        # Nobody has to mark an exercise that was set to 0 points.
                        grade.needs_manual_grade = needs_person and grade.cell.max_score > 0
                    # Who gave points knew the answer, and those of the test.
                    elif notebook.name in record.resubmitted or grade.auto_score not in (before, None):
                        grade.needs_manual_grade = True
            comments = record.comments.get(notebook.name, {})
            for comment in notebook.comments:
                comment.auto_comment = comments.get(comment.name)
        apply_late_penalty(book, submission, config)


# When it was submitted, in UTC, and by notebook and cell the points by test.
BookEntry: TypeAlias = tuple[datetime | None, dict[tuple[str, str], float | None]]


def entries_of(book: Gradebook, assignment: str) -> dict[str, BookEntry]:
    """Return what the gradebook holds of an assignment, by student."""
    entries: dict[str, BookEntry] = {}
    query = by_cell(book, assignment, Grade, SubmittedAssignment.timestamp, Grade.auto_score)
    for student, notebook, cell, timestamp, points in book.db.execute(query):
        entries.setdefault(student, (timestamp, {}))[1][notebook, cell] = points
    return entries


def is_in_book(record: GradedSubmission, entry: BookEntry | None) -> bool:
    """Return True if the gradebook holds the grades of a record."""
    if entry is None or (record.timestamp and parse_utc(record.timestamp) != entry[0]):
        return False
    return entry[1] == {
        (notebook, cell): points
        for notebook, cells in record.grades.items()
        for cell, (points, _) in cells.items()
    }


def retry(write: Callable[[], T], timeout: float = WRITE_TIMEOUT) -> T:
    """Try to write until it succeeds, or until the time is over."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return write()
        except (OperationalError, InterfaceError) as error:
            if time.monotonic() > deadline:
                reason = str(getattr(error, "orig", error)).splitlines()[0]
                raise CannotWriteError(
                    f"The gradebook cannot be written: {reason}. Nothing is lost: what was graded is kept "
                    "beside it. Close what else uses the gradebook, and start again."
                ) from error
            time.sleep(RETRY_INTERVAL)


# --- marks and comments as plain data, for pages that people read -----------------------------------------
@dataclass(frozen=True)
class Mark:
    """The points of one exercise, None until it is marked; it waits until a person has read the answer."""

    points: float | None
    waits: bool


@dataclass
class Marks:
    """The marks and comments of one student, by notebook and cell, and the points that being late costs."""

    notebooks: dict[str, dict[str, Mark]] = field(default_factory=dict)
    comments: dict[str, dict[str, str]] = field(default_factory=dict)
    penalties: dict[str, float] = field(default_factory=dict)

    @property
    def waits(self) -> bool:
        """True if something is not marked yet."""
        return any(mark.points is None for each in self.notebooks.values() for mark in each.values())


def _submitted_notebooks(book: Gradebook, assignment: str) -> Select[tuple[str, str]]:
    """Select the student and the name of each notebook that was submitted."""
    return (
        select(SubmittedAssignment.student_id, Notebook.name)
        .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Notebook, SubmittedNotebook.notebook_id == Notebook.id)
        .where(SubmittedAssignment.assignment_id == book.find_assignment(assignment).id)
    )


def by_cell(book: Gradebook, assignment: str, kind: type[Grade | Comment], *columns: Any) -> Select[Any]:
    """Select the student, the notebook, the cell and these columns, of each grade or comment."""
    query = _submitted_notebooks(book, assignment).add_columns(BaseCell.name, *columns)
    query = query.join(kind, kind.notebook_id == SubmittedNotebook.id)
    return query.join(BaseCell, kind.cell_id == BaseCell.id)


def marks_of(book: Gradebook, assignment: str) -> dict[str, Marks]:
    """The marks of all who were graded, by student. They are sorted: a fingerprint is made of them."""
    by_student: dict[str, Marks] = defaultdict(Marks)
    submitted = _submitted_notebooks(book, assignment).add_columns(SubmittedNotebook.late_submission_penalty)
    for student, notebook, penalty in sorted(book.db.execute(submitted), key=itemgetter(0, 1)):
        by_student[student].penalties[notebook] = penalty or 0.0

    def rows(kind: type[Grade | Comment], *columns: Any) -> list[Any]:
        return sorted(book.db.execute(by_cell(book, assignment, kind, *columns)), key=itemgetter(0, 1, 2))

    columns = (Grade.auto_score, Grade.manual_score, Grade.score, Grade.needs_manual_grade)
    for student, notebook, cell, by_test, by_hand, points, waits in rows(Grade, *columns):
        marked = by_test is not None or by_hand is not None or not waits
        mark = Mark(float(points) if marked else None, bool(waits))
        by_student[student].notebooks.setdefault(notebook, {})[cell] = mark
    comments = rows(Comment, Comment.auto_comment, Comment.manual_comment)
    for student, notebook, cell, by_test, by_hand in comments:
        if comment := by_hand or by_test:
            by_student[student].comments.setdefault(notebook, {})[cell] = comment
    return by_student


def names_of(book: Gradebook) -> dict[str, str]:
    """Names of students, where the gradebook has some."""
    names = {one.id: " ".join(filter(None, (one.first_name, one.last_name))) for one in book.students}
    return {student: name for student, name in names.items() if name}
