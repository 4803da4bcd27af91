"""What a person marks: the essays of an assignment, everybody's answers to one, and the marks given.

It reads and writes nbgrader's gradebook, and knows nothing of the page on which a person marks.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from html import escape
from itertools import combinations
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
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
from traitlets.config import Config

from ...errors import InputError, StarvelabError
from ..autograde.definition import Definition
from ..batch.classroom import patiently
from ..batch.merging import apply_late_penalty, one_transaction
from ..batch.one_student import reason
from ..report.marks import names_of
from ..report.pages import cells_as_html
from ..report.similar import CODE, PROSE, pairs
from ..submissions.fingerprint import fingerprint
from ..submissions.notebooks import TrueCell
from ..submissions.reference import name_of
from ..submissions.titles import HEADING, REGION, titles_of

SAVE_TIMEOUT = 5.0  # seconds that the gradebook may be locked before the page says so
MAX_COMMENT = 20_000  # characters
SCHEME = re.compile(r"^### BEGIN MARK SCHEME$(.*?)^### END MARK SCHEME$", re.MULTILINE | re.DOTALL)


class NothingToMarkError(StarvelabError, LookupError):
    """No person has to read anything, or there is nobody yet whose answers could be read."""


class ChangedError(StarvelabError, RuntimeError):
    """The answer or its mark is not what the person saw who marks it."""


@dataclass(frozen=True)
class Essay:
    """A cell that a person marks, and what that person needs to know of it.

    Attributes
    ----------
    notebook, cell, title : str
    points : float
        The most that it gives.
    question, scheme, solution : str
        What was asked, the marking scheme and the instructor's own answer, as HTML; empty if there is none.
    in_code : bool
        Whether the answer is code.
    """

    notebook: str
    cell: str
    title: str
    points: float
    question: str
    scheme: str
    solution: str
    in_code: bool


@dataclass(frozen=True)
class Answer:
    """Somebody's answer to an essay, as far as the gradebook knows it.

    Attributes
    ----------
    student, name : str
        The name of the folder, and the student's own; empty where the gradebook has none.
    number : int
        What the page calls the student while names are hidden. Each essay has numbers of its own.
    points : float or None
        What a person gave.
    by_test : float or None
        What was given without a person, such as 0 for an answer that was left as it was given out.
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


