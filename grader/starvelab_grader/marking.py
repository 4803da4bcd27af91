"""Marking by hand: everybody's answers to an essay are read, and marks are written into the gradebook."""

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import dropwhile, takewhile

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.api import BaseCell, Comment, Grade, Gradebook, MissingEntry, SubmittedNotebook

from .autograde.definition import Definition
from .autograde.nbgrader_private import apply_late_penalty, one_transaction
from .batch.classroom import Classroom
from .batch.gradebook import by_cell, names_of, retry
from .batch.one_student import reason
from .errors import GraderError, InputError, NotFoundError
from .files import fingerprint
from .report.rendering import cells_as_html
from .submissions.reference import HEADING, ModelAnswer, graded_by, name_of, parse_cells, titles_of

SAVE_TIMEOUT = 5.0  # seconds that the gradebook may be locked before the page shows an error
MAX_COMMENT = 20_000  # characters
# A line of a marking scheme, which may be wrapped, or of a comment: what it says, and what it is worth.
RUBRIC = re.compile(r"^- (-?\d+(?:\.\d+)?) points?: .+(?:\n {2,}.+)*$", re.MULTILINE)


@dataclass(frozen=True)
class Essay:
    """A cell that a person marks, and what that person needs to know of it, as HTML."""

    notebook: str
    cell: str
    title: str
    points: float  # the most that it gives
    question: str
    scheme: str  # of marking
    solution: str  # the instructor's own answer
    in_code: bool
    rubric: Sequence[str]  # lines of the scheme, each with its points


def essays_of(definition: Definition) -> Iterator[Essay]:
    """Yield the cells that a person marks, in the order of the notebooks."""
    for notebook, cells in definition.cells.items():
        content = definition.source[f"{notebook}.ipynb"]
        titles, written = titles_of(content, cells), parse_cells(content)
        position = {name_of(cell): number for number, cell in enumerate(written)}
        for cell in cells:
            if not ((cell.grade and cell.solution) or cell.task) or cell.points <= 0:
                continue
            at = position.get(cell.name)
            model = ModelAnswer.of(cell.source if at is None else written[at].source, cell.cell_type)
            question = _question(written[: at or 0])
            yield Essay(
                notebook=notebook, cell=cell.name, title=titles[cell.name], points=cell.points,
                question=_html(f"{question}\n\n{model.text}" if cell.task else question),
                scheme=_html(model.scheme), solution="" if cell.task else _html(model.text, cell.cell_type),
                in_code=cell.cell_type == "code",
                rubric=[" ".join(item[0].split()) for item in RUBRIC.finditer(model.scheme)],
            )  # fmt: skip


def _question(before: Sequence[NotebookNode]) -> str:
    """Return the text right before a cell, from its last heading on."""
    texts: list[str] = []
    for cell in reversed(before):
        if cell.cell_type != "markdown" or name_of(cell):
            break
        *_, text = HEADING.split(cell.source)
        texts.insert(0, text)
        if text != cell.source:
            break
    return "\n\n".join(texts)


def _html(source: str, cell_type: str = "markdown") -> str:
    new_cell = new_code_cell if cell_type == "code" else new_markdown_cell
    return cells_as_html([new_cell(source.strip(), id="shown")]) if source.strip() else ""


@dataclass(frozen=True)
class Answer:
    """An answer to an essay, with what the gradebook holds of it."""

    student: str
    name: str  # empty where the gradebook has none
    number: int  # which the page shows while names are hidden; each essay has its own numbers
    points: float | None  # that a person gave
    by_test: float | None  # given without a person, such as 0 for an answer that nobody changed
    waits: bool  # for a person to read it, for the first time or again
    comment: str  # of a person

    @property
    def is_blank(self) -> bool:
        """True if there is nothing to read."""
        return not self.waits and self.points is None


class ChangedError(GraderError, RuntimeError):
    """The answer or its mark is not what was shown to the person who marks it."""


