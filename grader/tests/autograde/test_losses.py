"""What may have cost a notebook is told to a person."""

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from starvelab_grader.autograde.losses import answered_elsewhere, cost_of_running
from starvelab_grader.autograde.notebook_run import ENDED_PYTHON
from starvelab_grader.submissions.reference import ReferenceCell


def error(name):
    return new_output("error", ename=name, evalue="", traceback=[])


def stream(text):
    return new_output("stream", text=text)


LONG = "The submitted code took longer in all than the 3 s that it may."


@pytest.mark.parametrize(("outputs", "said"), [
    ([stream("fine"), error("ValueError")], []),
    ([error("CellTimeoutError")], ["Cells exceeded their time limit: c."]),
    ([error("SystemExit")], ["Cells ended Python: c."]),
    ([stream(ENDED_PYTHON)], ["Cells ended Python: c."]),
    ([stream(f"{LONG}\n")] * 2, [f"{LONG} The cells after it were not run."]),
])  # fmt: skip
def test_time_limits_and_cells_that_end_python_are_told(outputs, said):
    nb = new_notebook(cells=[new_code_cell("x", id="c", outputs=outputs)])
    assert [(one.text, one.person) for one in cost_of_running(nb)] == [(text, True) for text in said]


def answer_cell(name: str, source: str, outputs=()):
    flags = {"grade_id": name, "grade": False, "solution": True, "locked": False, "points": 0}
    return new_code_cell(source, id=name, outputs=list(outputs), metadata={"nbgrader": flags})


def checked_cell(name: str, *outputs):
    flags = {"grade_id": name, "grade": True, "solution": False, "locked": True, "points": 1}
    return new_code_cell("check()", id=name, outputs=list(outputs), metadata={"nbgrader": flags})


LOST, LACKS = error("AssertionError"), new_output("error", ename="x", evalue="No module named 'pandas'")


@pytest.mark.parametrize(("source", "outputs", "test", "said"), [
    ("import pandas as pd", [LACKS], [LOST], True),
    ("def f():\n    from pandas import DataFrame", [], [LACKS], True),
    ("x = 1", [LACKS], [LOST], False),  # who only says so imports nothing
    ("import pandas", [LACKS], [], False),  # all points
])  # fmt: skip
def test_a_package_that_the_grader_lacks_is_told(source, outputs, test, said):
    nb = new_notebook(cells=[answer_cell("f", source, outputs), checked_cell("f-test", *test)])
    text = "The grader has no package `pandas`, which your cells import."
    assert [one.text for one in cost_of_running(nb)] == [text] * said


F, G = (
    ReferenceCell(name, "code", f"def {name}(x): return x", "stub", "", False, grade=False, solution=True)
    for name in "fg"
)
TESTS = [ReferenceCell(f"{name}-test", "code", "", "", "", True, True, False, points=1.0) for name in "fg"]
BOTH = "def f(x): return 1\ndef g(x): return 2"


@pytest.mark.parametrize(("f", "g", "own", "lost", "places"), [
    ("stub", BOTH, "", [LOST], "g"),
    (None, BOTH, "", [LOST], "g"),
    ("stub", "g = 1", "f = 2", [LOST], "`f = 2`"),
    ("stub", BOTH, "", [], ""),  # all points
    ("f = 1", BOTH, "", [LOST], ""),  # an answer stands there
    ("stub", "g = 1", "", [LOST], ""),  # nowhere
])  # fmt: skip
def test_an_answer_in_another_cell_is_told(f, g, own, lost, places):
    cells = [] if f is None else [answer_cell("f", f)]
    cells += [checked_cell("f-test", *lost), answer_cell("g", g), checked_cell("g-test")]
    nb = new_notebook(cells=[*cells, new_code_cell(own, id="own")])
    said = answered_elsewhere(nb, [F, TESTS[0], G, TESTS[1]])
    text = f"f has no answer in its cell. It may be in another cell: {places}."
    assert [(one.text, one.person) for one in said] == ([(text, True)] if places else [])
