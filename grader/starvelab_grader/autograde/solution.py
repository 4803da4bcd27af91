"""The reference solution, graded like any submission: what it does not earn, no student can."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
from nbconvert.filters import strip_ansi
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory

from ..errors import GraderError
from ..sandbox.bubblewrap import PACKAGES_MISSING
from ..sandbox.codec import CAN_CROSS
from ..submissions.reference import ReferenceCell, is_test, name_of
from ..submissions.submission import Submission
from .definition import Definition
from .execution import RESULT
from .notebook_run import ENDED, ENDED_PYTHON
from .task import GradingResult

NAME = "the reference solution"
CORRECT = "Correct the answer or the check."
REMEDY = (
    f"Between student code and checks these can pass: {CAN_CROSS}. Correct the answer or the check; or, "
    "where checks need other values, let them run in the sandbox with the student code, which can then read "
    'and change them: c.IsolatedExecute.checks = "inside" in nbgrader_config.py.'
)
CANNOT_LEAVE = "cannot leave the sandbox"
MAX_REASON = 300  # characters


class SolutionError(GraderError, ValueError):
    """The reference solution does not earn every point that tests give."""


def as_submission(definition: Definition) -> Submission:
    """The instructor's notebooks, as if a student had submitted them."""
    source = definition.source
    notebooks = {name: source[f"{name}.ipynb"] for name in definition.cells if f"{name}.ipynb" in source}
    files = {name: content for name, content in source.items() if not name.endswith(".ipynb")}
    return Submission(student=NAME, assignment=definition.assignment, notebooks=notebooks, files=files)


def solution_mark(course: CourseDirectory, assignment: str) -> Path:
    """The file with the fingerprint of the assignment whose reference solution earned every point."""
    autograded: Path = Path(course.root) / course.autograded_directory
    return autograded.parent / "graded" / assignment / ".solution"


def remember_solution(course: CourseDirectory, definition: Definition) -> None:
    """Write down that the reference solution earns every point."""
    mark = solution_mark(course, definition.assignment)
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.write_text(definition.fingerprint)


def is_remembered(course: CourseDirectory, definition: Definition) -> bool:
    """Whether that was written down, and nothing has changed since."""
    mark = solution_mark(course, definition.assignment)
    return mark.is_file() and mark.read_text() == definition.fingerprint


def require_full_points(definition: Definition, grade: Callable[[Submission], GradingResult]) -> None:
    """Grade the reference solution, and raise an error where it loses points.

    Parameters
    ----------
    definition : Definition
    grade : callable
        Grades a submission where and how students' are graded.

    Raises
    ------
    SolutionError
    """
    submission = as_submission(definition)
    graded = grade(submission)
    if graded.failed:
        reason = graded.failed.splitlines()[-1]
        raise SolutionError(
            f"The reference solution of {definition.assignment} could not be graded: {reason}"
        )
    # A notebook without a source, such as one that was renamed since, is not looked at.
    losses = [line for name in submission.notebooks for line in _losses(name, definition.cells[name], graded)]
    if losses:
        remedy = REMEDY if any(CANNOT_LEAVE in line for line in losses) else CORRECT
        if any("ModuleNotFoundError" in line for line in losses):
            remedy = f"{PACKAGES_MISSING} A module of your own stands beside the notebook. {remedy}"
        raise SolutionError(
            f"The reference solution of {definition.assignment} does not earn every point, and no student "
            "could:\n" + "\n".join(f"  {line}" for line in losses) + f"\n{remedy}"
        )


def _losses(notebook: str, cells: list[ReferenceCell], graded: GradingResult) -> Iterator[str]:
    """One line for each test that did not give all its points, with what is known of the reason."""
    nb = nbformat.reads(graded.files[f"{notebook}.ipynb"].decode(), as_version=4)
    unreadable: dict[str, str] = nb.metadata.get(RESULT, {}).get("unreadable", {})
    outputs = {
        cell.metadata.get("nbgrader", {}).get("grade_id"): cell.get("outputs", []) for cell in nb.cells
    }
    for cell in cells:
        if not cell.is_test:
            continue
        points, _ = graded.grades[notebook].get(cell.name, (0.0, False))
        if (points or 0.0) >= cell.points:
            continue
        reasons = [
            f"`{name}` {CANNOT_LEAVE}, since {why}"
            for name, why in unreadable.items()
            if re.search(rf"\b{re.escape(name)}\b", cell.source)
        ]
        reason = "; ".join(reasons) or _last_line(outputs.get(cell.name, []))
        first = _first_failure(nb.cells, cell.name)
        yield (
            f"{notebook}.ipynb, cell {cell.name} ({points or 0:g} of {cell.points:g}): "
            f"{reason[:MAX_REASON]}{first[:MAX_REASON]}"
        )


def _first_failure(cells: list[NotebookNode], test: str) -> str:
    """Which cell before a test failed first, and the first line of its error; nothing where none did."""
    for number, cell in enumerate(cells, start=1):
        if name_of(cell) == test:
            break
        for output in [] if cell.cell_type != "code" or is_test(cell) else cell.outputs:
            error = output.get("text", "") if output.output_type == "stream" else output.get("evalue", "")
            if output.output_type == "error" or error.startswith((ENDED, ENDED_PYTHON)):
                kind = f"{output.ename}: " if output.output_type == "error" else ""
                line = (strip_ansi(error).strip().splitlines() or [""])[0]
                return f". Before it, cell {name_of(cell) or number} failed: {kind}{line}"
    return ""


def _last_line(outputs: list[NotebookNode]) -> str:
    texts = [output.get("text") or "\n".join(output.get("traceback", [])) for output in outputs]
    lines = [line.strip() for text in texts for line in strip_ansi(text).splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"
