"""A course with one small assignment, graded with all that a real one is graded with, in seconds."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config, PyFileConfigLoader

from grader.tests.shared_runners import RUNNERS
from starvelab_grader.autograde.definition import Definition
from starvelab_grader.autograde.nbgrader_private import environment_with
from starvelab_grader.autograde.task import GradingResult, grade
from starvelab_grader.batch.classroom import Classroom
from starvelab_grader.submissions.submission import Submission, read_submission
from tests.assignments import REPOSITORY

TINY = "tiny"
SET_UP = "import numpy as np\nfrom starvelab import Q_\nfrom starvelab.checks import Credit, check"
# What the learner of an exercise is given, what is right, what it is worth, and how it is tested.
DOUBLE = ("def double(x):", "return 2 * x")
HALVE = ("def halve(x):", "return x / 2")
DOUBLE_TEST = """check(double(3), 6, what="twice 3", mistakes={"That is the square.": 9})
### BEGIN HIDDEN TESTS
check(double(7), 14, what="twice 7")
### END HIDDEN TESTS"""
HALVE_TEST = """credit = Credit(3)
credit.part(1, "a number", lambda: check(halve(3.0), 1.5))
credit.part(2, "a time", lambda: check(halve(Q_("4 ms")), Q_("2 ms")))
credit.total()"""
RIGHT = {"double": "\n    ".join(DOUBLE), "halve": "\n    ".join(HALVE), "value": "answer = 42"}
MOST = {"double-test": 2.0, "halve-test": 3.0, "value-test": 1.0}
ESSAY = 4.0
CONFIG = f"""
import os
from pathlib import Path
here = Path(__file__).resolve().parent
os.environ["STARVELAB_COURSE"] = str(here / "course")
c = get_config()
load_subconfig("nbgrader_config.py", path={str(REPOSITORY)!r})
c.CourseDirectory.root = str(here)
c.CourseDirectory.source_directory = "source"
c.CourseDirectory.release_directory = "release"
c.IsolatedExecute.imports = []
"""


def graded_cell(cell: NotebookNode, name: str, **flags: object) -> NotebookNode:
    """The cell with a name, and what nbgrader knows of it."""
    usual = {"grade_id": name, "grade": False, "solution": False, "locked": False, "schema_version": 3}
    cell.metadata["nbgrader"] = usual | {"task": False, "cell_type": cell.cell_type} | flags
    cell.id = name
    return cell


def exercise_cells(name: str, head: str, body: str, points: float, test: str) -> list[NotebookNode]:
    """The cell of an answer, as the instructor has it, and that of its test."""
    answer = f"{head}\n    ### BEGIN SOLUTION\n    {body}\n    ### END SOLUTION"
    tested = graded_cell(new_code_cell(test), f"{name}-test", grade=True, locked=True, points=points)
    return [graded_cell(new_code_cell(answer), name, solution=True), tested]


def source() -> dict[str, NotebookNode]:
    """The instructor's notebooks."""
    set_up = [graded_cell(new_code_cell(SET_UP), "set-up", locked=True)]
    value = "answer = ...\n### BEGIN SOLUTION\nanswer = 42\n### END SOLUTION"
    essay = "### BEGIN SOLUTION\nBecause.\n### END SOLUTION"
    one = [
        new_markdown_cell("# One", id="title"),
        *set_up,
        *exercise_cells("double", *DOUBLE, 2, DOUBLE_TEST),
        *exercise_cells("halve", *HALVE, 3, HALVE_TEST),
        graded_cell(new_markdown_cell(essay), "why", grade=True, solution=True, points=ESSAY),
    ]
    two = [
        *[NotebookNode(cell) for cell in set_up],
        graded_cell(new_code_cell(value), "value", solution=True),
        graded_cell(new_code_cell("check(answer, 42)"), "value-test", grade=True, locked=True, points=1),
    ]
    return {"one": new_notebook(cells=one), "two": new_notebook(cells=two)}


