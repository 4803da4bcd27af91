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
