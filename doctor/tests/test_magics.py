"""`%%watch` in a shell of IPython, in a process of its own: it keeps what a shell sets up."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.programs

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


def test_a_cell_runs_as_it_is_and_its_loops_are_reported_below_it():
    cells = [
        "%load_ext starvelab_doctor", f"%%watch\n{LOOP}\nfound = len(batch)\nprint('done', found)",
        "found + 1; print(found)", "%%watch --prob\nfound = 0", "%%watch\nprint(found)",
        f"%%watch --probe\n{LOOP}", f"%%watch\n{LOOP}\n1 / 0",
    ]  # fmt: skip
    done = subprocess.run([sys.executable, "-c", CODE, json.dumps(cells)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded, *others = json.loads(done.stdout.splitlines()[-1])
    assert loaded == ["", "None"]
    (printed, error), (later, _), (unknown, wrong), (none, _), (probed, _), (failed, failure) = others
    assert error == "None"
    first, report, state, remedy = printed.splitlines()
    assert first == "done 2"
    assert report == "starvelab-doctor: range at line 5 of a cell, 100 batches"
    assert state.startswith("  The training loop waits ")
    assert remedy.startswith("  ")
    assert later == "2\n", "the names of the cell are those of the notebook"
    assert "InputError('%%watch takes --probe or nothing, got --prob. Take one of these.')" in wrong
    assert "Traceback" in unknown or unknown == ""
    assert none.startswith("2\nstarvelab-doctor: no loop got a batch from a DataLoader of PyTorch. ")
    assert none.endswith(" put watch(loader) around that. If not, let it run longer.\n")
    assert "The largest stage is " in probed
    # A cell that fails shows its error once, and what was found.
    assert failed.count("ZeroDivisionError") == 2, "the name and the message of one traceback"
    assert "starvelab-doctor: range at line 5 of a cell, 100 batches" in failed
    assert failure == "CellError()"
