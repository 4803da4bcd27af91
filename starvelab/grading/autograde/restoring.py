"""nbgrader's first step of grading: the structure of a notebook, mended by the gradebook's cells."""

from __future__ import annotations

from collections.abc import Sequence

import nbformat
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import ClearHiddenTests, NbGraderPreprocessor
from traitlets import Dict, List, Unicode

from ..submissions.notebooks import Remark, TrueCell, mend, read
from ..submissions.reference import names_in_order, read_reference

REMARKS = "starvelab_remarks"
REFUSED = "starvelab_refused"
NOTE = "about-what-you-handed-in"


class MendStructure(NbGraderPreprocessor):
    """Puts the instructor's cells back, keeps the answers, and says on top of the page what was odd."""

    known = Dict(
        value_trait=List(),
        key_trait=Unicode(),
        help="What is known already, by notebook: pairs of a remark and of whether a person should look.",
    ).tag(config=True)
    refused = Dict(
        value_trait=List(),
        key_trait=Unicode(),
        help="Notebooks that earn nothing: the reason in words, and whether a person should look.",
    ).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Make the notebook anew of its sources and of the instructor's cells."""
        told = resources["nbgrader"]
        remarks = [Remark(*one) for one in self.known.get(told["notebook"], [])]
        nb, more = read(nbformat.writes(nb).encode())
        place = (told["assignment"], told["notebook"])
        with Gradebook(told["db_url"]) as gradebook:
            locked = {cell.name for cell in truth_of(gradebook, place[1], place[0]) if cell.is_check_side}
            written = read_reference(CourseDirectory(parent=self), *place, locked=locked)
            truth = truth_of(gradebook, place[1], place[0], names_in_order(written))
        if told["notebook"] in self.refused:
            reason = Remark(*self.refused[told["notebook"]])
            nb.metadata[REFUSED] = reason.text
            mend(nb, truth)
            remarks.append(reason)
        else:
            remarks += more + mend(nb, truth)
        nb.metadata[REMARKS] = []
        add_remarks(nb, remarks)
        return nb, resources


def add_remarks(nb: NotebookNode, remarks: Sequence[Remark]) -> None:
    """Say something about a submission: on top of its page, and in the metadata that become its record."""
    if not remarks:
        return
    nb.metadata[REMARKS] = [*nb.metadata.get(REMARKS, []), *([one.text, one.person] for one in remarks)]
    if not nb.cells or nb.cells[0].id != NOTE:
        nb.cells.insert(0, new_markdown_cell("**About what you handed in**\n", id=NOTE))
    nb.cells[0].source += "".join(f"\n- {one.text}" for one in remarks)


def truth_of(
    gradebook: Gradebook, notebook: str, assignment: str, order: Sequence[str] = ()
) -> list[TrueCell]:
    """The instructor's cells of a notebook.

    Parameters
    ----------
    order : sequence of str
        The names of cells in the order of the instructor's notebook: a database promises none. Cells that it
        does not name come last.
    """
    told = gradebook.find_notebook(notebook, assignment)
    points = {cell.name: cell.max_score for cell in (*told.grade_cells, *told.task_cells)}
    answers = {cell.name for cell in told.solution_cells}
    tasks = {cell.name for cell in told.task_cells}
    rank = {name: number for number, name in enumerate(order)}
    return [
        TrueCell(
            name=cell.name,
            cell_type=cell.cell_type,
            source=cell.source,
            released=_released(cell.source),
            checksum=cell.checksum,
            locked=cell.locked,
            grade=cell.name in points and cell.name not in tasks,
            solution=cell.name in answers,
            task=cell.name in tasks,
            points=points.get(cell.name, 0.0),
        )
        for cell in sorted(told.source_cells, key=lambda cell: rank.get(cell.name, len(rank)))
    ]


def _released(source: str) -> str:
    cell = new_code_cell(source)
    ClearHiddenTests()._remove_hidden_test_region(cell)
    return cell.source
