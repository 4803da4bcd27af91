"""The instructor's notebooks run through nbval: every cell, in a fresh kernel, without an error."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.assignments import NOTEBOOKS, REPOSITORY


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=str)
def test_a_solution_notebook_runs_under_nbval(notebook, tmp_path):
    # In a copy: the notebook locks predictions, and none may stand in solutions/.
    copy = shutil.copy(notebook.solution, tmp_path)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval-lax", "-q", "-p", "no:cacheprovider", copy],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
