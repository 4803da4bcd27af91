"""`%%watch` in a shell of IPython, in a process of its own: it keeps what a shell sets up."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("torch")

CODE = """
import io, json, sys
from contextlib import redirect_stdout
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
found = []
for cell in json.loads(sys.argv[1]):
    with redirect_stdout(io.StringIO()) as printed:
        result = shell.run_cell(cell)
    found.append([printed.getvalue(), repr(result.error_before_exec or result.error_in_exec)])
print(json.dumps(found))
"""
LOOP = """
import time
from torch.utils.data import DataLoader
for batch in DataLoader(range(200), batch_size=2):
    time.sleep(0.0001)
"""


def run_cells(*cells: str) -> list[list[str]]:
    """What each cell of a notebook prints, and the error that it ends with."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps(["%load_ext starvelab", *cells])],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    loaded, *found = json.loads(done.stdout.splitlines()[-1])
    assert loaded == ["", "None"]
    return found


def test_a_cell_runs_as_it_is_and_its_loops_are_reported_below_it():
    (printed, error), (later, _), (unknown, wrong), (none, _), (probed, _) = run_cells(
        f"%%watch\n{LOOP}\nfound = len(batch)\nprint('done', found)",
        "found + 1; print(found)",
        "%%watch --prob\nfound = 0",
        "%%watch\nprint(found)",
        f"%%watch --probe\n{LOOP}",
    )
    assert error == "None"
    first, report, state, remedy = printed.splitlines()
    assert first == "done 2"
    assert report == "starvelab doctor: range at line 5 of a cell, 100 batches"
    assert state.startswith("  The training loop waits ")
    assert remedy.startswith("  ")
    assert later == "2\n", "the names of the cell are those of the notebook"
    assert "InputError('%%watch takes --probe or nothing, got --prob. Take one of these.')" in wrong
    assert "Traceback" in unknown or unknown == ""
    assert none == (
        "2\nstarvelab doctor: no loop went over a DataLoader of PyTorch. Put watch(loader) around the loader "
        "of the loop instead.\n"
    )
    assert "The largest stage is " in probed


def test_a_cell_that_fails_shows_its_error_once_and_what_was_found():
    ((printed, error),) = run_cells(f"%%watch\n{LOOP}\n1 / 0")
    assert printed.count("ZeroDivisionError") == 2, "the name and the message of one traceback"
    assert "starvelab doctor: range at line 5 of a cell, 100 batches" in printed
    assert error == "CellError()"