class Marking:
    """The essays of an assignment, and the marks for them.

    Parameters
    ----------
    definition : Definition
    gradebook : callable
        Opens the gradebook.
    notebooks : callable
        The folder of a student's graded notebooks.
    config : Config
        The course's, which says what being late costs.

    Raises
    ------
    NothingToMarkError
    """

    def __init__(
        self,
        definition: Definition,
        gradebook: Callable[[], Gradebook],
        notebooks: Callable[[str], Path],
        config: Config,
    ) -> None:
        self.assignment = definition.assignment
        self.essays = list(_essays(definition))
        if not self.essays:
            raise NothingToMarkError(
                f"No exercise of {self.assignment} is marked by a person: tests give all its points."
            )
        self._cells = definition.cells
        self._gradebook, self._notebooks, self._config = gradebook, notebooks, config
        if not any(self.answers(essay) for essay in self.essays):
            raise NothingToMarkError(
                f"Nobody's submission of {self.assignment} has been graded. "
                f"Grade first: starvelab grade {self.assignment}"
            )

    def answers(self, essay: Essay) -> list[Answer]:
        """Everybody's answers: those that wait first.

        Otherwise the order is random, another one for each essay and always the same: no student is always
        read last, and no number says who it is.
        """
        with closing(self._gradebook()) as book:
            answers = list(_answers_in(book, self.assignment, essay))
        return sorted(answers, key=lambda answer: (not answer.waits, answer.is_blank))

    def read(self, essay: Essay, student: str) -> tuple[str, str]:
        """An answer as harmless HTML, and the version of what is seen: answer, mark and comment.

        Raises
        ------
        NothingToMarkError
        """
        cells = self._answer_cells(essay, student)
        with closing(self._gradebook()) as book:
            entry = _entry(book, self.assignment, essay, student)
            return cells_as_html(cells), _version(cells, *entry)

    def save(
        self,
        essay: Essay,
        student: str,
        version: str,
        *,
        points: str | None = None,
        comment: str | None = None,
        timeout: float = SAVE_TIMEOUT,
    ) -> str:
        """Write a mark, a comment or both into the gradebook; what is None stays as it is.

        Parameters
        ----------
        version : str
            What `read` said, or `save` itself the last time.
        points : str
            As a person types them; with no text, the mark is taken back.
        timeout : float
            How long the gradebook may be locked [s].

        Returns
        -------
        str
            The new version.

        Raises
        ------
        InputError
        ChangedError
        NothingToMarkError
        CannotWriteError
        """
        if comment is not None and len(comment) > MAX_COMMENT:
            raise InputError(
                f"A comment has at most {MAX_COMMENT} characters, and this one has {len(comment)}. "
                "Shorten it."
            )
        cells = self._answer_cells(essay, student)

        def write() -> str:
            with closing(self._gradebook()) as book, one_transaction(book):
                grade, comment_entry = _entry(book, self.assignment, essay, student)
                if version != _version(cells, grade, comment_entry):
                    raise ChangedError(
                        "This answer or its mark has changed since it was shown: somebody else has marked "
                        "it, or it was graded again. It is shown as it is now, and what you typed is still "
                        "here. Enter writes it."
                    )
                if points is not None:
                    # The maximum may have changed since this page was opened.
                    grade.manual_score = points_from(points, grade.cell.max_score)
                    grade.needs_manual_grade = grade.manual_score is None and grade.auto_score is None
                if comment is not None:
                    comment_entry.manual_comment = comment.strip() or None
                book.db.flush()
                book.db.expire_all()  # scores are sums, which the database makes
                # What being late costs may depend on what was earned.
                apply_late_penalty(grade.notebook.assignment, student, self._config)
                return _version(cells, grade, comment_entry)

        return patiently(write, timeout)

    def alike(self, essay: Essay) -> dict[str, list[str]]:
        """For each student those with the same answer, or with one that shares unusual passages."""
        truth = _true_cell(self._cells[essay.notebook], essay.cell)
        texts = {
            one.student: self._text(essay, one.student) for one in self.answers(essay) if not one.is_blank
        }
        texts = {student: text for student, text in texts.items() if text.strip()}
        same = defaultdict(list)
        for student, text in sorted(texts.items()):
            same[" ".join(text.split())].append(student)
        met = {pair for students in same.values() for pair in combinations(students, 2)}
        known = (truth.released, truth.source)
        met |= {(one.one, one.other) for one in pairs(texts, known, CODE if essay.in_code else PROSE)}
        similar = defaultdict(list)
        for one, other in sorted(met):
            similar[one].append(other)
            similar[other].append(one)
        return dict(similar)

    def _text(self, essay: Essay, student: str) -> str:
        try:
            return "\n".join(cell.source for cell in self._written(essay, student))
        except (OSError, ValueError):  # `read` says so where it is shown
            return ""

    def _answer_cells(self, essay: Essay, student: str) -> list[NotebookNode]:
        """What is to be read; where that cannot be shown, a cell that says why."""
        try:
            cells = self._written(essay, student)
        except (OSError, ValueError) as error:
            text = f"The graded notebook cannot be read: {reason(error)}. Grade it again."
            return [new_markdown_cell(f"<pre>{escape(text)}</pre>", id="unreadable")]
        return cells or [new_markdown_cell("*There is no answer.*", id="none")]

    def _written(self, essay: Essay, student: str) -> list[NotebookNode]:
        path = self._notebooks(student) / f"{essay.notebook}.ipynb"
        cells = nbformat.read(path, as_version=4).cells
        names = [name_of(cell) for cell in cells]
        if essay.cell not in names:
            return []
        at = names.index(essay.cell)
        if not _true_cell(self._cells[essay.notebook], essay.cell).task:
            return [cells[at]]
        # The answer to a task stands in cells of the student's own, behind the one that asks.
        known = {cell.name for cell in self._cells[essay.notebook]}
        behind = (at_next for at_next in range(at + 1, len(cells)) if names[at_next] in known)
        return list(cells[at + 1 : next(behind, len(cells))])


