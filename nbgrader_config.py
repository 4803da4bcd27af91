"""Tells nbgrader where the course lives: authored notebooks in solutions/, student notebooks in labs/.

What students hand in, their marks and the gradebook never enter the repository. They live in the folder that
the environment variable STARVELAB_COURSE names, or in ~/starvelab-course.
"""

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

from starvelab.grading import IsolatedExecute
from starvelab.grading.feedback import ClearHiddenTracebacks, HarmlessHTML, ReadableHeader, harmless_html
from starvelab.grading.mending import MendStructure
from starvelab.grading.private import make_private

repository = Path(__file__).resolve().parent
course = Path(os.environ.get("STARVELAB_COURSE") or "~/starvelab-course").expanduser().resolve()
make_private(course)

# nbgrader runs `alembic` by name when it opens a gradebook, after it has emptied labs/. The program is
# installed beside Python, and a virtual environment that nobody activated is not on the PATH.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])

c = get_config()  # noqa: F821 (traitlets puts it there when it reads this file)

# --- where everything is --------------------------------------------------------------------------
c.CourseDirectory.course_id = "starvelab"
c.CourseDirectory.root = str(repository)
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "labs"
for step in ("submitted", "autograded", "feedback", "solution", "source_with_tests"):
    c.CourseDirectory[f"{step}_directory"] = str(course / step)
c.CourseDirectory.db_url = f"sqlite:///{course / 'gradebook.db'}"
c.ExportPlugin.to = str(course / "grades.csv")  # the default is the current folder, which is the repository

# No exchange is used, but nbgrader warns of a missing one: its default is a folder of the whole machine.
c.Exchange.root = str(course / "exchange")

# Every other file beside a notebook is copied to the students, and copied over the student's own at
# grading. So the scripts stay behind.
c.CourseDirectory.ignore = ["*.py", "*.pyc", "__pycache__", ".ipynb_checkpoints", ".DS_Store"]

# A prediction that an instructor locked while trying a notebook would replace every student's. It cannot be
# ignored by name: that would leave the students' own predictions out of the grading as well.
stray = sorted(repository.glob("solutions/*/predictions.json"))
if stray:
    raise SystemExit(
        f"Predictions belong to students, and {stray[0].relative_to(repository)} would replace theirs. "
        "Delete it, and try notebooks in a copy."
    )

# --- releasing ------------------------------------------------------------------------------------
c.ClearSolutions.code_stub = {
    "python": '# YOUR CODE HERE\nraise NotImplementedError("not answered yet: replace these two lines")'
}
c.ClearSolutions.text_stub = "Your answer here."

# --- grading --------------------------------------------------------------------------------------
# Student code runs in a sandbox, checks outside it. Without a sandbox: --IsolatedExecute.unsafe=True
c.Autograde.autograde_preprocessors = [
    IsolatedExecute, IgnorePattern, ClearMetadataPreprocessor, LimitOutput, SaveAutoGrades,
    AssignLatePenalties,
]  # fmt: skip
# What is odd in the structure of a notebook is mended before nbgrader's own steps could stumble over it.
c.Autograde.sanitize_preprocessors = [MendStructure, OverwriteKernelspec]
c.IgnorePattern.enabled = True  # nbgrader scores a test cell that wrote to stderr 0,
c.IgnorePattern.pattern = "."  # and a warning from a right answer is no failure: drop what went to stderr


# --- feedback -------------------------------------------------------------------------------------
# The default pages show the hidden tests, in the cell and in tracebacks, and run scripts that a student wrote
# into a markdown cell.
c.GenerateFeedback.preprocessors = [GetGrades, ClearHiddenTracebacks, ClearHiddenTests, ReadableHeader]
# These count for formgrader's pages too.
c.HTMLExporter.preprocessors = [HarmlessHTML]
c.HTMLExporter.filters = {"markdown2html": harmless_html(c)}