class Marking:
    """The essays of an assignment, read and marked. Raises NotFoundError."""

    def __init__(self, classroom: Classroom, is_mine: Callable[[str], bool] = lambda _: True) -> None:
        self.classroom, self.assignment, self._is_mine = classroom, classroom.assignment, is_mine
        self.essays = list(essays_of(classroom.definition))
        cells = classroom.definition.cells
        self._cells = {name: {cell.name: cell for cell in each} for name, each in cells.items()}
        if not self.essays:
            raise NotFoundError(
                f"No exercise of {self.assignment} is marked by a person: tests give all its points. "
                "Change the points of one student in nbgrader's formgrader."
            )
        if not any(map(self.all_answers, self.essays)):
            raise NotFoundError(
                f"Nobody's submission of {self.assignment} has been graded. "
                f"Grade first: starvelab-grader grade {self.assignment}"
            )
        if not any(map(self.answers, self.essays)):
            raise NotFoundError("Nobody who is graded is in this share of the class. Choose another one.")

    def answers(self, essay: Essay) -> list[Answer]:
        """Return the answers in this person's share, in the order of `all_answers`."""
        return [one for one in self.all_answers(essay) if self._is_mine(one.student)]

    def all_answers(self, essay: Essay) -> list[Answer]:
        """Return everybody's answers: those that wait first; else the order is random."""
        with self.classroom.gradebook() as book:
            notebook = book.find_notebook(essay.notebook, self.assignment)
            # The gradebook keeps a comment with the answer cell, and points with the graded cell of the same
            # name.
            cells = [*notebook.solution_cells, *notebook.task_cells]
            commented = Comment.cell_id.in_([cell.id for cell in cells if cell.name == essay.cell])
            columns = (Grade.manual_score, Grade.auto_score, Grade.needs_manual_grade, Comment.manual_comment)
            query = (
                by_cell(book, self.assignment, Grade, *columns)
                .outerjoin(Comment, (Comment.notebook_id == SubmittedNotebook.id) & commented)
                .where(SubmittedNotebook.notebook_id == notebook.id, BaseCell.name == essay.cell)
            )
            place, names = (self.assignment, essay.notebook, essay.cell), names_of(book)
            rows = sorted(book.db.execute(query).all(), key=lambda row: fingerprint({}, *place, row[0]))
        answers = [
            Answer(student, names.get(student, ""), number, points, by_test, bool(waits), comment or "")
            for number, (student, _, _, points, by_test, waits, comment) in enumerate(rows, start=1)
        ]
        return sorted(answers, key=lambda answer: (not answer.waits, answer.is_blank))

    def read(self, essay: Essay, student: str) -> tuple[str, str]:
        """Return an answer as safe HTML, and the version of what is shown. Raises NotFoundError."""
        cells = self._answer_cells(essay, student)
        with self.classroom.gradebook() as book:
            return cells_as_html(cells), _version_of(cells, *self._entry(book, essay, student))

    def save(
        self, essay: Essay, student: str, version: str, *,
        points: str | None = None, comment: str | None = None,
    ) -> str:  # fmt: skip
        """Write a mark, a comment or both into the gradebook, and return the new version; None stays as is.

        `version` is what `read` returned, or the last `save`. Points are as a person types them; with no
        text, the mark is taken back. Raises InputError, ChangedError, NotFoundError or CannotWriteError,
        the last where the gradebook was locked for some seconds.
        """
        if (length := len(comment or "")) > MAX_COMMENT:
            text = f"A comment has at most {MAX_COMMENT} characters, and this one has {length}. Shorten it."
            raise InputError(text)
        cells = self._answer_cells(essay, student)

        def write() -> str:
            with self.classroom.gradebook() as book, one_transaction(book):
                grade, comment_entry = self._entry(book, essay, student)
                if version != _version_of(cells, grade, comment_entry):
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
                apply_late_penalty(book, grade.notebook.assignment, self.classroom.config)
                return _version_of(cells, grade, comment_entry)

        return retry(write, SAVE_TIMEOUT)

    def _entry(self, book: Gradebook, essay: Essay, student: str) -> tuple[Grade, Comment]:
        """Return the points of an answer, and the comment on it. Raises NotFoundError."""
        place = (essay.notebook, self.assignment, student)
        try:
            return book.find_grade(essay.cell, *place), book.find_comment(essay.cell, *place)
        except MissingEntry:
            problem = f"The gradebook has no answer of {student} to {essay.title} any more."
            raise NotFoundError(f"{problem} Load this page again.") from None

    def _answer_cells(self, essay: Essay, student: str) -> list[NotebookNode]:
        """Read an answer; where it cannot be shown, a cell says why."""
        try:
            cells = self._written(essay, student)
        except (OSError, ValueError) as error:
            text = f"The graded notebook cannot be read: {reason(error)}. Grade it again."
            return [new_markdown_cell(f"<pre>{escape(text)}</pre>", id="unreadable")]
        return cells or [new_markdown_cell("*There is no answer.*", id="none")]

    def _written(self, essay: Essay, student: str) -> list[NotebookNode]:
        folder = self.classroom.records.notebooks(student)
        cells = nbformat.read(folder / f"{essay.notebook}.ipynb", as_version=4).cells
        known = self._cells[essay.notebook]
        from_it_on = list(dropwhile(lambda cell: name_of(cell) != essay.cell, cells))
        if not known[essay.cell].task:
            return from_it_on[:1]
        # The answer to a task stands behind it: in cells for answers, and in cells of the student's own.
        graded = graded_by(known.values())
        behind = [(graded.get(str(name_of(cell))) == essay.cell, cell) for cell in from_it_on[1:]]
        last = max((at for at, (is_answer, _) in enumerate(behind, 1) if is_answer), default=0)
        own = takewhile(lambda one: name_of(one[1]) not in known, behind[last:])
        among = [one for one in behind[:last] if one[0] or name_of(one[1]) not in known]
        return [cell for _, cell in (*among, *own)]


def _version_of(cells: Sequence[NotebookNode], grade: Grade, comment: Comment) -> str:
    """Return another text whenever the answer, its mark or its comment is different."""
    answer = json.dumps([[cell.source, cell.get("outputs", [])] for cell in cells]).encode()
    return fingerprint({"": answer}, grade.manual_score, grade.needs_manual_grade, comment.manual_comment)


def points_from(text: str, possible: float) -> float | None:
    """Return the points that a person typed; None where nothing was. Raises InputError."""
    if not text.strip():
        return None
    try:
        points = float(text.strip().replace(",", "."))
    except ValueError:
        points = math.nan
    if not 0 <= points <= possible:
        rule = f"Points are a number from 0 to {possible:g}, such as {possible / 2:g}"
        raise InputError(f"{rule}; you typed {text!r}.")
    return points
