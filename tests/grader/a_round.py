"""A round with stock nbgrader, as an instructor runs it, and the submissions that are handed in.

It knows what each submission has to earn; whether it does is for the tests to say. Every assignment has a
round, made of its notebooks and their wrong answers; that of the walkthrough has right ones beside them.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import nbformat
from bs4 import BeautifulSoup
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderApp
from nbgrader.utils import is_solution

from tests.assignments import ASSIGNMENTS, REPOSITORY, Notebook, notebooks_of
from tests.grader.a_course import Course
from tests.grader.in_process import run_here
from tests.grader.shared_runners import RUNNERS
from tests.wrong_answers.exercises import Answer, Exercise, exercises, graded_cells

WALKTHROUGH = "starving-the-gpu"
# One wrong answer for each exercise; all others are tried in test_answers_in_the_sandbox.py.
MISTAKEN = "mistaken"
# A wrong answer that only a hidden check makes fail, in the student's own function.
FRAGILE = "if max(speedups) < target"
NOISY = "honest-noise"
STUDENTS = {name: [MISTAKEN] for name in ASSIGNMENTS} | {WALKTHROUGH: [MISTAKEN, NOISY]}
# Who has locked every prediction at home.
PREDICTED = {name: students[-1] for name, students in STUDENTS.items()}
# What the student with mistakes leaves open: an answer, with what its test earns nevertheless, and an essay.
LEFT_OPEN = {"predictions-test": 1.5}
BLANK = "explain-audit"

# What is handed in for the walkthrough's manually graded cells: words, and what must not stay live.
ESSAYS = {
    "explain-wall": "The workers set the step. <script>alert('essay')</script> A faster GPU waits longer.",
    "explain-audit": 'Who measured it? <a href="javascript:alert(1)">Here</a> or [there](javascript:alert(8))'
    '<img src="x" onerror="alert(1)" alt="no">',
}
MARKS_FOR_NOISE = {"explain-wall": 4.0, "explain-audit": 1.5}
COMMENT = "Name the *resource*."

# What people leave in their notebooks.
SCRATCH = (
    'import sys, warnings\nwarnings.warn("this will be removed")\nprint("careful", file=sys.stderr)\n2 + 2',
    'from IPython.display import HTML, SVG, Javascript, display\ndisplay(Javascript("alert(2)"))\n'
    'display(HTML("<script>alert(3)</script><b onclick=alert(4)>bold</b><iframe src=//a.org></iframe>"))\n'
    "display(SVG(\"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(5)'><script>6</script></svg>\"))",
    "1 / 0",
)
NOISE = 'import sys, warnings\nwarnings.warn("soon deprecated")\nprint("debug")\nprint("!", file=sys.stderr)'


@dataclass
class Round:
    """Where a round takes place, what was run, and what is to be expected of it."""

    assignment: str  # what is released and handed in
    repository: Path  # a copy
    course: Path
    before: dict[str, bytes] = field(default_factory=dict)  # the repository's files, by path
    expected: dict[str, dict[str, float]] = field(default_factory=dict)  # by student, and by test cell
    # By test cell, the wrong answer of the student with mistakes; by student, the points that a person gives
    # for each essay; by command, what it printed.
    mistakes: dict[str, Answer] = field(default_factory=dict)
    marks: dict[str, dict[str, float]] = field(default_factory=dict)
    printed: dict[str, str] = field(default_factory=dict)

    @classmethod
    def start(cls, assignment: str, folder: Path) -> Round:
        """Copy what an instructor has, so that nothing that is run here reaches the repository."""
        it = cls(assignment=assignment, repository=folder / "repository", course=folder / "course")
        for name in ("solutions", "labs"):
            shutil.copytree(
                REPOSITORY / name,
                it.repository / name,
                ignore=shutil.ignore_patterns("predictions.json*", "__pycache__", ".ipynb_checkpoints"),
            )
        shutil.copy(REPOSITORY / "nbgrader_config.py", it.repository)
        it.before = it.files()
        return it

    @property
    def notebooks(self) -> list[Notebook]:
        """The notebooks of the assignment."""
        return notebooks_of(self.assignment)

    @property
    def exercises(self) -> tuple[Exercise, ...]:
        """The exercises that tests grade."""
        return exercises(self.assignment)

    @property
    def essays(self) -> dict[str, tuple[Notebook, float]]:
        """The cells that a person grades, with their notebooks and points."""
        return {
            name: (notebook, cell.metadata.nbgrader.points)
            for notebook in self.notebooks
            for name, cell in graded_cells(notebook.solution).items()
            if cell.cell_type == "markdown" and cell.metadata.nbgrader.grade
        }

    def nbgrader(self, command: str, *arguments: str) -> None:
        """Run a command of nbgrader in this process, and keep what it prints: to start one takes seconds."""
        course = Course(self.repository)
        done = run_here(course, NbGraderApp(), command, *arguments, STARVELAB_COURSE=str(self.course))
        RUNNERS.end_student()
        self.printed[command] = done.stdout + done.stderr

    # --- handing in -----------------------------------------------------------------------------------

    def hand_in(
        self,
        student: str,
        expected: dict[str, float],
        *,
        cells: Mapping[str, str],
        predicted: Sequence[Notebook] = (),
    ) -> Path:
        """Fill `cells` of the released notebooks and put them where an instructor collects them."""
        self.expected[student] = expected
        folder = self.course / "submitted" / student / self.assignment
        given = self.repository / "labs" / self.assignment
        shutil.copytree(given, folder, ignore=shutil.ignore_patterns("*.py"))
        for notebook in predicted:
            notebook.lock_predictions(folder)
        for path in folder.glob("*.ipynb"):
            notebook = nbformat.read(path, as_version=4)
            for cell in notebook.cells:
                cell.source = cells.get(cell.id, cell.source)
            nbformat.write(notebook, path)
        return folder

    def full_marks(self) -> dict[str, float]:
        """What whoever gets every exercise right earns."""
        return {one.test_id: one.points for one in self.exercises}

    # --- what came of it ------------------------------------------------------------------------------

    def files(self) -> dict[str, bytes]:
        """Every file of the repository, by its path."""
        return {
            path.relative_to(self.repository).as_posix(): path.read_bytes()
            for path in self.repository.rglob("*")
            if path.is_file()
        }

    def gradebook(self) -> Gradebook:
        """The gradebook, to be used in a `with`."""
        return Gradebook(f"sqlite:///{self.course / 'gradebook.db'}")

    def grades(self, student: str) -> dict[str, tuple[float | None, float | None, bool]]:
        """Points by test and by hand, and whether the latter are due, by the id of the cell."""
        with self.gradebook() as book:
            return {
                grade.name: (grade.auto_score, grade.manual_score, grade.needs_manual_grade)
                for notebook in book.find_submission(self.assignment, student).notebooks
                for grade in notebook.grades
            }

    def scores(self, student: str) -> dict[str, float | None]:
        """Points by test, by the id of the test cell."""
        grades = self.grades(student)
        return {one.test_id: grades[one.test_id][0] for one in self.exercises}

    def exported(self) -> dict[str, dict[str, str]]:
        """Rows of the exported table, by student."""
        with (self.course / "grades.csv").open(encoding="utf-8", newline="") as file:
            return {row["student_id"]: row for row in csv.DictReader(file)}

    @cached_property
    def pages(self) -> dict[tuple[str, str], BeautifulSoup]:
        """Every feedback page, by student and notebook."""
        folder = self.course / "feedback"
        return {
            (student, notebook.name): BeautifulSoup(
                (folder / student / self.assignment / f"{notebook.name}.html").read_text(encoding="utf-8"),
                "html.parser",
            )
            for student in STUDENTS[self.assignment]
            for notebook in self.notebooks
        }


def hand_everything_in(it: Round) -> None:
    """One submission of each kind."""
    hand_in_the_mistakes(it)
    if it.assignment == WALKTHROUGH:
        hand_in_honest_noise(it)


def hand_in_the_mistakes(it: Round) -> None:
    """Hand in wrong answers; where an exercise has none, the answer is right in an odd way.

    In the walkthrough half of the predictions are locked at home, and an answer and an essay are left open.
    """
    it.mistakes = {
        one.test_id: min(one.wrong, key=lambda answer: FRAGILE not in answer.source)
        for one in it.exercises
        if one.wrong and one.test_id not in LEFT_OPEN
    }
    given = {
        one: it.mistakes.get(one.test_id, one.right[0])
        for one in it.exercises
        if one.test_id not in LEFT_OPEN
    }
    it.hand_in(
        MISTAKEN,
        {one.test_id: answer.earns for one, answer in given.items()}
        | (LEFT_OPEN if it.assignment == WALKTHROUGH else {}),
        cells={one.answer_id: answer.source for one, answer in given.items()}
        | {name: ESSAYS.get(name, "In the learner's own words.") for name in it.essays if name != BLANK},
        predicted=it.notebooks if PREDICTED[it.assignment] == MISTAKEN else it.notebooks[:4],
    )


def hand_in_honest_noise(it: Round) -> None:
    """Right answers in notebooks that look lived in: warnings, cells copied and deleted, other files."""
    folder = it.hand_in(
        NOISY,
        it.full_marks(),
        cells={one.answer_id: noisy(one) for one in it.exercises} | ESSAYS,
        predicted=it.notebooks,
    )
    for path in folder.glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        known = graded_cells(path)
        unmarked = [cell.id for cell in notebook.cells if cell.cell_type == "code" and cell.id not in known]
        # A test cell that was deleted by accident comes back; any other is nobody's business.
        deleted = {"data-demand-test", unmarked[-1]}
        notebook.cells = [cell for cell in notebook.cells if cell.id not in deleted]
        # Copied and pasted, a cell takes its nbgrader metadata along.
        answer = next(number for number, cell in enumerate(notebook.cells) if is_solution(cell))
        copied = notebook.cells[answer : answer + 2]
        notebook.cells[answer + 2 : answer + 2] = [
            NotebookNode({**cell, "id": f"{cell.id}-copy"}) for cell in copied
        ]
        notebook.cells[3:3] = [nbformat.v4.new_code_cell(source) for source in SCRATCH]
        notebook.cells.append(nbformat.v4.new_markdown_cell("<script>alert(7)</script> my notes: 2 > 1"))
        nbformat.write(notebook, path)
    for name, text in {
        "notes.txt": "to do",
        "data/timings.csv": "1,2",
        "math.py": "raise SystemExit",
        ".ipynb_checkpoints/01_compute_baseline-checkpoint.ipynb": "{}",
        "scratch.ipynb": nbformat.writes(nbformat.v4.new_notebook()),
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def noisy(exercise: Exercise) -> str:
    """The solution, printing and warning whenever it is called."""
    lines = exercise.solution.splitlines()
    start = next(number for number, line in enumerate(lines) if "BEGIN SOLUTION" in line)
    margin = lines[start].removesuffix(lines[start].lstrip())
    return "\n".join([*lines[:start], *(margin + line for line in NOISE.splitlines()), *lines[start:]])


def mark_essays(it: Round) -> None:
    """What an instructor does in formgrader: points and a comment for each essay that waits for them."""
    full = {name: points for name, (_, points) in it.essays.items()}
    it.marks = {PREDICTED[it.assignment]: MARKS_FOR_NOISE if it.assignment == WALKTHROUGH else full}
    with it.gradebook() as book:
        for student, marks in it.marks.items():
            for cell, points in marks.items():
                place = (cell, it.essays[cell][0].name, it.assignment, student)
                grade = book.find_grade(*place)
                assert grade.needs_manual_grade, f"{cell} of {student} does not wait for a person"
                grade.manual_score = points
                grade.needs_manual_grade = False
                book.find_comment(*place).manual_comment = COMMENT
        book.db.commit()
