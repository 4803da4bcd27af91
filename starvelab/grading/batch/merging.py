"""Grades of a private course, written into the instructor's gradebook: one submission, one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from nbgrader.api import BaseCell, Grade, Gradebook, Notebook, SubmittedAssignment, SubmittedNotebook
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import parse_utc
from sqlalchemy import select
from traitlets.config import Config

from .records import Record


@contextmanager
def one_transaction(book: Gradebook) -> Iterator[None]:
    """All that nbgrader's own functions write in the block, or nothing of it."""
    session = book.db()
    try:
        # nbgrader commits each line by itself.
        session.commit = session.flush
        try:
            yield
        finally:
            del session.commit  # its class's own again
        session.commit()
    except BaseException:
        session.rollback()
        raise


def merge(book: Gradebook, record: Record, config: Config) -> None:
    """Write the points and comments of a submission, as nbgrader's own autograder does.

    A mark that a person gave stays. It waits for that person again where another notebook came since.

    Raises
    ------
    sqlalchemy.exc.SQLAlchemyError
        The gradebook then holds what it held before.
    """
    told = {"timestamp": record.timestamp} if record.timestamp else {}
    with one_transaction(book):
        book.update_or_create_student(record.student)
        submission = book.update_or_create_submission(record.assignment, record.student, **told)
        for notebook in submission.notebooks:
            grades = record.grades.get(notebook.name, {})
            for grade in notebook.grades:
                if grade.name in grades:
                    grade.auto_score, by_hand = grades[grade.name]
                    if grade.manual_score is None:
                        # An exercise that was set to 0 points waits for nobody.
                        grade.needs_manual_grade = by_hand and grade.cell.max_score > 0
                    elif notebook.name in record.resubmitted:
                        grade.needs_manual_grade = True
            comments = record.comments.get(notebook.name, {})
            for comment in notebook.comments:
                comment.auto_comment = comments.get(comment.name)
        book.db.flush()
        book.db.expire_all()  # scores are sums, which the database makes
        apply_late_penalty(submission, record.student, config)


def apply_late_penalty(submission: SubmittedAssignment, student: str, config: Config) -> None:
    """What being late costs, by the instructor's own plugin."""
    rule = AssignLatePenalties(config=config)
    rule.init_plugin()
    for notebook in submission.notebooks:
        notebook.late_submission_penalty = None
        if submission.total_seconds_late > 0:
            late = submission.total_seconds_late
            penalty = rule.plugin_inst.late_submission_penalty(student, notebook.score, late)
            if penalty is not None:
                notebook.late_submission_penalty = rule._check_late_penalty(notebook, penalty)


@dataclass
class Known:
    """What the gradebook says of a submission.

    Attributes
    ----------
    timestamp : datetime or None
        When it was handed in, in UTC.
    points : dict of pair of str to float or None
        By notebook and cell, the points by test.
    """

    timestamp: datetime | None
    points: dict[tuple[str, str], float | None] = field(default_factory=dict)


def known_to(book: Gradebook, assignment: str) -> dict[str, Known]:
    """What the gradebook says of an assignment, by student."""
    found: dict[str, Known] = {}
    submitted = SubmittedAssignment
    asked = (
        select(submitted.student_id, submitted.timestamp, Notebook.name, BaseCell.name, Grade.auto_score)
        .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Notebook, SubmittedNotebook.notebook_id == Notebook.id)
        .join(Grade, Grade.notebook_id == SubmittedNotebook.id)
        .join(BaseCell, Grade.cell_id == BaseCell.id)
        .where(SubmittedAssignment.assignment_id == book.find_assignment(assignment).id)
    )
    for student, timestamp, notebook, cell, points in book.db.execute(asked):
        found.setdefault(student, Known(timestamp)).points[notebook, cell] = points
    return found


def is_known(record: Record, known: Known | None) -> bool:
    """Whether a gradebook holds what a record says."""
    if known is None or (record.timestamp and parse_utc(record.timestamp) != known.timestamp):
        return False
    points = {
        (notebook, cell): points
        for notebook, cells in record.grades.items()
        for cell, (points, _) in cells.items()
    }
    return known.points == points
