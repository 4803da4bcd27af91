"""A round with stock nbgrader, as an instructor runs it: an assignment's notebooks and wrong answers."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import nbformat
from bs4 import BeautifulSoup
from nbconvert.filters import strip_ansi
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderApp
from nbgrader.preprocessors import ClearHiddenTests

from grader.tests.a_course import Course
from grader.tests.in_process import run_here
from grader.tests.shared_runners import RUNNERS
from starvelab_grader.autograde.feedback import ClearHiddenTracebacks
from tests.assignments import REPOSITORY, Notebook, notebooks_of
from tests.notebooks.exercises import Answer, Exercise, exercises

WALKTHROUGH = "starving-the-gpu"
# One wrong answer for each exercise; all others are tried in test_answers_in_the_sandbox.py, and what else
# people do to their notebooks in test_honest.py.
STUDENT = "mistaken"
# A wrong answer that only a hidden check makes fail, in the student's own function.
FRAGILE = "if max(speedups) < target"
# What is left open in the walkthrough: an answer, with what its test earns nevertheless, and an essay.
LEFT_OPEN = {"predictions-test": 1.5}
BLANK = "explain-audit"

# What is handed in for a manually graded cell of the walkthrough: words, and what must not stay live.
ESSAYS = {
    "explain-wall": "The workers set the step. <script>alert('essay')</script> A faster GPU waits longer. "
    '<a href="javascript:alert(1)">Here</a> or [there](javascript:alert(8))'
    '<img src="x" onerror="alert(1)" alt="no">',
}


@dataclass
class Round:
    """Where a round takes place, what was run, and what is to be expected of it."""

    assignment: str  # what is released and handed in
    repository: Path  # a copy
    course: Path
    before: dict[str, bytes] = field(default_factory=dict)  # the repository's files, by path
    # By test cell, what it should give, and the wrong answer that was submitted; by command, what it printed.
    expected: dict[str, float] = field(default_factory=dict)
    mistakes: dict[str, Answer] = field(default_factory=dict)
    printed: dict[str, str] = field(default_factory=dict)

    @classmethod
    def start(cls, assignment: str, folder: Path) -> "Round":
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
    def predicted(self) -> list[Notebook]:
        """Those whose predictions are locked at home."""
        return self.notebooks[:4] if self.assignment == WALKTHROUGH else self.notebooks

    @property
    def exercises(self) -> tuple[Exercise, ...]:
        """The exercises that tests grade."""
        return exercises(self.assignment)

    def nbgrader(self, command: str, *arguments: str, **variables: str) -> None:
        """Run a command of nbgrader in this process, and keep what it prints: to start one takes seconds."""
        variables |= {"STARVELAB_COURSE": str(self.course)}
        done = run_here(Course(self.repository), NbGraderApp(), command, *arguments, **variables)
        RUNNERS.end_student()
        self.printed[command] = done.stdout + done.stderr

    def hand_in(self) -> None:
        """Hand in wrong answers; where an exercise has none, the answer is right in an odd way."""
        tried = [one for one in self.exercises if one.test_id not in LEFT_OPEN]
        self.mistakes = {
            one.test_id: min(one.wrong, key=lambda answer: FRAGILE not in answer.source)
            for one in tried
            if one.wrong
        }
        given = {one: self.mistakes.get(one.test_id, one.right[0]) for one in tried}
        self.expected = {one.test_id: answer.earns for one, answer in given.items()}
        if self.assignment == WALKTHROUGH:
            self.expected |= LEFT_OPEN
        folder = self.folder("submitted")
        labs = self.repository / "labs" / self.assignment
        shutil.copytree(labs, folder, ignore=shutil.ignore_patterns("*.py"))
        for notebook in self.predicted:
            notebook.lock_predictions(folder)
        cells = {one.answer_id: answer.source for one, answer in given.items()} | ESSAYS
        for path in folder.glob("*.ipynb"):
            nb = nbformat.read(path, as_version=4)
            for cell in nb.cells:
                cell.source = cells.get(cell.id, cell.source)
            nbformat.write(nb, path)

    def files(self) -> dict[str, bytes]:
        """Every file of the repository, by its path."""
        return {
            path.relative_to(self.repository).as_posix(): path.read_bytes()
            for path in self.repository.rglob("*")
            if path.is_file()
        }

    def folder(self, step: str) -> Path:
        """The student's own at a step of nbgrader's."""
        return self.course / step / STUDENT / self.assignment

    def grades(self) -> dict[str, tuple[float | None, bool]]:
        """Points by test, and whether those of a person are due, by the id of the cell."""
        with Gradebook(f"sqlite:///{self.course / 'gradebook.db'}") as book:
            return {
                grade.name: (grade.auto_score, grade.needs_manual_grade)
                for notebook in book.find_submission(self.assignment, STUDENT).notebooks
                for grade in notebook.grades
            }

    @cached_property
    def pages(self) -> dict[str, BeautifulSoup]:
        """Every feedback page of the walkthrough, by notebook."""
        return {
            path.stem: BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
            for path in self.folder("feedback").glob("*.html")
        }

    @cached_property
    def shown(self) -> dict[str, str]:
        """What feedback shows of each notebook: its page, or where none was made what a page is made of."""
        texts = {name: page.get_text() for name, page in self.pages.items()}
        for path in self.folder("autograded").glob("*.ipynb") if not texts else ():
            nb, resources = nbformat.read(path, as_version=4), {}
            for step in (ClearHiddenTracebacks(), ClearHiddenTests()):
                nb, resources = step.preprocess(nb, resources)
            texts[path.stem] = strip_ansi("\n".join(_texts_of(nb)))
        return texts


def _texts_of(nb: NotebookNode) -> Iterator[str]:
    for cell in nb.cells:
        yield cell.source
        for output in cell.get("outputs", ()):
            yield output.get("text") or "\n".join(output.get("traceback", [])) or str(output.get("data"))