@dataclass
class Course:
    """A folder with everything of a course in it."""

    folder: Path

    @classmethod
    def write(cls, folder: Path) -> "Course":
        """Make the course; its assignment is not released yet."""
        it = cls(folder)
        (folder / "source" / TINY).mkdir(parents=True)
        for name, nb in source().items():
            nbformat.write(nb, folder / "source" / TINY / f"{name}.ipynb")
        (folder / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
        return it

    def copy(self, folder: Path) -> "Course":
        """The same course elsewhere."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return Course(folder)

    def released(self) -> dict[str, NotebookNode]:
        """What students are given."""
        return {
            name: nbformat.read(self.folder / "release" / TINY / f"{name}.ipynb", as_version=4)
            for name in ("one", "two")
        }

    def solved(self, **answers: str) -> dict[str, NotebookNode]:
        """The released notebooks with right answers, or with those that are given."""
        found = self.released()
        for nb in found.values():
            for cell in nb.cells:
                cell.source = (RIGHT | answers).get(cell.id, cell.source)
        return found

    def hand_in(self, student: str, files: Mapping[str, NotebookNode | bytes | str]) -> Path:
        """Put files where an instructor collects them; notebooks without an ending are given one."""
        folder = self.submitted(student)
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            path = folder / (
                name if not isinstance(content, NotebookNode) or "." in name else f"{name}.ipynb"
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, NotebookNode):
                content = nbformat.writes(content)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return folder

    def submitted(self, student: str) -> Path:
        return self.folder / "course" / "submitted" / student / TINY

    @cached_property
    def config(self) -> Config:
        # It sets the course's folder and PATH, as for a command that ends.
        with environment_with(STARVELAB_COURSE="", PATH=os.environ["PATH"]):
            config = PyFileConfigLoader("nbgrader_config.py", path=str(self.folder)).load_config()
        config.IsolatedExecute.runners = RUNNERS
        return config

    @cached_property
    def definition(self) -> Definition:
        return Definition.of(CourseDirectory(config=self.config), self.config, TINY)

    def classroom(self) -> Classroom:
        return Classroom(CourseDirectory(config=self.config), self.config, TINY)

    def handed_in(self, student: str) -> Submission:
        return read_submission(self.submitted(student), student, TINY, self.definition.asked)

    def graded(self, student: str) -> GradingResult:
        """The submission, graded in this process."""
        return grade(self.handed_in(student), self.definition, RUNNERS)

    def run(self, *command: str, fine: bool = True, **more: str) -> subprocess.CompletedProcess:
        """Run a command in the course's folder."""
        done = subprocess.run(
            self.command(*command), **self.surroundings(**more), capture_output=True, text=True
        )
        assert not fine or done.returncode == 0, done.stdout + done.stderr
        return done

    def command(self, *command: str) -> list[str]:
        return [str(Path(sys.executable).parent / command[0]), *command[1:]]

    def surroundings(self, **more: str) -> dict:
        return {"cwd": self.folder, "env": {**os.environ, **more}}

    def gradebook(self) -> Gradebook:
        """The gradebook, to be used in a `with`."""
        return Gradebook(f"sqlite:///{self.folder / 'course' / 'gradebook.db'}")

    def scores(self) -> dict[str, dict[str, float | None]]:
        """Points by test in the gradebook, by student and cell."""
        with self.gradebook() as book:
            return {
                submission.student.id: {
                    grade.name: grade.auto_score for nb in submission.notebooks for grade in nb.grades
                }
                for submission in book.assignment_submissions(TINY)
            }


def points(graded: GradingResult) -> dict[str, float | None]:
    """Points by test, by the name of the cell."""
    assert not graded.failed, graded.failed
    return {name: score for cells in graded.grades.values() for name, (score, _) in cells.items()}


def earned(graded: GradingResult) -> float:
    """All points by test."""
    return sum(score or 0 for score in points(graded).values())


def said(graded: GradingResult) -> str:
    """All warnings."""
    return "\n".join(one.text for warnings in graded.warnings.values() for one in warnings)
