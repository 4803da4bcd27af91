"""What may have cost a notebook is told to a person."""

import json

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from starvelab_grader.autograde.execution import RESULT
from starvelab_grader.autograde.notebook_run import ENDED_PYTHON
from starvelab_grader.autograde.task import cost_of_running, outputs_only
from starvelab_grader.submissions.reference import ReferenceCell

CELLS = [
    ReferenceCell(name, "code", "stub", "stub", "", locked=False, grade=False, solution=True) for name in "ab"
]


def submitted(a: object, b: object, outputs: object) -> bytes:
    cells = [
        {"cell_type": "code", "source": source, "outputs": each, "metadata": {"nbgrader": {"grade_id": name}}}
        for name, source, each in (("a", a, outputs), ("b", b, []))
    ]
    return json.dumps({"cells": cells}).encode()


PRINTED = [{"output_type": "stream", "text": "6"}]


@pytest.mark.parametrize(("a", "b", "outputs", "said"), [
    (["stu", "b\n"], "", PRINTED, True),
    ("stub", "mine", PRINTED, False),
    ("stub", "stub", [{"output_type": "error"}], False),
    ("", "", {"a": 1}, False),
    ([1], 5, [None], True),
])  # fmt: skip
def test_outputs_without_answers_are_told(a, b, outputs, said):
    warnings = outputs_only(submitted(a, b, outputs), CELLS)
    assert [one.text for one in warnings] == (
        ["The answers are empty and have outputs, below a: were they lost?"] if said else []
    )
    assert all(one.person for one in warnings)


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"cells": 5}', b'{"cells": [5]}', b"[" * 100_000])
def test_what_is_no_notebook_is_somebody_elses_affair(content):
    assert outputs_only(content, CELLS) == []


def error(name):
    return new_output("error", ename=name, evalue="", traceback=[])


def stream(text):
    return new_output("stream", text=text)


LONG = "The submitted code took longer in all than the 3 s that it may."


@pytest.mark.parametrize(("outputs", "said"), [
    ([stream("fine"), error("ValueError")], []),
    ([error("CellTimeoutError")], ["Cells took longer than they may: c."]),
    ([error("SystemExit")], ["Cells ended Python: c."]),
    ([stream(ENDED_PYTHON)], ["Cells ended Python: c."]),
    ([stream(f"{LONG}\n")] * 2, [f"{LONG} The cells after it were not run."]),
])  # fmt: skip
def test_time_limits_and_cells_that_end_python_are_told(outputs, said):
    nb = new_notebook(cells=[new_code_cell("x", id="c", outputs=outputs)])
    assert [(one.text, one.person) for one in cost_of_running(nb)] == [(text, True) for text in said]


CLOCKED, PLAIN = "assert time.perf_counter() - start < 1", "assert twice(2) == 4"
CASES = [(True, CLOCKED, 0.0), (False, CLOCKED, 0.0), (True, PLAIN, 0.0), (True, CLOCKED, 1.0)]


@pytest.mark.parametrize(("starved", "source", "value"), CASES)
def test_a_check_that_measures_time_on_a_busy_machine_leaves_a_remark(starved, source, value):
    marked = {"grade_id": "quick", "grade": True, "solution": False, "points": 1, "locked": True}
    outputs = [] if value else [error("AssertionError")]
    check = new_code_cell(source, id="c", outputs=outputs, metadata={"nbgrader": marked})
    nb = new_notebook(cells=[check], metadata={RESULT: {"is_starved": starved}})
    said = "Checks measured time while the machine was busy, and failed: quick."
    expected = [said] if starved and "perf_counter" in source and not value else []
    assert [one.text for one in cost_of_running(nb)] == expected
