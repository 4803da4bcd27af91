"""The instructor's own notebook: the order of its cells, and which names it defines.

A student may move, copy or delete cells. Only the instructor's notebook decides what the checks run, in which
order, and which names they take from the student.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from functools import lru_cache
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import find_all_files, is_grade, is_locked, is_solution

from .names import defined, loaded


def released_source(course: CourseDirectory, assignment: str) -> Path:
    """Where `starvelab release` keeps the instructor's notebooks as they were released.

    A class is graded with these, so that work on the next year's assignment does not change this year's
    grades.
    """
    autograded: Path = Path(course.root) / course.autograded_directory
    return autograded.parent / "released" / assignment


def read_files_beside(course: CourseDirectory, assignment: str) -> dict[str, bytes]:
    """The instructor's files beside the notebooks, by their paths: modules and data."""
    folder = released_source(course, assignment)
    if not folder.is_dir():
        folder = Path(course.format_path(course.source_directory, ".", assignment))
    paths = [Path(path) for path in find_all_files(str(folder), course.ignore)]
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(paths)
        if path.suffix != ".ipynb"
    }


def read_reference(
    course: CourseDirectory,
    assignment: str,
    notebook: str,
    folder: Path | None = None,
    locked: Set[str] | None = None,
) -> tuple[NotebookNode, ...]:
    """The cells that the instructor wrote.

    Parameters
    ----------
    folder : Path, optional
        Where to look first; by default what `starvelab release` keeps.
    locked : set of str, optional
        The names of the locked code cells that the gradebook knows. What `starvelab release` keeps counts
        only if it has these: nbgrader itself may have given out others since.

    Returns
    -------
    tuple of NotebookNode
        Those that students were given, where there is no notebook of the instructor's; empty where there is
        neither.
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
    """The cells of a notebook; parsed once for a class, and not for each of its students."""
    return tuple(nbformat.reads(content.decode(), as_version=4).cells)


def name_of(cell: NotebookNode) -> str | None:
    """The grade_id of a cell, if it has one."""
    name = cell.metadata.get("nbgrader", {}).get("grade_id")
    return None if name is None else str(name)


def names_in_order(cells: Iterable[NotebookNode]) -> list[str]:
    """The grade_ids of cells."""
    return [name for name in map(name_of, cells) if name is not None]


def is_test(cell: NotebookNode) -> bool:
    """Whether a code cell is scored by what it does."""
    return bool(cell.cell_type == "code" and is_grade(cell) and not is_solution(cell))


def is_check_side(cell: NotebookNode) -> bool:
    """Whether a cell is the instructor's to run: a test, or locked code such as a set-up."""
    return is_test(cell) or bool(cell.cell_type == "code" and is_locked(cell) and not is_solution(cell))


class ReferenceNotebook:
    """The locked code of a notebook in the instructor's order, and who defines which name.

    Parameters
    ----------
    written : sequence of NotebookNode
        The instructor's notebook; empty where there is none.
    submitted : sequence of NotebookNode
        The notebook that is graded, in which the locked cells are the instructor's.
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
        """Whether a cell is one of the locked ones."""
        return is_check_side(cell) and name_of(cell) in self.definitions

    def before(self, cell: str) -> list[str]:
        """Names of the locked cells that stand before a locked one."""
        return self.locked[: self.locked.index(cell)]

    def asked_for(self, cell: str) -> tuple[set[str], set[str]]:
        """The names that a locked cell may take from a student.

        Returns
        -------
        answers : set of str
            Those that the instructor's answers define. Code that a check calls may use them too, so a test
            is given all of them.
        others : set of str
            Those that the cell uses and no cell of the instructor's defines.
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
