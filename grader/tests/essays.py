"""A class whose essays wait for a person: a gradebook and graded notebooks, of which nothing was run."""

import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from copy import copy
from pathlib import Path
from types import SimpleNamespace

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook
from traitlets.config import Config

from grader.tests.a_course import graded_cell
from starvelab_grader.autograde.definition import Definition
from starvelab_grader.marking import Marking
from starvelab_grader.submissions.reference import ReferenceCell

LAB = "lab"
GIVEN_OUT = "Your answer here."
WHY = """The slower one sets the step.

### BEGIN MARK SCHEME
- 2 points: names the *CPU*.
### END MARK SCHEME"""
QUESTION = "Of the exercise before.\n\n## Exercise 1.2: why (4 points, read by a person)\n\nWhy is *that* so?"


def _source() -> NotebookNode:
    essay = {"grade": True, "solution": True}
    sketch = "### BEGIN SOLUTION\nprint(1)\n### END SOLUTION"
    return new_notebook(
        cells=[
            new_markdown_cell("# 1. One", id="title"),
            graded_cell(new_code_cell("two = 1 + 1"), "sum", solution=True),
            graded_cell(new_code_cell("assert two == 2"), "sum-test", points=1, grade=True, locked=True),
            new_markdown_cell("A note on the exercise before.", id="before"),
            new_markdown_cell(QUESTION, id="question"),
            graded_cell(new_markdown_cell(WHY), "why", points=4, **essay),
            new_markdown_cell("## Exercise 1.3: a sketch", id="draw-it"),
            graded_cell(new_code_cell(sketch), "sketch", points=2, **essay),
            graded_cell(new_markdown_cell("Add cells."), "task", points=3, task=True, locked=True),
            graded_cell(new_code_cell("plot(1)"), "task-code", solution=True),
        ]
    )


def _reference() -> list[ReferenceCell]:
    cells = []
    for cell in (one for one in _source().cells if "nbgrader" in one.metadata):
        flags = {key: cell.metadata.nbgrader[key] for key in ("locked", "grade", "solution", "task")}
        text = GIVEN_OUT if flags["solution"] else cell.source
        points = float(cell.metadata.nbgrader.get("points", 0))
        cells.append(ReferenceCell(cell.id, cell.cell_type, text, text, "", **flags, points=points))
    return cells


class EssayClass:
    """The classroom: students, and what they wrote to the first of the three essays."""

    assignment = LAB

    def __init__(self, folder: Path, answers: Mapping[str, str]) -> None:
        self.folder, self.config = folder, Config()
        with closing(self.gradebook()) as book:
            book.add_assignment(LAB)
            book.add_notebook("one", LAB)
            for cell in _reference():
                book.add_source_cell(cell.name, "one", LAB, cell_type=cell.cell_type, source=cell.source)
                most = {"max_score": cell.points, "cell_type": cell.cell_type}
                if cell.task:
                    book.add_task_cell(cell.name, "one", LAB, **most)
                elif cell.grade:
                    book.add_grade_cell(cell.name, "one", LAB, **most)
                if cell.solution:
                    book.add_solution_cell(cell.name, "one", LAB)
            for student, text in answers.items():
                book.add_student(student, first_name=student.title(), last_name="Smith")
                for grade in book.add_submission(LAB, student).notebooks[0].grades:
                    if grade.name == "sum-test" or (grade.name == "why" and text == GIVEN_OUT):
                        grade.auto_score, grade.needs_manual_grade = 0.0, False
                self.write(student, text)
            book.db.commit()

    def copy(self, folder: Path) -> "EssayClass":
        """The same class elsewhere."""
        made = copy(self)
        made.folder, made.config = Path(shutil.copytree(self.folder, folder)), Config()
        return made

    def gradebook(self) -> Gradebook:
        # Where another program holds the gradebook, SQLite waits for this many seconds.
        return Gradebook(f"sqlite:///{self.folder / 'gradebook.db'}?timeout=0.05")

    def notebooks(self, student: str) -> Path:
        return self.folder / student

    def write(self, student: str, text: str) -> None:
        """Write a graded notebook with that essay, a sketch that printed, and a cell for the task."""
        nb = _source()
        cells = {cell.id: cell for cell in nb.cells}
        cells["why"].source = text
        cells["sketch"].source = "print('drawn')  # once"
        cells["sketch"].outputs = [nbformat.v4.new_output("stream", text="drawn\n")]
        cells["task-code"].source = "plot(2)"
        nb.cells.append(new_markdown_cell(f"My own cell, {student}.", id="own"))
        self.notebooks(student).mkdir(exist_ok=True)
        nbformat.write(nb, self.notebooks(student) / "one.ipynb")

    @property
    def records(self) -> SimpleNamespace:
        students = sorted(path.name for path in self.folder.iterdir() if path.is_dir())
        return SimpleNamespace(notebooks=self.notebooks, students=students)

    @property
    def definition(self) -> Definition:
        source = {"one.ipynb": nbformat.writes(_source()).encode()}
        return Definition(LAB, {"one": _reference()}, source, Config())

    def marking(self, is_mine: Callable[[str], bool] = lambda _: True) -> Marking:
        return Marking(self, is_mine)

    def grade(self, student: str, cell: str = "why") -> tuple[float | None, float | None, bool, str | None]:
        """Points by test and by hand, whether a person has to read it, and the comment."""
        with closing(self.gradebook()) as book:
            place = ("one", LAB, student)
            grade, comment = book.find_grade(cell, *place), book.find_comment(cell, *place)
            return grade.auto_score, grade.manual_score, grade.needs_manual_grade, comment.manual_comment
