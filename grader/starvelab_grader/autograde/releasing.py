"""An assignment released: its solution earns every point, and nothing is replaced before all of it is made.

The reference solution is graded like any submission: what it does not earn, no student can.
"""

import io
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
from nbconvert.filters import strip_ansi
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from ..errors import GraderError
from ..files import read_files, scratch_folder, whole_folder, write_files, write_whole
from ..sandbox import bubblewrap
from ..sandbox.codec import CAN_CROSS
from ..sandbox.process import Runners
from ..submissions.reference import ReferenceCell, is_test, name_of, released_source
from ..submissions.submission import Submission
from .definition import Definition, Replaced, replace_assignment
from .execution import RESULT
from .notebook_run import ENDED, ENDED_PYTHON
from .task import GradingResult, grade, log_into

NAME = "the reference solution"
CORRECT = "Correct the answer or the check."
REMEDY = (
    f"Between student code and checks these can pass: {CAN_CROSS}. Correct the answer or the check; or, "
    "where checks need other values, let them run in the sandbox with the student code, which can then read "
    'and change them: c.IsolatedExecute.checks = "inside" in nbgrader_config.py.'
)
CANNOT_LEAVE = "cannot leave the sandbox"
NO_NETWORK = re.compile(r"URLError|ConnectionError|gaierror|name resolution|Name or service not known")
BESIDE = (
    "The sandbox has no network: put the data beside the notebook, or name their folder in "
    "c.IsolatedExecute.readable."
)
MAX_REASON = 300  # characters


class ReleaseError(GraderError, ValueError):
    """An assignment cannot be released as it is, or its solution does not earn every point of the tests."""


def release(course: CourseDirectory, config: Config, assignment: str) -> Replaced:
    """Make the students' notebooks and the gradebook's assignment; after an error nothing has changed."""
    folder = Path(course.format_path(course.source_directory, ".", assignment))
    _require_gradable(folder)
    target = Path(course.format_path(course.release_directory, ".", assignment))
    snapshot = released_source(course, assignment)
    dropped = snapshot.parent.parent / "dropped"
    with scratch_folder() as draft_folder:
        # The gradebook is opened first: nothing is to be made for one that cannot be used.
        Gradebook(course.db_url, course.course_id).close()
        draft = _generate(draft_folder, config, assignment)
        definition = Definition.of(draft, config, assignment, folder)
        unsafe = bool(config.get("IsolatedExecute", {}).get("unsafe"))
        can_grade = unsafe or not bubblewrap.why_not()
        if can_grade:
            runners = config.get("IsolatedExecute", {}).get("runners") or Runners()
            require_full_points(definition, lambda one: grade(one, definition, runners))
        with (
            Gradebook(draft.db_url) as new,
            Gradebook(course.db_url, course.course_id) as book,
            whole_folder(snapshot) as saved,
            whole_folder(target) as released,
        ):
            shutil.copytree(Path(draft.release_directory) / assignment, released, dirs_exist_ok=True)
            write_files(saved, definition.source)
            replaced = replace_assignment(new, book, assignment, dropped)
    if can_grade:
        remember_solution(course, Definition.of(course, config, assignment))
    return replaced


def _require_gradable(folder: Path) -> None:
    """Raise a `ReleaseError` for a notebook in another language, and where nbgrader knows no cell at all."""
    cells = []
    for path in sorted(folder.glob("*.ipynb")):
        nb = nbformat.read(path, as_version=4)
        kernel, info = nb.metadata.get("kernelspec", {}), nb.metadata.get("language_info", {})
        language = str(kernel.get("language") or info.get("name") or "python")
        if not language.lower().startswith("python"):
            raise ReleaseError(
                f"{path.name} is written in {language}, and this grader runs Python only. Nothing was "
                "released. nbgrader itself runs other languages, in a course that does not call "
                "configure(c), and without a sandbox."
            )
        cells += nb.cells
    if cells and not any(map(name_of, cells)):
        raise ReleaseError(
            f"No cell of {folder.name} is marked for nbgrader: nothing would be graded, and answers would be "
            "given out. Nothing was released. "
            "Mark answers and tests with nbgrader's Create Assignment in JupyterLab."
        )


def _generate(folder: Path, config: Config, assignment: str) -> CourseDirectory:
    """Let nbgrader make the assignment, in a folder and a gradebook of its own."""
    draft = Config(config)
    draft.CourseDirectory = Config(config.get("CourseDirectory", {}) | {
        "release_directory": str(folder / "released"), "db_url": f"sqlite:///{folder / 'gradebook.db'}",
        "assignment_id": assignment, "student_id": "*", "notebook_id": "*",
    })  # fmt: skip
    log = io.StringIO()
    logger = log_into(log)
    course = CourseDirectory(config=draft, log=logger)
    try:
        GenerateAssignment(coursedir=course, config=draft, log=logger).start()
    except (NbGraderException, SystemExit) as error:
        lines = [line for line in log.getvalue().splitlines() if re.match(r"[\w.]+(Error|Exception)\b", line)]
        # The first error is the cause of those that follow.
        reason = " ".join((lines or [str(error)])[0].split())
        reason += "" if reason.endswith(".") else "."
        raise ReleaseError(f"nbgrader cannot make {assignment}: {reason} Nothing was released.") from error
    return course


