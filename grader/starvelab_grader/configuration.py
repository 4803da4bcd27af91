"""nbgrader set up for safe grading in anybody's `nbgrader_config.py`, and courses that others cannot open."""

import os
import sys
from collections.abc import Collection
from pathlib import Path

from nbconvert.preprocessors import (
    ClearMetadataPreprocessor,
    CSSHTMLHeaderPreprocessor,
    TagRemovePreprocessor,
)
from nbgrader import preprocessors as steps
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from .autograde.execution import IsolatedExecute, RestoreStructure
from .autograde.feedback import ClearHiddenTracebacks, HarmlessHTML, harmless_html
from .autograde.nbgrader_private import escape_names_in_formgrader, path_with_alembic
from .files import write_whole
from .sandbox.process import Runners

# What stands where nothing was answered yet.
NOT_ANSWERED = "not answered yet: replace these two lines"
ESSAY_STUB = "Your answer here."


def configure(c: Config, *, leave_out: Collection[str] = ()) -> None:
    """Let nbgrader and `starvelab` grade safely in a course.

    Student code runs in a sandbox, checks outside it; notebooks that were damaged are repaired before they
    are graded; no page runs a script of a student, and feedback shows no hidden check. Folders stay as they
    are.

    Parameters
    ----------
    c : Config
        What `get_config()` returns in `nbgrader_config.py`. Settings after this call replace these.
    leave_out : collection of str
        Tags of cells that the notebooks of students do not get, such as "learning-alone".
    """
    os.environ["PATH"] = path_with_alembic()
    escape_names_in_formgrader()

    # --- releasing --------------------------------------------------------------------------------
    c.ClearSolutions.code_stub = {"python": f'# YOUR CODE HERE\nraise NotImplementedError("{NOT_ANSWERED}")'}
    c.ClearSolutions.text_stub = ESSAY_STUB
    if leave_out:
        c.TagRemovePreprocessor.enabled = True
        c.TagRemovePreprocessor.remove_cell_tags = set(leave_out)
        usual = GenerateAssignment.class_traits()["preprocessors"].default()
        c.GenerateAssignment.preprocessors = [TagRemovePreprocessor, *usual]

    # --- grading ----------------------------------------------------------------------------------
    # Student code runs in a sandbox, checks outside it. Without a sandbox: --IsolatedExecute.unsafe=True
    c.IsolatedExecute.runners = Runners()  # notebooks share them
    c.Autograde.autograde_preprocessors = [
        IsolatedExecute, steps.IgnorePattern, ClearMetadataPreprocessor, steps.LimitOutput,
        steps.SaveAutoGrades, steps.AssignLatePenalties,
    ]  # fmt: skip
    # The structure of a notebook is repaired before nbgrader's own steps, which would fail on a damaged one.
    c.Autograde.sanitize_preprocessors = [RestoreStructure, steps.OverwriteKernelspec]
    # nbgrader gives no points to a test cell that wrote to stderr, where a right answer may have caused a
    # warning.
    c.IgnorePattern.enabled = True
    c.IgnorePattern.pattern = "."

    # --- feedback ---------------------------------------------------------------------------------
    # The default pages show the hidden checks, in the cell and in tracebacks, and run scripts that a student
    # wrote into a markdown cell.
    c.GenerateFeedback.preprocessors = [
        steps.GetGrades, ClearHiddenTracebacks, steps.ClearHiddenTests, CSSHTMLHeaderPreprocessor,
    ]  # fmt: skip
    # These are used for formgrader's pages too.
    c.HTMLExporter.preprocessors = [HarmlessHTML]
    c.HTMLExporter.filters = {"markdown2html": harmless_html(c)}
    # In nbgrader's own table a name can be a formula, or further cells and lines.
    c.ExportApp.plugin_class = "starvelab_grader.lms.exports.Grades"


SAID = ".said-to-be-open"  # the file with those parts of a course of which the warning was given


def restrict_new_files(course: CourseDirectory) -> None:
    """Let this process make files that others cannot open; a group can that nbgrader is told of."""
    os.umask(0o007 if course.groupshared else 0o077)


def make_private(folder: Path, gradebook: str = "gradebook.db") -> None:
    """Make a course's folder and an empty gradebook for its owner alone; what exists stays, or SystemExit."""
    # After any other error in a configuration nbgrader goes on without it, in the current folder.
    try:
        # The mode that mkdir takes counts for the last folder only.
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        if not (folder / gradebook).exists():
            print(f"A new course, with nothing in it, is made in {folder}.", file=sys.stderr)
        # SQLite takes an empty file for a new database, and gives its journal the same mode.
        (folder / gradebook).touch(mode=0o600, exist_ok=True)
    except OSError as error:
        raise SystemExit(
            f"A course needs a folder in which you may write, and {error.filename} cannot be written "
            f"({error.strerror}). "
            "Get the right to write there, or let STARVELAB_COURSE name another folder."
        ) from None


def parts_of(course: CourseDirectory) -> list[Path]:
    """The folders of a course with submissions, marks and answers, and the file of its gradebook."""
    steps = (course.submitted_directory, course.autograded_directory, course.feedback_directory)
    submitted, autograded, _ = parts = [Path(course.root) / step for step in steps]
    parts += [autograded.parent / name for name in ("graded", "released", "dropped", "report")]
    parts += [submitted.parent / name for name in ("replaced", "collected", "returned")]
    kind, _, place = course.db_url.partition(":///")
    if kind.startswith("sqlite") and place:
        parts.append(Path(place))
    return [part.absolute() for part in parts]


def warning_if_open(course: CourseDirectory) -> str:
    """Return a warning if other users of this machine can open a part of the course, once, else ""."""
    if os.name != "posix":
        return ""
    parts = parts_of(course)
    open_parts = [str(part) for part in parts if is_open(part, group=not course.groupshared)]
    said = parts[-1].parent / SAID
    if not open_parts or (said.is_file() and said.read_text(encoding="utf-8").split("\n") == open_parts):
        return ""
    write_whole(said, "\n".join(open_parts))
    whose = "o=" if course.groupshared else "go="
    return (
        "Other users of this machine can open parts of this course, which hold submissions and marks. "
        f"Close them: chmod -R {whose} {' '.join(open_parts)} (this is said once)"
    )


def is_open(path: Path, *, group: bool) -> bool:
    """True if somebody but the owner gets to a file; the group counts unless it is the owner's own."""
    try:
        mode, *above = (one.stat().st_mode for one in (path, *path.parents))
        own_group = path.group() == path.owner()
    except FileNotFoundError:
        return False
    except KeyError:  # a number without a name
        own_group = False
    if mode & 0o007 and all(one & 0o001 for one in above):
        return True
    return group and not own_group and bool(mode & 0o070) and all(one & 0o011 for one in above)
