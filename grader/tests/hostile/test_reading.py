"""Outside of the sandbox nothing reads a text, an output or a file of a student without a limit."""

import ast
import itertools
import json
import time
from importlib import import_module
from pathlib import Path

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

import starvelab_grader
from grader.tests.hostile.tiny import FOUND, NOTHING, RIGHT, execute, notebook, points, printed
from grader.tests.shared_runners import RUNNERS
from starvelab_grader.autograde.notebook_run import names_defined
from starvelab_grader.sandbox.process import Runner
from starvelab_grader.submissions.reading import UnreadableNotebookError, read_notebook
from starvelab_grader.submissions.submission import read_submission

PACKAGE = Path(starvelab_grader.__file__).parent
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
NOTEBOOKS = {
    "values": (
        '{"cells": [' + "[]," * 1_600_000 + "0]}",
        "holds more than 3000000 values. Clear its outputs",
    ),
    "names": (
        json.dumps({"cells": [], **{str(n): 0 for n in range(3_100_000)}}),
        "holds more than 3000000 values",
    ),
    "an old format": (
        json.dumps({"nbformat": 3, "worksheets": [{"cells": [{}] * 60_000}]}),
        "more than 50000 values",
    ),
    "cells": (json.dumps({"cells": [CODE] * 2001}), "has 2001 cells, and 2000 are allowed"),
    "text": (
        json.dumps({"cells": [CODE | {"source": "a" * 2_600_000}] * 2}),
        "has cells with 5200000 characters",
    ),
    "nested": ("[" * 200_000, "is nested more deeply than any notebook is"),
}


@pytest.mark.parametrize(("text", "said"), NOTEBOOKS.values(), ids=NOTEBOOKS)
def test_a_notebook_that_would_take_long_is_not_read(text, said):
    with pytest.raises(UnreadableNotebookError, match=said):
        read_notebook(text.encode())


def test_a_large_notebook_is_read_since_its_outputs_are_made_anew(tmp_path):
    rows = {"output_type": "stream", "name": "stdout", "text": "1,2,[3],{4}\n" * 2_000_000}
    cells = [CODE | {"source": "kept = 1", "outputs": [rows]}]
    (tmp_path / "one.ipynb").write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "cells": cells}))
    submission = read_submission(tmp_path, "ada", "tiny", {"one": set()})
    assert submission.rejected == {}
    assert [one.text for one in submission.warnings["one"]] == [
        "`one.ipynb` has 26 MB: its outputs were left out, and are made anew."
    ]
    (cell,) = read_notebook(submission.notebooks["one"])[0].cells
    assert cell.source == "kept = 1"


# --- every place that reads -------------------------------------------------------------------------------
# What makes values or a page of a text: the size of the text alone does not tell how long that takes.
CALLS = {
    "loads", "reads", "validate", "from_dict", "literal_eval", "symtable", "transform_cell",
    "compile", "eval", "exec", "ZipFile", "reader", "DictReader", "restore", "from_notebook_node",
    "safe_load", "BeautifulSoup", "read_notebook",
}  # fmt: skip
CALLS_OF_MODULES = {"nbformat.read", "ast.parse", "_TarArchive.open", "tarfile.open"}
OURS = "the instructor's, the platform's, or the grader's own"
SANDBOX = "what a process of the sandbox or of the checks does to itself"
# By file and function whose text each of them reads; of a student's the constant that limits it.
READERS = {
    "autograde/execution.py:preprocess": "submissions.reading.MAX_TEXT",
    "autograde/outputs.py:as_nodes": "autograde.outputs.VALUE_SIZE",
    "autograde/outputs.py:checked": "autograde.outputs.VALUE_SIZE",
    "autograde/task.py:_read": "submissions.reading.MAX_VALUES",
    "autograde/task.py:_add": "submissions.reading.MAX_CELLS",
    "autograde/losses.py:outputs_only": "submissions.reading.MAX_VALUES",
    "marking.py:_written": "submissions.reading.MAX_CELLS",
    "report/class_report.py:sections": "batch.one_student.READ_TIMEOUT",
    "report/pages.py:_part": "submissions.reading.MAX_CELLS",
    "report/rendering.py:rendered": "report.rendering.NOTEBOOK_TIMEOUT",
    "sandbox/channel.py:receive": "sandbox.channel.MAX_MESSAGE",
    "submissions/archives.py:_zip": "submissions.archives.MAX_ENTRIES",
    "submissions/archives.py:_tar": "submissions.archives.MAX_HEADERS",
    "submissions/reading.py:read_notebook": "submissions.reading.MAX_OLD_VALUES",
    "submissions/reading.py:_json": "submissions.reading.MAX_VALUES",
    "submissions/reading.py:_new_cell": "submissions.reading.MAX_CELLS",
} | dict.fromkeys((
    "autograde/releasing.py:_losses", "autograde/releasing.py:_require_gradable",
    "batch/classroom.py:_extensions", "batch/records.py:from_json", "commands/mark.py:put",
    "commands/autograder/__init__.py:_build_wheels", "commands/autograder/__init__.py:write_autograder",
    "commands/platforms.py:_write", "commands/run.py:_read_definition",
    "lms/collecting.py:_opened", "lms/collecting.py:load_origins",
    "lms/returning.py:packed", "lms/returning.py:returned", "report/class_report.py:read_mistakes",
    "report/findings.py:load_looked_at", "submissions/reference.py:_scopes",
    "submissions/reference.py:_tree", "submissions/reference.py:parse_cells",
), OURS) | dict.fromkeys((
    "sandbox/bubblewrap.py:program", "sandbox/runner.py:_bound_value", "sandbox/runner.py:_run_text",
), SANDBOX)  # fmt: skip


def reads(function: ast.AST) -> bool:
    names = {ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
    return not names.isdisjoint(CALLS_OF_MODULES) or any(
        name.rpartition(".")[2] in CALLS and not name.startswith("re.") for name in names
    )


def test_every_place_that_reads_a_text_is_known_and_of_a_students_has_a_limit():
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and reads(node):
                found.add(f"{path.relative_to(PACKAGE).as_posix()}:{node.name}")
    assert found == READERS.keys()
    for limit in set(READERS.values()) - {OURS, SANDBOX}:
        module, _, name = limit.rpartition(".")
        assert getattr(import_module(f"starvelab_grader.{module}"), name) > 0