def warning_since_release(course: CourseDirectory, assignment: str) -> str:
    """Return a warning where the notebooks have changed since the release: the grading does not use that."""
    folder = Path(course.format_path(course.source_directory, ".", assignment))
    now, then = (read_files(each, "*.ipynb") for each in (folder, released_source(course, assignment)))
    if not now or not then or now == then:
        return ""
    return (
        f"The notebooks of {assignment} have changed since it was released, and it is graded as it was. "
        f"To let the change count: starvelab-grader release {assignment}"
    )


def as_submission(definition: Definition) -> Submission:
    """Return the instructor's notebooks, as if a student had submitted them."""
    source = definition.source
    notebooks = {name: source[f"{name}.ipynb"] for name in definition.cells if f"{name}.ipynb" in source}
    files = {name: content for name, content in source.items() if not name.endswith(".ipynb")}
    return Submission(student=NAME, assignment=definition.assignment, notebooks=notebooks, files=files)


def _solution_mark(course: CourseDirectory, assignment: str) -> Path:
    """The file with the fingerprint of the assignment whose reference solution earned every point."""
    return released_source(course, assignment).parents[1] / "graded" / assignment / ".solution"


def remember_solution(course: CourseDirectory, definition: Definition) -> None:
    """Write down that the reference solution earns every point."""
    write_whole(_solution_mark(course, definition.assignment), definition.fingerprint)


def is_remembered(course: CourseDirectory, definition: Definition) -> bool:
    """True if that was written down, and nothing has changed since."""
    mark = _solution_mark(course, definition.assignment)
    return mark.is_file() and mark.read_text() == definition.fingerprint


def require_full_points(definition: Definition, grade: Callable[[Submission], GradingResult]) -> None:
    """Grade the reference solution as students' are graded; a `ReleaseError` says what it loses."""
    if loss := lost_points(definition, grade(as_submission(definition))):
        raise ReleaseError(loss)


def lost_points(definition: Definition, graded: GradingResult) -> str:
    """Say in sentences what the reference solution has lost; nothing where it earned every point."""
    solution = f"The reference solution of {definition.assignment}"
    if graded.failed:
        return f"{solution} could not be graded: {graded.failed.splitlines()[-1]}"
    # A notebook without a source, such as one that was renamed since, is not looked at.
    there = [name for name in definition.cells if f"{name}.ipynb" in definition.source]
    losses = (line for name in there for line in _losses(name, definition.cells[name], graded))
    lines = "\n".join(f"  {line}" for line in losses)
    remedy = REMEDY if re.search(f"{CANNOT_LEAVE}|SerializationError", lines) else CORRECT
    if "ModuleNotFoundError" in lines:
        remedy = f"{bubblewrap.PACKAGES_MISSING} A module of your own stands beside the notebook. {remedy}"
    if NO_NETWORK.search(lines):
        remedy = f"{BESIDE} {remedy}"
    text = f"{solution} does not earn every point, and no student could:\n{lines}\n{remedy}"
    return text if lines else ""


def _losses(notebook: str, cells: list[ReferenceCell], graded: GradingResult) -> Iterator[str]:
    """One line for each test that did not give all its points, with what is known of the reason."""
    nb = nbformat.reads(graded.files[f"{notebook}.ipynb"].decode(), as_version=4)
    unreadable: dict[str, str] = nb.metadata.get(RESULT, {}).get("unreadable", {})
    outputs = {name_of(cell): cell.get("outputs", []) for cell in nb.cells}
    for cell in filter(lambda cell: cell.is_test, cells):
        points = graded.grades[notebook].get(cell.name, (0.0, False))[0] or 0.0
        if points >= cell.points:
            continue
        named = [each for each in unreadable if re.search(rf"\b{re.escape(each)}\b", cell.source)]
        reasons = [f"`{each}` {CANNOT_LEAVE}, since {unreadable[each]}" for each in named]
        # Or the last line that the test has put out.
        put_out = outputs.get(cell.name, [])
        texts = [output.get("text") or "\n".join(output.get("traceback", [])) for output in put_out]
        said = map(str.strip, strip_ansi("\n".join(texts)).splitlines())
        lines = ["it printed nothing", *filter(None, said)]
        reason, first = "; ".join(reasons) or lines[-1], _first_failure(nb.cells, cell.name)
        place = f"{notebook}.ipynb, cell {cell.name} ({points:g} of {cell.points:g})"
        yield f"{place}: {reason[:MAX_REASON]}{first[:MAX_REASON]}"


def _first_failure(cells: list[NotebookNode], test: str) -> str:
    """Name the cell before a test that failed first, and the first line of its error; if any did."""
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
