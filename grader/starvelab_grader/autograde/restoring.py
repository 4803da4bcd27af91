"""nbgrader's first step of grading: the structure of a notebook, restored from the cells in the gradebook."""

from __future__ import annotations

from collections.abc import Sequence

import nbformat
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Dict, List, Unicode

from ..submissions import SubmissionWarning
from ..submissions.reading import read_notebook, restore
from ..submissions.reference import ReferenceCell, name_of, names_in_order, read_reference
from .nbgrader_private import without_hidden_tests

WARNINGS = "starvelab_warnings"
REJECTED = "starvelab_rejected"
NOTE_ID = "about-your-submission"


class RestoreStructure(NbGraderPreprocessor):
    """Puts the instructor's cells back, keeps the answers, and lists on top of the page what it changed."""

    known_warnings = Dict(
        value_trait=List(),
        key_trait=Unicode(),
        help="Known warnings, by notebook: pairs of a text and of whether a person should look.",
    ).tag(config=True)
    rejected = Dict(
        value_trait=List(),
        key_trait=Unicode(),
        help="Notebooks that earn nothing: the reason in words, and whether a person should look.",
    ).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Make the notebook anew from its sources and from the instructor's cells."""
        names = resources["nbgrader"]
        notebook, assignment = names["notebook"], names["assignment"]
        warnings = [SubmissionWarning(*each) for each in self.known_warnings.get(notebook, [])]
        nb, more = read_notebook(nbformat.writes(nb).encode())
        with Gradebook(names["db_url"]) as gradebook:
            cells = reference_cells(gradebook, notebook, assignment)
            locked = {cell.name for cell in cells if cell.is_check_side}
            written = read_reference(CourseDirectory(parent=self), assignment, notebook, locked=locked)
            cells = reference_cells(gradebook, notebook, assignment, names_in_order(written))
            outline = [name_of(cell) or cell.source for cell in written]
        more += restore(nb, cells, outline)
        if notebook in self.rejected:
            more = [SubmissionWarning(*self.rejected[notebook])]
            nb.metadata[REJECTED] = more[0].text
        warnings += more
        nb.metadata[WARNINGS] = []
        add_warnings(nb, warnings)
        return nb, resources


def add_warnings(nb: NotebookNode, warnings: Sequence[SubmissionWarning]) -> None:
    """Write warnings on top of a notebook's page, and into the metadata, which become its record."""
    if not warnings:
        return
    nb.metadata[WARNINGS] = [*nb.metadata.get(WARNINGS, []), *([one.text, one.person] for one in warnings)]
    if not nb.cells or nb.cells[0].id != NOTE_ID:
        nb.cells.insert(0, new_markdown_cell("**About your submission**\n", id=NOTE_ID))
    nb.cells[0].source += "".join(f"\n- {one.text}" for one in warnings)


def reference_cells(
    gradebook: Gradebook, notebook: str, assignment: str, order: Sequence[str] = ()
) -> list[ReferenceCell]:
    """Return the instructor's cells of a notebook in the order of these names, and any others last."""
    entry = gradebook.find_notebook(notebook, assignment)
    points = {cell.name: cell.max_score for cell in (*entry.grade_cells, *entry.task_cells)}
    answers = {cell.name for cell in entry.solution_cells}
    tasks = {cell.name for cell in entry.task_cells}
    rank = {name: number for number, name in enumerate(order)}
    return [
        ReferenceCell(
            name=cell.name,
            cell_type=cell.cell_type,
            source=cell.source,
            released=without_hidden_tests(cell.source),
            checksum=cell.checksum,
            locked=cell.locked,
            grade=cell.name in points and cell.name not in tasks,
            solution=cell.name in answers,
            task=cell.name in tasks,
            points=points.get(cell.name, 0.0),
        )
        for cell in sorted(entry.source_cells, key=lambda cell: rank.get(cell.name, len(rank)))
    ]
