"""Outside of the sandbox nothing reads a text, an output or a file of a student without a limit."""

import itertools
import json
import time

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from grader.tests.hostile.tiny import FOUND, NOTHING, RIGHT, execute, notebook, points, printed
from grader.tests.shared_runners import RUNNERS
from starvelab_grader.sandbox.process import Runner
from starvelab_grader.submissions.reading import read_notebook
from starvelab_grader.submissions.reference import names_defined
from starvelab_grader.submissions.submission import read_submission

ENDS = "\nimport os\nos._exit(0)"
FORGED = f"""{FOUND}
def run(self, message):
    return {{"outputs": OUTPUTS, "failed": False}}
type(book).run = run
"""
HEAVY = {
    "values of a picture": '[{"data": {"a/b": [[]] * 1_500_000}}]',
    "lists in lists": '[{"data": {"a/b": [[0] * 90] * 20_000}}]',
    "names of metadata": '[{"metadata": {str(number): 0 for number in range(600_000)}}]',
    "lines of a traceback": '[{"output_type": "error", "traceback": [""] * 1_900_000}]',
    "outputs": '[{"output_type": "stream", "name": "stdout", "text": ""}] * 100_000',
}


@pytest.mark.parametrize("source", HEAVY.values(), ids=HEAVY)
def test_forged_outputs_are_weighed_before_anything_looks_at_them(tmp_path, monkeypatch, source):
    looked_at = []
    from_dict = nbformat.from_dict
    monkeypatch.setattr(nbformat, "from_dict", lambda one: looked_at.append(str(one)) or from_dict(one))
    nb = notebook(FORGED.replace("OUTPUTS", source))
    nb.cells.insert(2, nbformat.v4.new_code_cell("1", id="forged"))
    assert points(execute(nb, tmp_path)) == NOTHING
    assert printed(nb, "forged") == "Outputs are left out: a notebook may put out 8 MB in all.\n"
    assert max(map(len, looked_at)) < 10_000


def test_a_cell_that_ended_python_is_searched_for_names_and_not_read_as_python(tmp_path, monkeypatch):
    read, transform = [], TransformerManager.transform_cell
    monkeypatch.setattr(
        TransformerManager, "transform_cell", lambda self, text: read.append(text) or transform(self, text)
    )
    hostile = "a?\n" * 150
    nb = execute(notebook(f"def double(x): return 2 * x\n{hostile}{ENDS}"), tmp_path, student="asker")
    RUNNERS.end_student()
    assert points(nb) == NOTHING
    assert "The submitted code ended Python." in printed(nb, "whole"), "since `double` was in that cell"
    assert not any(hostile in text for text in read)


@pytest.mark.parametrize(("source", "names"), [
    ("def f(x):\n    y = 1\nclass C: pass\nasync def g(): pass", {"f", "C", "g"}),
    ("a = b == 1\nc, d = 1, 2\ne: int = 3\nif f == 2: pass", {"a", "c", "d", "e"}),
    ("import numpy as np, os\nfrom math import pi", {"numpy", "as", "np", "os", "pi"}),
    ("!ls\n%time x = 1\n", set()),
])  # fmt: skip
def test_the_names_of_such_a_cell_are_those_at_its_top_level(source, names):
    assert names_defined(source) == names


def test_what_the_grader_reads_of_a_student_takes_the_students_time(tmp_path, monkeypatch):
    """A clock that shows a second more whenever the grader looks at it while it reads."""
    monkeypatch.setattr(time, "thread_time", itertools.count().__next__)
    nb = notebook(f"print(1)\n{RIGHT}")
    nb.cells[2:2] = [nbformat.v4.new_code_cell("print(2)", id=f"more-{at}") for at in range(8)]
    execute(nb, tmp_path, student="reader", deadline=6)
    RUNNERS.end_student()
    assert "The submitted code took longer in all than the 6 s that it may." in printed(nb, "more-7")


def test_what_checks_work_on_the_values_of_a_student_takes_the_students_time(tmp_path, monkeypatch):
    looks = itertools.count()
    monkeypatch.setattr(Runner, "work", lambda _: float(next(looks)))
    nb = execute(notebook(RIGHT), tmp_path, student="sender", deadline=2)
    RUNNERS.end_student()
    assert "The submitted code took longer in all than the 2 s that it may." in printed(nb, "value")


# --- notebooks --------------------------------------------------------------------------------------------
CODE = {"cell_type": "code", "metadata": {}, "source": "1"}
LINES = ["1,2,[3],{4}\n"]
LARGE = {
    "one text": ("one", lambda: [{"output_type": "stream", "text": "".join(LINES * 2_000_000)}]),
    "as many texts as lines": ("one", lambda: [{"output_type": "stream", "text": LINES * 3_100_000}]),
    "numbers of a picture": (
        "mine", lambda: [{"output_type": "display_data", "data": {"a/b": [[0] * 4000] * 2000}}]
    ),
}  # fmt: skip
NAMED = {"nbgrader": {"grade_id": "a"}}
KEPT = CODE | {"source": 'kept = "\\"outputs\\": ["', "metadata": NAMED}


@pytest.mark.parametrize(("name", "outputs"), LARGE.values(), ids=LARGE)
def test_a_large_notebook_is_read_since_its_outputs_are_made_anew(tmp_path, name, outputs):
    content = {"nbformat": 4, "nbformat_minor": 5, "cells": [KEPT | {"outputs": outputs()}, KEPT]}
    (tmp_path / f"{name}.ipynb").write_text(json.dumps(content))
    submission = read_submission(tmp_path, "ada", "tiny", {"one": {"a"}})
    warnings = [one.text for one in submission.warnings["one"]]
    assert warnings[-1].endswith("MB: its outputs were left out, and are made anew.")
    cells = read_notebook(submission.notebooks["one"])[0].cells
    assert [cell.source for cell in cells] == [KEPT["source"]] * 2


def test_in_fewer_bytes_than_are_allowed_there_may_be_many_values():
    many = KEPT | {"outputs": [{"output_type": "stream", "text": ["\n"] * 3_100_000}]}
    (cell,) = read_notebook(json.dumps({"nbformat": 4, "cells": [many]}).encode())[0].cells
    assert cell.source == KEPT["source"]
