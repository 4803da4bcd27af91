"""What the last value of a test cell is worth, and that nbgrader reads the same off its outputs."""

from decimal import Decimal
from fractions import Fraction
from math import inf, nan

import nbformat
import numpy as np
import pytest
from nbgrader.utils import determine_grade

from starvelab import Q_
from starvelab_grader.autograde.outputs import points_for, scored
from starvelab_grader.sandbox.codec import Encoder

CASES = [
    (3, 3), (3.0, 3), (0, 0), (2.5, 2.5), (np.float64(1.0), 1), (np.int64(0), 0), (np.array(2.0), 2),
    (Fraction(1, 2), 0.5), (Decimal("1.5"), 1.5), (Q_(2, ""), 2), (True, 4), (False, 0), (np.bool_(False), 0),
    (nan, 0), (inf, 4), (-1, 0), (5, 4), (None, 4), ("done", 4), ([0], 4), (Q_(2, "ms"), 4),
]  # fmt: skip


def as_nbgrader_reads(outputs):
    cell = nbformat.v4.new_code_cell(outputs=[nbformat.from_dict(one) for one in outputs])
    cell.metadata["nbgrader"] = {"grade": True, "solution": False, "points": 4, "grade_id": "x"}
    nbformat.validate(nbformat.v4.new_notebook(cells=[cell]))
    return determine_grade(cell)


def stream(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": text}


RESULT = {"output_type": "execute_result", "data": {"text/plain": "?"}, "metadata": {}}
RESULT["execution_count"] = None
ERROR = {"output_type": "error", "ename": "E", "evalue": "", "traceback": []}


@pytest.mark.parametrize(("value", "worth"), CASES)
def test_a_cell_is_worth_its_last_value_and_all_if_that_is_no_number(value, worth):
    outputs = [stream("said"), *([] if value is None else [RESULT])]
    reply = {"outputs": outputs, "failed": False, "value": Encoder().encode(value)}
    assert as_nbgrader_reads(scored(reply, 4.0)) == (worth, 4)
    assert points_for(value, 4.0) in (worth, None)


@pytest.mark.parametrize(
    ("outputs", "failed", "value", "worth"),
    [
        ([stream("careful", "stderr")], False, None, 4),
        ([stream("6.0"), RESULT, ERROR], True, 4, 0),
        ([ERROR], False, 2, 2),
        ([], False, {"!": "unheard-of"}, 4),
        ([], True, 4, 0),
    ],
    ids=["a warning", "an error", "an error that is only shown", "no number", "an error that was lost"],
)
def test_what_else_a_cell_put_out_costs_all_or_nothing(outputs, failed, value, worth):
    reply = {"outputs": outputs, "failed": failed, "value": value}
    assert as_nbgrader_reads(scored(reply, 4.0)) == (worth, 4)
