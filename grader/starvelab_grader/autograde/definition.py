"""What grading needs of an instructor's course, as one object that can be sent to any worker.

It also puts an assignment's cells into a gradebook that students have marks in. nbgrader adds and drops no
cell once anybody has submitted. Here it is one transaction, and marks of a person are written to a file.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Self, TypeAlias

from nbformat import NotebookNode
from nbgrader.api import Comment, Grade, Gradebook, MissingEntry, Notebook, SubmittedNotebook
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from ..errors import NotFoundError
from ..files import VERSION, fingerprint, package_fingerprint, write_whole
from ..submissions import reference
from ..submissions.reference import GradedNotebook, ReferenceCell, name_of, parse_cells
from ..text import listed
from .nbgrader_private import one_transaction, without_hidden_tests

Cells: TypeAlias = Mapping[str, list[ReferenceCell]]  # by notebook
# Parts of an instructor's configuration that change no grade; some hold functions, which cannot travel.
NOT_FOR_GRADING = {
    "Application", "AutograderApp", "Canvas", "ClearSolutions", "CollectApp", "CourseDirectory", "Exchange",
    "ExportPlugin", "GenerateAssignment", "FeedbackApp", "GenerateFeedback", "GradeApp", "HTMLExporter",
    "JupyterApp", "MarkApp", "Moodle", "NbGrader", "ReleaseApp", "ReturnApp", "RunApp",
}  # fmt: skip


@dataclass(frozen=True)
class Definition:
    """An assignment, without any student."""

    assignment: str
    cells: Cells  # the instructor's
    source: Mapping[str, bytes]  # the instructor's notebooks and files
    settings: Config

    @classmethod
    def of(cls, course: CourseDirectory, config: Config, assignment: str, folder: Path | None = None) -> Self:
        """Read it from a course and the instructor's notebooks in a folder, by default those released."""
        with Gradebook(course.db_url, course.course_id) as book:
            try:
                names = sorted(one.name for one in book.find_assignment(assignment).notebooks)
            except MissingEntry:
                known = sorted(one.name for one in book.assignments)
                raise NotFoundError(
                    f"The gradebook has no assignment {assignment!r}; it has: {listed(known)}. "
                    f"Release it first: starvelab-grader release {assignment}"
                ) from None
            cells = {name: reference_cells(book, name, assignment) for name in names}
        folder = folder or _folder_of_source(course, assignment, cells)
        for name in names:
            cells[name] = in_order(cells[name], reference.read_reference(course, assignment, name, folder))
        # Commands leave empty sections. Runners belong to one process, and cannot be sent.
        settings = Config({key: each for key, each in config.items() if each and key not in NOT_FOR_GRADING})
        own = settings.pop("IsolatedExecute", {})
        if own := Config({key: each for key, each in own.items() if key != "runners"}):
            settings.IsolatedExecute = own
        return cls(assignment, cells, reference.read_source(course, folder), settings)

    @property
    def asked(self) -> dict[str, set[str]]:
        """Return the notebooks that are asked for, each with the names of its cells."""
        return {name: {cell.name for cell in cells} for name, cells in self.cells.items()}

    @cached_property
    def inputs(self) -> dict[str, dict[str, str]]:
        """Return, by notebook, fingerprints of what its grade depends on besides the submission."""
        beside = {path: content for path, content in self.source.items() if not path.endswith(".ipynb")}
        # What JSON cannot hold has a name, which is the same in the next process.
        settings = json.dumps(
            self.settings, sort_keys=True, default=lambda one: getattr(one, "__qualname__", str(type(one)))
        )
        shared = {
            "packages": fingerprint({}, package_fingerprint(), VERSION, version("nbgrader")),
            "settings": fingerprint({}, settings),
        }
        return {
            name: {"assignment": fingerprint(beside, list(map(asdict, cells)), self._written(name))} | shared
            for name, cells in self.cells.items()
        }

    @property
    def notebooks(self) -> list[GradedNotebook]:
        """Read all notebooks as students have them, in their order."""
        source = self.source
        return [GradedNotebook.of(name, each, source[f"{name}.ipynb"]) for name, each in self.cells.items()]

    @property
    def fingerprint(self) -> str:
        """Return another one where anything is different that could change a grade."""
        return fingerprint({}, self.inputs)

    def _written(self, notebook: str) -> list[tuple[str, dict[str, object]]]:
        """The instructor's code in its order; without what changes no grade, such as text and figures."""
        cells = parse_cells(self.source[f"{notebook}.ipynb"]) if f"{notebook}.ipynb" in self.source else ()
        code = [one for one in cells if one.cell_type == "code" and name_of(one)]
        return [(one.source, one.metadata["nbgrader"]) for one in code]


def in_order(cells: Iterable[ReferenceCell], written: Iterable[NotebookNode]) -> list[ReferenceCell]:
    """Return cells in the order in which the instructor wrote them, and any others last."""
    rank = {name: number for number, name in enumerate(reference.names_in_order(written))}
    return sorted(cells, key=lambda cell: rank.get(cell.name, len(rank)))


