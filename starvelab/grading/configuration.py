"""nbgrader configured for safe grading, in anybody's `nbgrader_config.py`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbgrader.preprocessors import (
    AssignLatePenalties,
    ClearHiddenTests,
    GetGrades,
    IgnorePattern,
    LimitOutput,
    OverwriteKernelspec,
    SaveAutoGrades,
)
from traitlets.config import Config

from .autograde.execution import IsolatedExecute
from .autograde.feedback import ClearHiddenTracebacks, HarmlessHTML, ReadableHeader, harmless_html
from .autograde.restoring import MendStructure


def configure(c: Config) -> None:
    """Let nbgrader and `starvelab` grade safely in a course.

    Student code runs in a sandbox, checks outside it; notebooks that were damaged are repaired before they
    are graded; feedback pages show no hidden test and run no script of a student. Folders are not its affair.

    Parameters
    ----------
    c : Config
        What `get_config()` returns in `nbgrader_config.py`. What is set after this call counts.
    """
    # nbgrader runs `alembic` by name when it opens a gradebook. The program is installed beside Python, and a
    # virtual environment that nobody activated is not on the PATH.
    programs = str(Path(sys.executable).parent)
    if programs not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([programs, os.environ.get("PATH", os.defpath)])

    # --- releasing --------------------------------------------------------------------------------
    c.ClearSolutions.code_stub = {
        "python": '# YOUR CODE HERE\nraise NotImplementedError("not answered yet: replace these two lines")'
    }
    c.ClearSolutions.text_stub = "Your answer here."

    # --- grading ----------------------------------------------------------------------------------
    # Student code runs in a sandbox, checks outside it. Without a sandbox: --IsolatedExecute.unsafe=True
    c.Autograde.autograde_preprocessors = [
        IsolatedExecute, IgnorePattern, ClearMetadataPreprocessor, LimitOutput, SaveAutoGrades,
        AssignLatePenalties,
    ]  # fmt: skip
    # The structure of a notebook is repaired before nbgrader's own steps could stumble over it.
    c.Autograde.sanitize_preprocessors = [MendStructure, OverwriteKernelspec]
    c.IgnorePattern.enabled = True  # nbgrader scores a test cell that wrote to stderr 0,
    c.IgnorePattern.pattern = "."  # and a warning from a right answer is no failure: drop what went to stderr

    # --- feedback ---------------------------------------------------------------------------------
    # The default pages show the hidden tests, in the cell and in tracebacks, and run scripts that a student
    # wrote into a markdown cell.
    c.GenerateFeedback.preprocessors = [GetGrades, ClearHiddenTracebacks, ClearHiddenTests, ReadableHeader]
    # These count for formgrader's pages too.
    c.HTMLExporter.preprocessors = [HarmlessHTML]
    c.HTMLExporter.filters = {"markdown2html": harmless_html(c)}
