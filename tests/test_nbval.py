"""The instructor's notebooks run through nbval: every cell, in a fresh kernel, without an error."""

import os
import shutil
import subprocess
import sys

from starvelab.runtime import Runtime
from tests.assignments import NOTEBOOKS, REPOSITORY


def test_the_solution_notebooks_run_under_nbval(tmp_path):
    # In a copy: the notebooks lock predictions, and none may stand in solutions/. In this one run no pipeline
    # runs live: tests/test_notebooks.py has each of them run so.
    copies = []
    for notebook in NOTEBOOKS:
        folder = tmp_path / notebook.assignment
        folder.mkdir(exist_ok=True)
        copies.append(shutil.copy(notebook.solution, folder))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval-lax", "-v", "-p", "no:cacheprovider", *copies],
        cwd=tmp_path,
        env={
            **os.environ,
            **Runtime(clock="simulated").environment(),
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    for notebook in NOTEBOOKS:
        assert f"{notebook.name}::" in run.stdout
