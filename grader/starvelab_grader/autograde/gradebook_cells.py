"""An assignment's cells in a gradebook that students have marks in: added, changed and dropped.

nbgrader adds and drops no cell once anybody has submitted. Here it is one transaction. Marks that a person
gave for what is dropped are written to a file first.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import (
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    GradeCell,
    MissingEntry,
    Notebook,
    SourceCell,
    SubmittedNotebook,
    TaskCell,
)

from ..files import write_whole
from .nbgrader_private import one_transaction

KINDS = ("grade_cells", "solution_cells", "task_cells", "source_cells")


@dataclass
class Replaced:
    """Changes of a gradebook: cells that give points, as `notebook/cell`, and marks."""

    added: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    points: dict[str, tuple[float, float]] = field(
        default_factory=dict
    )  # before and after, where they changed
    # Marks and comments that a person gave for what was dropped or gives no points any more, and their file.
    marks: list[dict[str, object]] = field(default_factory=list)
    marks_file: Path | None = None
    to_mark_again: int = 0  # marks by hand above the new maximum, which a person has to give again


def replace_assignment(new: Gradebook, book: Gradebook, assignment: str, marks_folder: Path) -> Replaced:
    """Make an assignment in a gradebook what it is in a new one; submissions and marks of other cells stay.

    Marks by hand that would be lost go into a file in the folder.
    """
    replaced = Replaced()
    wanted = {notebook.name: notebook for notebook in new.find_assignment(assignment).notebooks}
    with one_transaction(book):
        entry = book.update_or_create_assignment(assignment)
        for notebook in [one for one in entry.notebooks if one.name not in wanted]:
            _drop_notebook(book, notebook, replaced)
        for name, model in wanted.items():
            try:
                notebook = book.find_notebook(name, assignment)
            except MissingEntry:
                notebook = book.add_notebook(name, assignment)
                for submission in entry.submissions:
                    book.db.add(SubmittedNotebook(notebook=notebook, assignment=submission))
            notebook.kernelspec = model.kernelspec
            _replace_cells(book, notebook, model, replaced)
            book.db.flush()
        if replaced.marks:
            stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime())
            replaced.marks_file = marks_folder / f"{assignment}-{stamp}.json"
            write_whole(replaced.marks_file, json.dumps(replaced.marks, indent=1))
    return replaced


def _replace_cells(book: Gradebook, notebook: Notebook, model: Notebook, replaced: Replaced) -> None:
    place = (notebook.name, notebook.assignment.name)
    for kind in KINDS:
        there = {cell.name: cell for cell in getattr(notebook, kind)}
        wanted = {cell.name: cell for cell in getattr(model, kind)}
        for name in there.keys() - wanted.keys():
            _drop_cell(book, notebook, there[name], replaced)
        book.db.flush()
        for name, cell in wanted.items():
            update = getattr(book, f"update_or_create_{kind.removesuffix('s')}")
            before = getattr(there.get(name), "max_score", None)
            new = update(name, *place, **_fields(cell))
            if name not in there:
                _add_marks(book, notebook, new)
            if isinstance(new, GradeCell | TaskCell):
                where = f"{notebook.name}/{name}"
                if name not in there:
                    replaced.added.append(where)
                elif before != new.max_score:
                    replaced.points[where] = (float(before or 0), new.max_score)
                    _change_points(notebook, new, replaced)


def _fields(cell: BaseCell | SourceCell) -> dict[str, object]:
    return _values(cell, "max_score", "cell_type", "locked", "source", "checksum")


def _add_marks(book: Gradebook, notebook: Notebook, cell: BaseCell | SourceCell) -> None:
    """Give a new cell its place in each submission, as nbgrader does when a submission is made."""
    for submission in notebook.submissions:
        if isinstance(cell, GradeCell | TaskCell):
            book.db.add(Grade(cell_id=cell.id, notebook=submission))
        if type(cell).__name__ in ("SolutionCell", "TaskCell"):
            book.db.add(Comment(cell_id=cell.id, notebook=submission))


def _change_points(notebook: Notebook, cell: BaseCell, replaced: Replaced) -> None:
    for grade in cell.grades:
        if grade.manual_score is None or grade.manual_score <= cell.max_score:
            continue
        if cell.max_score == 0:
            replaced.marks.append(_mark(notebook, cell, grade))
            grade.manual_score, grade.extra_credit, grade.needs_manual_grade = None, None, False
        else:
            grade.needs_manual_grade = True
            replaced.to_mark_again += 1


def _mark(notebook: Notebook, cell: BaseCell, entry: Grade | Comment) -> dict[str, object]:
    place = {"student": entry.notebook.student.id, "notebook": notebook.name, "cell": cell.name}
    return place | _values(entry, "manual_score", "extra_credit", "manual_comment")


def _values(entry: object, *names: str) -> dict[str, object]:
    return {name: getattr(entry, name) for name in names if getattr(entry, name, None) is not None}


def _drop_cell(book: Gradebook, notebook: Notebook, cell: BaseCell | SourceCell, replaced: Replaced) -> None:
    for entry in [*getattr(cell, "grades", []), *getattr(cell, "comments", [])]:
        mark = _mark(notebook, cell, entry)
        if len(mark) > 3:
            replaced.marks.append(mark)
        book.db.delete(entry)
    if isinstance(cell, GradeCell | TaskCell):
        replaced.dropped.append(f"{notebook.name}/{cell.name}")
    book.db.delete(cell)


def _drop_notebook(book: Gradebook, notebook: Notebook, replaced: Replaced) -> None:
    for cell in [cell for kind in KINDS for cell in getattr(notebook, kind)]:
        _drop_cell(book, notebook, cell, replaced)
    book.db.flush()
    for entry in (*notebook.submissions, notebook):
        book.db.delete(entry)
        book.db.flush()
