"""The essays of an assignment, which a person marks, and the answers to them in the gradebook."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.api import BaseCell, Comment, Grade, Gradebook, MissingEntry, SubmittedNotebook

from ..autograde.definition import Definition
from ..errors import GraderError
from ..fingerprints import fingerprint
from ..report.marks import names_of, submitted_notebooks
from ..report.pages import cells_as_html
from ..submissions.exercises import HEADING, ModelAnswer, titles_of
from ..submissions.reference import name_of


class NothingToMarkError(GraderError, LookupError):
    """No person has to read anything, or there is nobody yet whose answers could be read."""


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


def essays_of(definition: Definition) -> Iterator[Essay]:
    """The cells of an assignment that a person marks, in the order of the notebooks."""
    for notebook, cells in definition.cells.items():
        content = definition.source[f"{notebook}.ipynb"]
        titles = titles_of(content, cells)
        written = nbformat.reads(content.decode(), as_version=4).cells
        position = {name_of(cell): number for number, cell in enumerate(written)}
        for cell in cells:
            if ((cell.grade and cell.solution) or cell.task) and cell.points > 0:
                source = written[position[cell.name]].source if cell.name in position else cell.source
                model = ModelAnswer.of(source, cell.cell_type)
                question = _question(written[: position.get(cell.name, 0)])
                yield Essay(
                    notebook=notebook,
                    cell=cell.name,
                    title=titles[cell.name],
                    points=cell.points,
                    question=_html(f"{question}\n\n{model.text}" if cell.task else question),
                    scheme=_html(model.scheme),
                    solution="" if cell.task else _html(model.text, cell.cell_type),
                    in_code=cell.cell_type == "code",
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


def answers_in(book: Gradebook, assignment: str, essay: Essay) -> Iterator[Answer]:
    """Everybody's answers to an essay, in a random order that is always the same."""
    notebook = book.find_notebook(essay.notebook, assignment)
    cells = [*notebook.solution_cells, *notebook.task_cells]
    # The gradebook keeps a comment with the answer cell, and points with the graded cell of the same name.
    commented = Comment.cell_id.in_([cell.id for cell in cells if cell.name == essay.cell])
    query = (
        submitted_notebooks(book, assignment)
        .join(Grade, Grade.notebook_id == SubmittedNotebook.id)
        .join(BaseCell, Grade.cell_id == BaseCell.id)
        .outerjoin(Comment, (Comment.notebook_id == SubmittedNotebook.id) & commented)
        .where(SubmittedNotebook.notebook_id == notebook.id, BaseCell.name == essay.cell)
        .add_columns(Grade.manual_score, Grade.auto_score, Grade.needs_manual_grade, Comment.manual_comment)
    )

    def random_key(row: Sequence[object]) -> bytes:
        place = [assignment, essay.notebook, essay.cell, row[0]]
        return hashlib.sha256(json.dumps(place).encode()).digest()

    names = names_of(book)
    for number, row in enumerate(sorted(book.db.execute(query), key=random_key), start=1):
        student, _, points, by_test, waits, comment = row
        yield Answer(student, names.get(student, ""), number, points, by_test, bool(waits), comment or "")


def entry_of(book: Gradebook, assignment: str, essay: Essay, student: str) -> tuple[Grade, Comment]:
    """The points of an answer, and the comment on it. Raises NothingToMarkError."""
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