def points_from(text: str, most: float) -> float | None:
    """The points that a person typed; None where nothing was.

    Raises
    ------
    InputError

    Examples
    --------
    >>> points_from("2,5", 4), points_from(" ", 4)
    (2.5, None)
    """
    if not text.strip():
        return None
    try:
        points = float(text.strip().replace(",", "."))
    except ValueError:
        points = math.nan
    if not 0 <= points <= most:
        raise InputError(f"Points are a number from 0 to {most:g}, such as {most / 2:g}; you typed {text!r}.")
    return points


# --- the instructor's side --------------------------------------------------------------------------------


def _essays(definition: Definition) -> Iterator[Essay]:
    for notebook, truth in definition.cells.items():
        content = definition.source[f"{notebook}.ipynb"]
        titles = titles_of(content, truth)
        written = nbformat.reads(content.decode(), as_version=4).cells
        at = {name_of(cell): number for number, cell in enumerate(written)}
        for one in truth:
            if ((one.grade and one.solution) or one.task) and one.points > 0:
                source = written[at[one.name]].source if one.name in at else one.source
                scheme = "\n".join(SCHEME.findall(source))
                rest = REGION.sub("", SCHEME.sub("", source))
                question = _question(written[: at.get(one.name, 0)])
                yield Essay(
                    notebook=notebook,
                    cell=one.name,
                    title=titles[one.name],
                    points=one.points,
                    question=_html(f"{question}\n\n{rest}" if one.task else question),
                    scheme=_html(scheme),
                    solution="" if one.task else _html(rest, one.cell_type),
                    in_code=one.cell_type == "code",
                )


def _question(before: Sequence[NotebookNode]) -> str:
    """The text right before a cell, from its last heading on."""
    texts: list[str] = []
    for cell in reversed(before):
        if cell.cell_type != "markdown" or name_of(cell):
            break
        headings = list(HEADING.finditer(cell.source))
        texts.insert(0, cell.source[headings[-1].end() :] if headings else cell.source)
        if headings:
            break
    return "\n\n".join(texts)


def _html(source: str, cell_type: str = "markdown") -> str:
    source = source.strip()
    if not source:
        return ""
    make = nbformat.v4.new_code_cell if cell_type == "code" else new_markdown_cell
    return cells_as_html([make(source, id="shown")])


def _true_cell(truth: Sequence[TrueCell], name: str) -> TrueCell:
    return next(cell for cell in truth if cell.name == name)


# --- the gradebook ----------------------------------------------------------------------------------------


def _answers_in(book: Gradebook, assignment: str, essay: Essay) -> Iterator[Answer]:
    names = names_of(book)
    asked = (
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
        # The comment on a cell belongs to another entry of the same name: that of the answer.
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
    rows = {row[0]: row[1:] for row in book.db.execute(asked)}
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


def _entry(book: Gradebook, assignment: str, essay: Essay, student: str) -> tuple[Grade, Comment]:
    place = (essay.cell, essay.notebook, assignment, student)
    try:
        return book.find_grade(*place), book.find_comment(*place)
    except MissingEntry:
        raise NothingToMarkError(
            f"The gradebook has no answer of {student} to {essay.title} any more. Load this page again."
        ) from None


def _version(cells: Sequence[NotebookNode], grade: Grade, comment: Comment) -> str:
    answer = json.dumps([[cell.source, cell.get("outputs", [])] for cell in cells]).encode()
    return fingerprint({"": answer}, grade.manual_score, grade.needs_manual_grade, comment.manual_comment)