def reference_cells(gradebook: Gradebook, notebook: str, assignment: str) -> list[ReferenceCell]:
    """Return the instructor's cells of a notebook, in no order."""
    entry = gradebook.find_notebook(notebook, assignment)
    points = {cell.name: cell.max_score for cell in (*entry.grade_cells, *entry.task_cells)}
    kinds = (entry.grade_cells, entry.solution_cells, entry.task_cells)
    grades, answers, tasks = ({cell.name for cell in each} for each in kinds)
    return [
        ReferenceCell(
            one.name, one.cell_type, one.source, reference.SCHEME.sub("", without_hidden_tests(one.source)),
            one.checksum, one.locked, grade=one.name in grades and one.name not in tasks,
            solution=one.name in answers, task=one.name in tasks, points=points.get(one.name, 0.0),
        )
        for one in entry.source_cells
    ]  # fmt: skip


def _folder_of_source(course: CourseDirectory, assignment: str, cells: Cells) -> Path:
    """The notebooks that were released, unless nbgrader itself has released others since."""
    released = reference.released_source(course, assignment)
    there = {
        path.stem: {name_of(cell): cell.source for cell in parse_cells(path.read_bytes())}
        for path in released.glob("*.ipynb")
    }
    if there.keys() == cells.keys() and all(
        (written := there[name].get(cell.name, "")) == cell.source or "AUTOTEST" in written
        for name, each in cells.items()
        for cell in each
        if cell.grade and not cell.solution
    ):
        return released
    return Path(course.format_path(course.source_directory, ".", assignment))


# --- an assignment's cells in a gradebook: added, changed and dropped -------------------------------------
# The kinds of cells, each with the entries that every submission has for such a cell.
KINDS: dict[str, tuple[type[Grade | Comment], ...]] = {
    "grade_cells": (Grade,), "solution_cells": (Comment,), "task_cells": (Grade, Comment), "source_cells": (),
}  # fmt: skip
FIELDS = ("max_score", "cell_type", "locked", "source", "checksum")
MARKS = ("manual_score", "extra_credit", "manual_comment")


@dataclass
class Replaced:
    """Changes of a gradebook: cells that give points, as `notebook/cell`, and marks."""

    dropped: list[str] = field(default_factory=list)
    # Before and after, where they changed.
    points: dict[str, tuple[float, float]] = field(default_factory=dict)
    # Marks and comments that a person gave for what was dropped or gives no points any more, and their file.
    marks: list[dict[str, object]] = field(default_factory=list)
    marks_file: Path | None = None
    to_mark_again: int = 0  # marks by hand above the new maximum, which a person has to give again


def replace_assignment(new: Gradebook, book: Gradebook, assignment: str, marks_folder: Path) -> Replaced:
    """Make an assignment in a gradebook what it is in a new one; marks by hand that go are put on file."""
    replaced = Replaced()
    wanted = {notebook.name: notebook for notebook in new.find_assignment(assignment).notebooks}
    with one_transaction(book):
        entry = book.update_or_create_assignment(assignment)
        there = {notebook.name: notebook for notebook in entry.notebooks}
        for notebook in [one for name, one in there.items() if name not in wanted]:
            _replace_cells(book, notebook, None, replaced)
            book.db.flush()
            for one in (*notebook.submissions, notebook):
                book.db.delete(one)
                book.db.flush()
        for name, model in wanted.items():
            if (notebook := there.get(name)) is None:
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


def _replace_cells(book: Gradebook, notebook: Notebook, model: Notebook | None, replaced: Replaced) -> None:
    """Make the cells of a notebook those of another one; of none, drop them all."""
    for kind, entries in KINDS.items():
        there = {cell.name: cell for cell in getattr(notebook, kind)}
        wanted = {cell.name: cell for cell in getattr(model, kind, ())}
        for name in there.keys() - wanted.keys():
            for entry in [*getattr(there[name], "grades", ()), *getattr(there[name], "comments", ())]:
                if _values(entry, MARKS):
                    replaced.marks.append(_mark(entry))
                book.db.delete(entry)
            if Grade in entries:
                replaced.dropped.append(f"{notebook.name}/{name}")
            book.db.delete(there[name])
        book.db.flush()
        for name, cell in wanted.items():
            before = getattr(there.get(name), "max_score", None)
            update = getattr(book, f"update_or_create_{kind.removesuffix('s')}")
            new = update(name, notebook.name, notebook.assignment.name, **_values(cell, FIELDS))
            if name not in there:
                # As nbgrader does when a submission is made.
                for submission in notebook.submissions:
                    book.db.add_all([entry(cell_id=new.id, notebook=submission) for entry in entries])
            elif Grade in entries and before != new.max_score:
                replaced.points[f"{notebook.name}/{name}"] = (float(before or 0), new.max_score)
                _change_points(new.grades, new.max_score, replaced)


def _change_points(grades: Sequence[Grade], max_score: float, replaced: Replaced) -> None:
    for grade in grades:
        if (grade.manual_score or 0) <= max_score:
            continue
        if max_score == 0:
            replaced.marks.append(_mark(grade))
            grade.manual_score, grade.extra_credit, grade.needs_manual_grade = None, None, False
        else:
            grade.needs_manual_grade = True
            replaced.to_mark_again += 1


def _mark(entry: Grade | Comment) -> dict[str, object]:
    place = {"student": entry.notebook.student.id, "notebook": entry.notebook.name, "cell": entry.name}
    return place | _values(entry, MARKS)


def _values(entry: object, names: Sequence[str]) -> dict[str, object]:
    return {name: getattr(entry, name) for name in names if getattr(entry, name, None) is not None}
