"""Every wrong answer and every odd right one of the lab earns the same in the sandbox as beside its check.

tests/test_wrong_answers.py runs answer and check in one namespace; here they are apart, as in grading.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.utils import determine_grade, is_grade
from traitlets.config import Config

from starvelab.grading import IsolatedExecute
from starvelab.grading.autograde.execution import RESULT
from starvelab.measure.training_script import starved_script
from tests.assignments import NOTEBOOKS, Notebook
from tests.grading.shared_runners import RUNNERS
from tests.hostile.tiny import cell
from tests.wrong_answers.exercises import exercises

# Some answers lock predictions.
FORGET = "from pathlib import Path\nPath('predictions.json').write_text('{}')"


def filled_in(notebook: Notebook) -> tuple[NotebookNode, dict[str, float]]:
    """Set-up, and for each exercise one answer after the other with its test; what each test cell gives.

    The right answers come last, since later exercises build on them.
    """
    mine = [one for one in exercises(notebook.assignment) if one.notebook == notebook.name]
    nb, earned = new_notebook(cells=[cell("set-up", mine[-1].setup, locked=True)]), {}
    for one in mine:
        for number, answer in enumerate([*one.wrong, *one.right]):
            test = f"{one.test_id}-{number}"
            nb.cells.append(new_code_cell(FORGET))
            nb.cells.append(cell(f"{one.answer_id}-{number}", answer.source, solution=True))
            nb.cells.append(cell(test, one.full, grade=True, locked=True, points=one.points))
            earned[test] = answer.earns
    return nb, earned


@pytest.fixture(scope="module", autouse=True)
def _the_sandbox_of_all_ends() -> Iterator[None]:
    yield
    RUNNERS.end_student()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=str)
def test_each_answer_earns_in_the_sandbox_what_it_should(notebook, tmp_path):
    nb, earned = filled_in(notebook)
    told = {"assignment": notebook.assignment, "notebook": notebook.name, "student": "everybody"}
    # Nobody may run out of the time that one submission has.
    settings = Config({"IsolatedExecute": {"deadline": 3000.0, "runners": RUNNERS}})
    IsolatedExecute(config=settings).preprocess(nb, {"metadata": {"path": str(tmp_path)}, "nbgrader": told})
    assert {each.id: determine_grade(each)[0] for each in nb.cells if is_grade(each)} == earned
    designs = nb.metadata[RESULT]["designs"]
    assert bool(designs) == any(one.startswith("my-design-test") for one in earned)
    # The last is a right answer, which is busy enough.
    assert all(busy >= 0.9 for _, busy in list(designs.values())[-1:])


def test_a_script_that_was_repaired_in_its_file_earns_its_points(tmp_path):
    """The file beside the notebook reaches the sandbox, and the starved one does not take its place."""
    exercise = next(one for one in exercises("master-the-loader") if one.answer_id == "my-script")
    names = {"script_text": lambda _: starved_script()}
    exec(exercise.solution.replace("what_it_does(text, width, height)", "text"), names)
    (tmp_path / "train.txt").write_text(names["my_script"](0, 0), encoding="utf-8")
    answer = 'def my_script(width, height):\n    return what_it_does(script_text("train.txt"), width, height)'
    nb = new_notebook(
        cells=[
            cell("set-up", exercise.setup, locked=True),
            cell("my-script", answer, solution=True),
            cell("my-script-test", exercise.full, grade=True, locked=True, points=exercise.points),
        ]
    )
    told = {"assignment": exercise.assignment, "notebook": exercise.notebook, "student": "ada"}
    settings = Config({"IsolatedExecute": {"runners": RUNNERS}})
    IsolatedExecute(config=settings).preprocess(nb, {"metadata": {"path": str(tmp_path)}, "nbgrader": told})
    assert determine_grade(nb.cells[-1])[0] == exercise.points
