"""What grading needs of an instructor's course, as one object that can be sent to any worker."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import find_all_files
from traitlets.config import Config

from ..errors import GraderError
from ..fingerprints import VERSION, fingerprint, package_fingerprint
from ..submissions.reference import (
    ReferenceCell,
    name_of,
    names_in_order,
    parse_cells,
    read_reference,
    released_source,
)
from .gradebook_cells import replace_assignment
from .nbgrader_private import make_gradebook, schema_of
from .restoring import reference_cells

# Parts of an instructor's configuration that change no grade; some hold functions, which cannot travel.
NOT_FOR_GRADING = {
    "Application", "ClearSolutions", "CourseDirectory", "Exchange", "ExportPlugin", "GenerateAssignment",
    "FeedbackApp", "GenerateFeedback", "GradeApp", "HTMLExporter", "JupyterApp", "NbGrader",
}  # fmt: skip


class NotReleasedError(GraderError, LookupError):
    """The gradebook does not know the assignment."""


@dataclass(frozen=True)
class Definition:
    """An assignment, without any student."""

    assignment: str
    cells: Mapping[str, list[ReferenceCell]]  # the instructor's, of each notebook
    source: Mapping[str, bytes]  # the instructor's notebooks and files
    settings: Config
    gradebook: bytes  # an SQLite gradebook that holds the assignment

    @classmethod
    def of(
        cls, course: CourseDirectory, config: Config, assignment: str, folder: Path | None = None
    ) -> Definition:
        """Read it from a course, with the instructor's notebooks in a folder, by default those released.

        A `NotReleasedError` says that the gradebook does not know the assignment.
        """
        with closing(Gradebook(course.db_url, course.course_id)) as book:
            try:
                names = sorted(one.name for one in book.find_assignment(assignment).notebooks)
            except MissingEntry:
                known = ", ".join(sorted(one.name for one in book.assignments)) or "none"
                raise NotReleasedError(
                    f"The gradebook has no assignment {assignment!r}; it has: {known}. "
                    f"Release it first: starvelab-grader release {assignment}"
                ) from None
            if folder is None:
                known_cells = {name: reference_cells(book, name, assignment) for name in names}
                folder = _folder_of_source(course, assignment, known_cells)
            orders = {
                name: names_in_order(read_reference(course, assignment, name, folder)) for name in names
            }
            cells = {name: reference_cells(book, name, assignment, orders[name]) for name in names}
            gradebook = _gradebook(book, assignment)
        source = {
            str(Path(path).relative_to(folder)): Path(path).read_bytes()
            for path in sorted(find_all_files(str(folder), course.ignore))
        }
        return cls(assignment, cells, source, _settings(config), gradebook)

    @property
    def asked(self) -> dict[str, set[str]]:
        """Return the notebooks that are asked for, each with the names of its cells."""
        return {name: {cell.name for cell in cells} for name, cells in self.cells.items()}

    @cached_property
    def inputs(self) -> dict[str, dict[str, str]]:
        """Return, by notebook, fingerprints of what its grade depends on besides the submission."""
        beside = {path: content for path, content in self.source.items() if not path.endswith(".ipynb")}
        settings = json.dumps(self.settings, sort_keys=True, default=_name_of_value)
        shared = {
            "packages": fingerprint({}, package_fingerprint(), VERSION, version("nbgrader")),
            "settings": fingerprint({}, settings),
        }
        return {
            name: {"assignment": fingerprint(beside, [asdict(one) for one in cells], self._written(name))}
            | shared
            for name, cells in self.cells.items()
        }

    @property
    def fingerprint(self) -> str:
        """Return another one where anything is different that could change a grade."""
        return fingerprint({}, self.inputs)

    def _written(self, notebook: str) -> list[tuple[str, dict[str, object]]]:
        """The instructor's code in its order; without what changes no grade, such as text and figures."""
        content = self.source.get(f"{notebook}.ipynb")
        cells = parse_cells(content) if content else ()
        return [
            (cell.source, cell.metadata["nbgrader"])
            for cell in cells
            if cell.cell_type == "code" and name_of(cell)
        ]


def _folder_of_source(
    course: CourseDirectory, assignment: str, cells: Mapping[str, list[ReferenceCell]]
) -> Path:
    """The notebooks that were released, unless nbgrader itself has released others since."""
    released = released_source(course, assignment)
    if {path.stem for path in released.glob("*.ipynb")} == set(cells) and all(
        _holds(released / f"{name}.ipynb", each) for name, each in cells.items()
    ):
        return released
    return Path(course.format_path(course.source_directory, ".", assignment))


def _holds(path: Path, cells: list[ReferenceCell]) -> bool:
    """True if a notebook has the tests that the gradebook knows."""
    there = {name_of(cell): cell.source for cell in parse_cells(path.read_bytes())}
    return all(there.get(cell.name) == cell.source for cell in cells if cell.grade and not cell.solution)


def _settings(config: Config) -> Config:
    """The settings of a course that can change a grade; runners belong to one process, and cannot be sent."""
    # Commands leave empty sections.
    settings = Config({key: each for key, each in config.items() if each and key not in NOT_FOR_GRADING})
    if own := {key: each for key, each in settings.pop("IsolatedExecute", {}).items() if key != "runners"}:
        settings.IsolatedExecute = Config(own)
    return settings


def _name_of_value(value: object) -> str:
    """A name for what JSON cannot hold, which is the same in the next process."""
    return str(getattr(value, "__qualname__", type(value).__qualname__))


def _gradebook(book: Gradebook, assignment: str) -> bytes:
    """A gradebook that holds an assignment of this one, and no student."""
    with tempfile.TemporaryDirectory(prefix="starvelab-") as folder:
        path = Path(folder) / "gradebook.db"
        make_gradebook(path, schema_of(book))
        with closing(Gradebook(f"sqlite:///{path}")) as copy:
            replace_assignment(book, copy, assignment, Path(folder))
        return path.read_bytes()
