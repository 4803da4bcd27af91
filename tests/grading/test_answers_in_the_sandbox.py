"""Every wrong answer and every odd right one of the lab earns the same in the sandbox as beside its check.

tests/test_wrong_answers.py runs answer and check in one namespace; here they are apart, as in grading.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_notebook
from nbgrader.utils import determine_grade
from traitlets.config import Config

from starvelab.grading import IsolatedExecute
from starvelab.grading.isolated import runners
from tests.assignments import NOTEBOOKS, Notebook
from tests.hostile.tiny import cell
from tests.wrong_answers.exercises import Answer, Exercise, exercises


def hands(notebook: Notebook) -> list[dict[Exercise, Answer]]:
    """Answers for a whole notebook, so often that each answer of each exercise is among them."""
    mine = [one for one in exercises(notebook.assignment) if one.notebook == notebook.name]
    answers = {one: [*one.wrong, *one.right] for one in mine}
    longest = max(map(len, answers.values()))
    return [
        {one: each[min(number, len(each) - 1)] for one, each in answers.items()} for number in range(longest)
    ]


def filled_in(hand: dict[Exercise, Answer]) -> NotebookNode:
    """Set-up, and each answer with its test."""
    nb = new_notebook(cells=[cell("set-up", list(hand)[-1].setup, locked=True)])
    for one, answer in hand.items():
        nb.cells.append(cell(one.answer_id, answer.source, solution=True))
        nb.cells.append(cell(one.test_id, one.full, grade=True, locked=True, points=one.points))
    return nb


@pytest.fixture(scope="module", autouse=True)
def _the_sandbox_of_all_ends() -> Iterator[None]:
    yield
    runners.end_student()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=str)
def test_each_answer_earns_in_the_sandbox_what_it_should(notebook, tmp_path):
    told = {"assignment": notebook.assignment, "notebook": notebook.name, "student": "everybody"}
    # Nobody may run out of the time that one submission has.
    settings = Config({"IsolatedExecute": {"deadline": 3000.0}})
    found, right = {}, {}
    for number, hand in enumerate(hands(notebook)):
        nb = filled_in(hand)
        resources = {"metadata": {"path": str(tmp_path)}, "nbgrader": told}
        IsolatedExecute(config=settings).preprocess(nb, resources)
        tests = {each.id: each for each in nb.cells}
        for one, answer in hand.items():
            found[number, one.answer_id, answer.what] = determine_grade(tests[one.test_id])[0]
            right[number, one.answer_id, answer.what] = answer.earns
    assert found == right
