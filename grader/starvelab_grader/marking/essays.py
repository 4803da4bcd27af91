"""The essays of an assignment: the cells that a person marks, and what that person needs to know of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from ..autograde.definition import Definition
from ..report.pages import cells_as_html
from ..submissions.exercises import HEADING, ModelAnswer, titles_of
from ..submissions.reference import name_of


@dataclass(frozen=True)
class Essay:
    """A cell that a person marks.

    Attributes
    ----------
    notebook, cell, title : str
    points : float
        The maximum.
    question, scheme, solution : str
        What was asked, the marking scheme and the instructor's own answer, as HTML; empty where there is
        none.
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
    source = source.strip()
    if not source:
        return ""
    new_cell = new_code_cell if cell_type == "code" else new_markdown_cell
    return cells_as_html([new_cell(source, id="shown")])
