"""An assignment released: nothing is replaced before all of the new files have been made."""

from __future__ import annotations

import io
import logging
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import find_all_files
from traitlets.config import Config

from ..errors import GraderError
from ..sandbox import bubblewrap
from ..submissions.reference import released_source
from .definition import Definition
from .gradebook_cells import Replaced, replace_assignment
from .nbgrader_private import make_gradebook, schema_of
from .runners import Runners
from .solution import remember_solution, require_full_points
from .task import grade


class ReleaseError(GraderError, RuntimeError):
    """An assignment cannot be released as it is."""


def release(course: CourseDirectory, config: Config, assignment: str) -> Replaced:
    """Make the students' notebooks, and write the assignment into the gradebook.

    All of it is made in another folder first. The reference solution is graded where there is a sandbox.

    Raises
    ------
    ReleaseError, SolutionError
        Nothing has changed then.
    """
    folder = Path(course.format_path(course.source_directory, ".", assignment))
    if not folder.is_dir():
        there = sorted(path.name for path in folder.parent.glob("*/") if any(path.glob("*.ipynb")))
        raise ReleaseError(
            f"There is no assignment {assignment!r} in {folder.parent}; "
            f"there is: {', '.join(there) or 'none'}."
        )
    if stale := stale_notebooks(folder):
        raise ReleaseError(
            f"These notebooks are not what their scripts say: {', '.join(stale)}. Derive them: make build"
        )
    target = Path(course.format_path(course.release_directory, ".", assignment))
    snapshot = released_source(course, assignment)
    dropped = snapshot.parent.parent / "dropped"
    with tempfile.TemporaryDirectory(prefix="starvelab-release-") as name:
        draft_folder = Path(name)
        # The gradebook is opened first: nothing is to be made for one that cannot be used.
        with closing(Gradebook(course.db_url, course.course_id)) as book:
            make_gradebook(draft_folder / "gradebook.db", schema_of(book))
        draft = _generate(draft_folder, config, assignment)
        definition = Definition.of(draft, config, assignment, folder)
        unsafe = bool(config.get("IsolatedExecute", {}).get("unsafe"))
        can_grade = unsafe or not bubblewrap.why_not()
        if can_grade:
            runners = Runners.of(config)
            require_full_points(definition, lambda one: grade(one, definition, runners))
        with (
            closing(Gradebook(draft.db_url)) as new,
            closing(Gradebook(course.db_url, course.course_id)) as book,
            _beside(target, Path(draft.release_directory) / assignment) as replace_released,
            _beside(snapshot, _copy_of_source(folder, draft_folder, course.ignore)) as replace_source,
        ):
            replaced = replace_assignment(new, book, assignment, dropped)
            replace_released()
            replace_source()
    if can_grade:
        remember_solution(course, Definition.of(course, config, assignment))
    return replaced


def _generate(folder: Path, config: Config, assignment: str) -> CourseDirectory:
    """Let nbgrader make the assignment, in a folder and a gradebook of its own."""
    draft = Config(config)
    draft.CourseDirectory = Config(config.get("CourseDirectory", {}))
    draft.CourseDirectory.update(
        release_directory=str(folder / "released"),
        db_url=f"sqlite:///{folder / 'gradebook.db'}",
        assignment_id=assignment,
        student_id="*",
        notebook_id="*",
    )
    log = io.StringIO()
    logger = logging.getLogger(f"{__name__}.{id(log)}")
    logger.propagate = False
    logger.addHandler(logging.StreamHandler(log))
    course = CourseDirectory(config=draft, log=logger)
    try:
        GenerateAssignment(coursedir=course, config=draft, log=logger).start()
    except (NbGraderException, SystemExit) as error:
        lines = [line for line in log.getvalue().splitlines() if re.match(r"[\w.]+(Error|Exception)\b", line)]
        # The first error is the cause of those that follow.
        reason = (lines or [str(error)])[0].rstrip(".")
        raise ReleaseError(f"nbgrader cannot make {assignment}: {reason}. Nothing was released.") from error
    return course


def _copy_of_source(folder: Path, draft_folder: Path, ignore: list[str]) -> Path:
    to = draft_folder / "source"
    for path in map(Path, find_all_files(str(folder), ignore)):
        copy = to / path.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    return to


@contextmanager
def _beside(target: Path, new: Path) -> Iterator[Callable[[], None]]:
    """Copy a folder beside another one. The function that is given replaces that one at once."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".part-") as part:
        shutil.copytree(new, Path(part) / "new")

        def replace() -> None:
            if target.exists():
                target.rename(Path(part) / "old")
            (Path(part) / "new").rename(target)

        yield replace


def stale_notebooks(folder: Path) -> list[str]:
    """Notebooks that differ from the scripts they are derived from, where there is a build.py."""
    build = folder.parent / "build.py"
    if not build.is_file() or "def instructor_notebook(" not in build.read_text(encoding="utf-8"):
        return []
    specification = spec_from_file_location("starvelab_build", build)
    assert specification is not None
    assert specification.loader is not None
    module = module_from_spec(specification)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        specification.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    stale = []
    for script in sorted(folder.glob("[0-9][0-9]_*.py")):
        notebook = script.with_suffix(".ipynb")
        try:
            derived = module.instructor_notebook(script.read_text(encoding="utf-8"), script.name)
        except module.MarkupError as error:
            raise ReleaseError(str(error)) from error
        if not notebook.is_file() or notebook.read_text(encoding="utf-8") != derived:
            stale.append(notebook.name)
    return stale


def warnings_since_release(course: CourseDirectory, assignment: str) -> list[str]:
    """What the instructor has changed since the release, in sentences: the grading does not use it."""
    folder = Path(course.format_path(course.source_directory, ".", assignment))
    remedy = f"starvelab-grader release {assignment}"
    try:
        stale = stale_notebooks(folder)
    # Unfinished work on the next year's assignment must not stop the grading of this year's class.
    except Exception as error:
        return [f"The scripts of {assignment} cannot be read, and it is graded as it was released: {error}"]
    if stale:
        return [
            f"These notebooks of {assignment} are not what their scripts say: {', '.join(stale)}. "
            f"It is graded as it was released. To let the scripts count: make build, and then {remedy}"
        ]
    if changed_since_release(course, assignment):
        return [
            f"The notebooks of {assignment} have changed since it was released, and it is graded as it was. "
            f"To let the change count: {remedy}"
        ]
    return []


def changed_since_release(course: CourseDirectory, assignment: str) -> bool:
    """Whether the instructor's notebooks are others than those that were released."""
    folder = Path(course.format_path(course.source_directory, ".", assignment))
    snapshot = released_source(course, assignment)
    if not (folder.is_dir() and snapshot.is_dir()):
        return False
    now, then = (
        {path.name: path.read_bytes() for path in sorted(each.glob("*.ipynb"))} for each in (folder, snapshot)
    )
    return now != then
