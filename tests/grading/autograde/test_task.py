"""Anybody's course: configured in one line, and refused with the reason where safe checks cannot serve it."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config, PyFileConfigLoader

from starvelab.grading.autograde import releasing
from starvelab.grading.autograde.definition import Definition
from starvelab.grading.autograde.nbgrader_private import make_gradebook, schema_of
from starvelab.grading.autograde.releasing import ReleaseError, release
from starvelab.grading.autograde.solution import (
    SolutionError,
    as_submission,
    is_remembered,
    require_full_points,
)
from starvelab.grading.autograde.task import grade
from tests.grading.a_course import _marked, points
from tests.grading.shared_runners import RUNNERS

pytestmark = [pytest.mark.grading, pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")]
QUIZ = "ps1"
CONFIG = """
from starvelab.grading import configure
c = get_config()
configure(c)
c.IsolatedExecute.imports = ["numpy", "IPython"]
"""
# As the notebooks of a course that nobody wrote for this grader: a table, a class, a generator, a decorator,
# and names that a set-up cell and a plain cell define.
SET_UP = """import numpy as np
class Table:
    def __init__(self, **columns): self.columns = {name: np.array(each) for name, each in columns.items()}
    def __getitem__(self, name): return self.columns[name]
    def mean(self): return Table(**{name: [each.mean()] for name, each in self.columns.items()})
times = Table(read=[1.0, 3.0], decode=[2.0, 6.0])"""
PLAIN = "from functools import wraps\nscale = lambda table: table['read'] * 10"
EXERCISES = {  # what is given, the answer, the points, and the check
    "square": ("def square(x):", "return x * x", 3, "assert square(3) == 9"),
    "table": ("def means(table):", "return table.mean()", 2, "assert means(times)['decode'][0] == 4"),
    "class": (
        "class Counter:",
        "n = 0\n    def add(self): self.n += 1; return self",
        2,
        "assert Counter().add().add().n == 2",
    ),
    "generator": (
        "def halves(x):",
        "while True:\n        x /= 2\n        yield x",
        2,
        "it = halves(8.0)\nassert (next(it), next(it)) == (4, 2)",
    ),
    "decorator": (
        "def twice(f):",
        "return wraps(f)(lambda x: f(f(x)))",
        1,
        "@twice\ndef more(x): return x + 1\nassert more(1) == 3",
    ),
    "plain": ("def total(table):", "return scale(table).sum()", 1, "assert total(times) == 40"),
}
ALL = {f"{name}-test": float(most) for name, (_, _, most, _) in EXERCISES.items()}


@pytest.fixture
def quiz(tmp_path, released_course):
    """A course with one notebook, as nbgrader's quickstart lays it out."""
    with released_course.gradebook() as book:
        make_gradebook(tmp_path / "gradebook.db", schema_of(book))
    cells = [_marked(new_code_cell(SET_UP), "set-up", locked=True), new_code_cell(PLAIN, id="plain-code")]
    for name, (head, body, most, check) in EXERCISES.items():
        answer = f"{head}\n    ### BEGIN SOLUTION\n    {body}\n    ### END SOLUTION"
        cells.append(_marked(new_code_cell(answer), name, solution=True))
        cells.append(_marked(new_code_cell(check), f"{name}-test", grade=True, locked=True, points=most))
    (tmp_path / "source" / QUIZ).mkdir(parents=True)
    nbformat.write(new_notebook(cells=cells), tmp_path / "source" / QUIZ / "problem1.ipynb")
    (tmp_path / "nbgrader_config.py").write_text(CONFIG)
    return tmp_path


def configured(folder: Path, **settings: object) -> tuple[CourseDirectory, Config]:
    config = PyFileConfigLoader("nbgrader_config.py", path=str(folder)).load_config()
    config.CourseDirectory.root = str(folder)
    config.IsolatedExecute.update(settings, runners=RUNNERS)
    return CourseDirectory(config=config), config


def test_checks_that_need_more_than_plain_data_are_refused_with_the_cell_and_the_kind_of_value(quiz):
    with pytest.raises(SolutionError) as refused:
        release(*configured(quiz), QUIZ)
    message = str(refused.value)
    assert message.startswith("The reference solution of ps1 does not earn every point, and no student")
    assert "problem1.ipynb, cell class-test (0 of 2): `Counter` cannot leave the sandbox, since it" in message
    assert "problem1.ipynb, cell table-test (0 of 2): " in message
    assert "square-test" not in message
    assert 'c.IsolatedExecute.checks = "inside" in nbgrader_config.py' in message
    assert not (quiz / "release").exists(), "nothing was given out"
    with Gradebook(f"sqlite:///{quiz / 'gradebook.db'}") as book:
        assert book.assignments == []


def test_with_checks_inside_the_solution_earns_all_and_it_is_recorded(quiz, monkeypatch):
    seen = []
    monkeypatch.setattr(releasing, "grade", lambda *given: seen.append(grade(*given)) or seen[-1])
    course, config = configured(quiz, checks="inside")
    release(course, config, QUIZ)
    assert "x * x" not in (quiz / "release" / QUIZ / "problem1.ipynb").read_text()
    assert points(seen[0]) == ALL
    assert sum(ALL.values()) == 11
    assert seen[0].mode == "sandboxed, checks inside"

    assert is_remembered(course, Definition.of(course, config, QUIZ)), "the class need not wait for it"
    assert not is_remembered(course, Definition.of(*configured(quiz), QUIZ))

    # A wrong answer gets no points, nor does anything behind one that ends Python.
    definition = Definition.of(course, config, QUIZ)
    submission = as_submission(definition)
    text = submission.notebooks["problem1"].decode().replace("return x * x", "return x + y")
    submission.notebooks["problem1"] = text.replace("self.n += 1", "import os; os._exit(0)").encode()
    wrong = grade(submission, definition, RUNNERS)
    assert points(wrong) == dict.fromkeys(ALL, 0) | {"table-test": 2}
    with pytest.raises(SolutionError, match=r"test \(0 of 3\): NameError: name 'y'.* not de") as refused:
        require_full_points(definition, lambda _: wrong)
    assert str(refused.value).endswith("\nCorrect the answer or the check.")


def test_what_cannot_be_released_is_said(quiz):
    course, config = configured(quiz)
    with pytest.raises(ReleaseError, match=r"There is no assignment 'ps2' in .*source; there is: ps1\."):
        release(course, config, "ps2")
    path = quiz / "source" / QUIZ / "problem1.ipynb"
    path.write_text(path.read_text().replace('"grade_id": "table-test"', '"grade_id": "class-test"'))
    with pytest.raises(ReleaseError, match=r"nbgrader cannot make ps1: .*class-test.* Nothing was"):
        release(course, config, QUIZ)
    assert not (quiz / "release").exists()
