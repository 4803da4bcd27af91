"""A notebook of one exercise, graded as nbgrader grades it, but without a course around it."""

from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import determine_grade, is_grade
from traitlets.config import Config

from grader.tests.a_course import graded_cell
from grader.tests.shared_runners import RUNNERS, one_for_all
from starvelab_grader import IsolatedExecute

SET_UP = """import numpy as np
from starvelab import Q_
from starvelab.checks import Credit, check"""
TESTS = {
    "whole": (
        2,
        "check(double(2), 4, what='twice 2')\n"
        "### BEGIN HIDDEN TESTS\n"
        "check(double(7), 14, what='twice 7')\n"
        "### END HIDDEN TESTS",
    ),
    "in-parts": (
        3,
        "credit = Credit(3)\n"
        "credit.part(1, 'a number', lambda: check(double(1.5), 3.0))\n"
        "credit.part(2, 'a time', lambda: check(double(Q_('4 ms')), Q_('8 ms')))\n"
        "credit.total()",
    ),
    "value": (1, "check(answer, 42)"),
}
# Student code that finds the object which answers the grader, and the module that it runs.
FOUND = """
import gc
book = next(thing for thing in gc.get_objects() if type(thing).__name__ == "NotebookProcess")
runner = type(book).serve.__globals__
assert runner["__name__"] == "starvelab_grader.sandbox.runner"
"""
ANYBODY = "anybody"
RIGHT = "def double(x): return 2 * x\nanswer = 42"
MOST = {name: points for name, (points, _) in TESTS.items()}
NOTHING = dict.fromkeys(MOST, 0)


def cell(name: str, source: str, **flags: object) -> NotebookNode:
    """A code cell with what nbgrader knows of it."""
    return graded_cell(nbformat.v4.new_code_cell(source), name, **flags)


def notebook(answer: str, **tests: tuple[float, str]) -> NotebookNode:
    """Set-up, the answer, and the tests, which can be others."""
    cells = [cell("set-up", SET_UP, locked=True), cell("answer", answer, solution=True)]
    for name, (points, source) in (tests or TESTS).items():
        cells.append(cell(name, source, grade=True, locked=True, points=points))
    return nbformat.v4.new_notebook(cells=cells)


def execute(
    nb: NotebookNode, folder: Path, *, course: Path | None = None, student: str = "", **settings: object
) -> NotebookNode:
    """Run it as the submission of a student; notebooks of one student share a sandbox.

    Parameters
    ----------
    course : Path, optional
        The folder of a course, whose source is the instructor's notebook. Without it there is none.
    student : str, optional
        By default one for all, as a sandbox takes long to start, who has each time all the time there is.
    """
    if not student:
        student = ANYBODY
        one_for_all()
    told = {"assignment": "tiny", "notebook": "one", "student": student}
    own = {"imports": [], "runners": RUNNERS}
    config = {"IsolatedExecute": own | settings}
    if course is not None:
        config["CourseDirectory"] = {"root": str(course)}
    run = IsolatedExecute(config=Config(config))
    run.preprocess(nb, {"metadata": {"path": str(folder)}, "nbgrader": told})
    return nb


def points(nb: NotebookNode) -> dict[str, float]:
    """What each test cell earned, by nbgrader's own reading of its outputs."""
    return {cell.id: determine_grade(cell)[0] for cell in nb.cells if is_grade(cell)}


def graded(answer: str, folder: Path, **settings: object) -> dict[str, float]:
    """What an answer earns."""
    return points(execute(notebook(answer), folder, **settings))


def printed(nb: NotebookNode, name: str) -> str:
    """All text that a cell put out."""
    cell = next(cell for cell in nb.cells if cell.id == name)
    return "\n".join(
        one.get("text") or "\n".join(one.get("traceback", [])) or str(one.get("data")) for one in cell.outputs
    )
