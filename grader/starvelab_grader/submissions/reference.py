"""The instructor's own notebook: its cells, their order, and which names they define.

A student may move, copy or delete cells. Only the instructor's notebook decides what the checks run, in which
order, and which names they take from the student.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import is_grade, is_locked, is_solution

from .names import defined, loaded

SCHEMA = 3  # the version of nbgrader's metadata


def released_source(course: CourseDirectory, assignment: str) -> Path:
    """Return where `starvelab-grader release` keeps the instructor's notebooks as they were released.

    A class is graded with these, so that work on the next year's assignment does not change this year's
    grades.
    """
    autograded: Path = Path(course.root) / course.autograded_directory
    return autograded.parent / "released" / assignment


def read_reference(
    course: CourseDirectory,
    assignment: str,
    notebook: str,
    folder: Path | None = None,
    locked: Set[str] | None = None,
) -> tuple[NotebookNode, ...]:
    """Return the cells that the instructor wrote, or that students were given; none where there are neither.

    First comes what stands in the folder, by default what `starvelab-grader release` keeps. It counts only if
    it has the locked code cells that the gradebook knows: nbgrader itself may have given out others since.
    """
    source, released = (
        _cells_of(Path(course.format_path(each, ".", assignment)) / f"{notebook}.ipynb")
        for each in (course.source_directory, course.release_directory)
    )
    first = _cells_of((folder or released_source(course, assignment)) / f"{notebook}.ipynb")
    if locked is not None and {name_of(cell) for cell in first if is_check_side(cell)} != locked:
        first = ()
    return first or source or released


def _cells_of(path: Path) -> tuple[NotebookNode, ...]:
    return parse_cells(path.read_bytes()) if path.is_file() else ()


@lru_cache(maxsize=64)
def parse_cells(content: bytes) -> tuple[NotebookNode, ...]:
    """Return the cells of a notebook; parsed once for a class, and not for each of its students."""
    return tuple(nbformat.reads(content.decode(), as_version=4).cells)


def name_of(cell: NotebookNode) -> str | None:
    """Return the grade_id of a cell, if it has one."""
    name = cell.metadata.get("nbgrader", {}).get("grade_id")
    return None if name is None else str(name)


def names_in_order(cells: Iterable[NotebookNode]) -> list[str]:
    """Return the grade_ids of cells."""
    return [name for name in map(name_of, cells) if name is not None]


def is_test(cell: NotebookNode) -> bool:
    """True if a code cell is scored by what it does."""
    return bool(cell.cell_type == "code" and is_grade(cell) and not is_solution(cell))


def is_check_side(cell: NotebookNode) -> bool:
    """True if a cell is the instructor's to run: a test, or locked code such as a set-up."""
    return is_test(cell) or bool(cell.cell_type == "code" and is_locked(cell) and not is_solution(cell))


@dataclass(frozen=True)
class ReferenceCell:
    """A cell of the instructor's notebook, as the gradebook keeps it, with nbgrader's flags."""

    name: str  # its grade_id
    cell_type: str
    source: str
    released: str  # the source that students were given: without hidden checks
    checksum: str
    locked: bool
    grade: bool
    solution: bool
    task: bool = False
    points: float = 0.0

    def metadata(self) -> dict[str, object]:
        """Return what nbgrader wants to find in the cell."""
        flags = ("grade", "locked", "solution", "task", "cell_type", "checksum")
        values = {name: getattr(self, name) for name in flags}
        metadata = values | {"grade_id": self.name, "schema_version": SCHEMA}
        return metadata | ({"points": self.points} if self.grade or self.task else {})

    @property
    def is_check_side(self) -> bool:
        """True if it is the instructor's to run: a test, or locked code such as a set-up."""
        return self.cell_type == "code" and not self.solution and (self.grade or self.locked)

    @property
    def is_test(self) -> bool:
        """True if it is scored by what it does."""
        return self.cell_type == "code" and self.grade and not self.solution

    @property
    def answered(self) -> bool:
        """True if a student is to write in it."""
        return self.solution and not self.locked


class ReferenceNotebook:
    """The locked code of a notebook in the instructor's order, and who defines which name.

    Both the instructor's notebook, if there is one, and the one that is graded hold the instructor's locked
    cells.
    """

    def __init__(self, written: Sequence[NotebookNode], submitted: Sequence[NotebookNode]) -> None:
        restored = {
            name: cell for cell in submitted if is_check_side(cell) and (name := name_of(cell)) is not None
        }
        cells = {name: restored.get(name, cell) for cell in written if (name := name_of(cell))}
        # A test that was renamed since the release counts. A set-up cell that the instructor's notebook lacks
        # does not.
        unknown = {name: cell for name, cell in restored.items() if name not in cells}
        cells |= {name: cell for name, cell in unknown.items() if is_test(cell) or not written}
        self.cells = {name: cell for name, cell in cells.items() if cell.cell_type == "code"}
        self.locked = [name for name, cell in self.cells.items() if is_check_side(cell)]
        # A name that an answer only imports is a tool, and no answer.
        self.answers = {
            name: defined([cell.source], imports=False)
            for name, cell in self.cells.items()
            if is_solution(cell)
        }
        self.definitions = {name: defined([self.cells[name].source]) for name in self.locked}

    def is_locked(self, cell: NotebookNode) -> bool:
        """True if a cell is one of the locked ones."""
        return is_check_side(cell) and name_of(cell) in self.definitions

    def before(self, cell: str) -> list[str]:
        """Return the names of the locked cells that stand before a locked one."""
        return self.locked[: self.locked.index(cell)]

    def asked_for(self, cell: str) -> tuple[set[str], set[str]]:
        """Return the names that a locked cell may take from a student.

        First those that the instructor's answers define: code that a check calls may use them too, so a test
        is given all of them. Then those that the cell uses and no cell of the instructor's defines.
        """
        used = loaded(self.cells[cell].source)
        reserved = self._reserved(cell)
        answers = set[str]().union(*self.answers.values()) - reserved
        if not is_test(self.cells[cell]):
            answers &= used
        return answers, used - answers - reserved

    def _reserved(self, cell: str) -> set[str]:
        """Names that a locked cell defines, wherever it stands: they are never taken from a student.

        A test's name for a result may be the name of a later answer. From that answer on it is the student's.
        """
        reserved = set[str]().union(*self.definitions.values())
        for name, source in self.cells.items():
            if name == cell:
                break
            if name in self.answers:
                reserved -= self.answers[name]
            elif is_test(source):
                reserved |= self.definitions[name]
        set_up = (self.definitions[name] for name in self.locked if not is_test(self.cells[name]))
        return reserved.union(*set_up)
