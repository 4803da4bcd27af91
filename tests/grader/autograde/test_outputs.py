"""What the last value of a test cell is worth, and that nbgrader reads the same off its outputs."""

from __future__ import annotations

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
    (3, 3),
    (3.0, 3),
    (0, 0),
    (2.5, 2.5),
    (np.float64(1.0), 1),
    (np.int64(0), 0),
    (np.array(2.0), 2),
    (Fraction(1, 2), 0.5),
    (Decimal("1.5"), 1.5),
    (Q_(2, ""), 2),
    (True, 4),
    (False, 0),
    (np.bool_(False), 0),
    (nan, 0),
    (inf, 4),
    (-1, 0),
    (5, 4),
    (None, 4),
    ("done", 4),
    ([0], 4),
    (Q_(2, "ms"), 4),
]


def as_nbgrader_reads(outputs):
    cell = nbformat.v4.new_code_cell(outputs=[nbformat.from_dict(one) for one in outputs])
    cell.metadata["nbgrader"] = {"grade": True, "solution": False, "points": 4, "grade_id": "x"}
    nbformat.validate(nbformat.v4.new_notebook(cells=[cell]))
    return determine_grade(cell)


def stream(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": text}


RESULT = {
    "output_type": "execute_result",
    "data": {"text/plain": "?"},
    "metadata": {},
    "execution_count": None,
}
ERROR = {"output_type": "error", "ename": "E", "evalue": "", "traceback": []}


@pytest.mark.parametrize(("value", "worth"), CASES)
def test_a_cell_is_worth_its_last_value_and_all_if_that_is_no_number(value, worth):
    outputs = [stream("said"), *([] if value is None else [RESULT])]
    reply = {"outputs": outputs, "failed": False, "value": Encoder().encode(value)}
    assert as_nbgrader_reads(scored(reply, 4.0)) == (worth, 4)
    assert points_for(value, 4.0) in (worth, None)


def test_a_warning_costs_nothing():
    reply = {"outputs": [stream("careful", "stderr")], "failed": False, "value": None}
    assert as_nbgrader_reads(scored(reply, 4.0)) == (4, 4)


def test_an_error_costs_all_whatever_came_before_it():
    reply = {"outputs": [stream("6.0"), RESULT, ERROR], "failed": True, "value": 4}
    assert as_nbgrader_reads(scored(reply, 4.0)) == (0, 4)


def test_an_error_that_a_cell_only_shows_is_none():
    reply = {"outputs": [ERROR], "failed": False, "value": 2}
    assert as_nbgrader_reads(scored(reply, 4.0)) == (2, 4)


def test_what_cannot_be_read_is_no_number():
    reply = {"outputs": [], "failed": False, "value": {"!": "unheard-of"}}
    assert as_nbgrader_reads(scored(reply, 4.0)) == (4, 4)


def test_a_check_that_failed_costs_all_even_where_its_error_was_lost():
    assert as_nbgrader_reads(scored({"outputs": [], "failed": True, "value": 4}, 4.0)) == (0, 4)
