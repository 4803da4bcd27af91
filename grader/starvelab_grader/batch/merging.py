"""The grades of a submission, written into the instructor's gradebook, which may be locked for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from nbgrader.api import BaseCell, Grade, Gradebook, Notebook, SubmittedAssignment, SubmittedNotebook
from nbgrader.utils import parse_utc
from sqlalchemy import select
from sqlalchemy.exc import InterfaceError, OperationalError
from traitlets.config import Config

from ..autograde.nbgrader_private import apply_late_penalty, one_transaction
from .one_student import CannotWriteError
from .records import GradedSubmission

T = TypeVar("T")
WRITE_TIMEOUT = 60.0  # seconds
RETRY_INTERVAL = 0.2  # seconds

def merge(book: Gradebook, record: GradedSubmission, config: Config) -> None:
    """Write the points and comments of a submission, as nbgrader's own autograder does.

    A mark that a person gave stays. The person has to look again where the notebook has changed since.
    """
    timestamp = {"timestamp": record.timestamp} if record.timestamp else {}
    with one_transaction(book):
        book.update_or_create_student(record.student)
        submission = book.update_or_create_submission(record.assignment, record.student, **timestamp)
        for notebook in submission.notebooks:
            grades = record.grades.get(notebook.name, {})
            for grade in notebook.grades:
                if grade.name in grades:
                    grade.auto_score, needs_person = grades[grade.name]
                    if grade.manual_score is None:
                        # Nobody has to mark an exercise that was set to 0 points.
                        grade.needs_manual_grade = needs_person and grade.cell.max_score > 0
                    elif notebook.name in record.resubmitted:
                        grade.needs_manual_grade = True
            comments = record.comments.get(notebook.name, {})
            for comment in notebook.comments:
                comment.auto_comment = comments.get(comment.name)
        book.db.flush()
        book.db.expire_all()  # scores are sums, which the database makes
        apply_late_penalty(submission, record.student, config)


@dataclass
class BookEntry:
    """What the gradebook holds of a submission."""

    timestamp: datetime | None  # when it was submitted, in UTC
    # By notebook and cell, the points by test.
    points: dict[tuple[str, str], float | None] = field(default_factory=dict)


def entries_of(book: Gradebook, assignment: str) -> dict[str, BookEntry]:
    """Return what the gradebook holds of an assignment, by student."""
    entries: dict[str, BookEntry] = {}
    submitted = SubmittedAssignment
    query = (
        select(submitted.student_id, submitted.timestamp, Notebook.name, BaseCell.name, Grade.auto_score)
        .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Notebook, SubmittedNotebook.notebook_id == Notebook.id)
        .join(Grade, Grade.notebook_id == SubmittedNotebook.id)
        .join(BaseCell, Grade.cell_id == BaseCell.id)
        .where(SubmittedAssignment.assignment_id == book.find_assignment(assignment).id)
    )
    for student, timestamp, notebook, cell, points in book.db.execute(query):
        entries.setdefault(student, BookEntry(timestamp)).points[notebook, cell] = points
    return entries


def is_in_book(record: GradedSubmission, entry: BookEntry | None) -> bool:
    """Return True if the gradebook holds the grades of a record."""
    if entry is None or (record.timestamp and parse_utc(record.timestamp) != entry.timestamp):
        return False
    points = {
        (notebook, cell): points
        for notebook, cells in record.grades.items()
        for cell, (points, _) in cells.items()
    }
    return entry.points == points


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
