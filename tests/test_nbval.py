"""nbval runs a notebook of each assignment, each in a fresh kernel; tests/test_notebooks.py runs all."""

import os
import shutil
import subprocess
import sys

from starvelab.runtime import Runtime
from tests.assignments import ASSIGNMENTS, REPOSITORY, notebooks_of


def test_solution_notebooks_run_under_nbval(tmp_path):
    # In a copy: the notebooks lock predictions, and none may stand in solutions/.
    notebooks = [notebooks_of(assignment)[-1] for assignment in ASSIGNMENTS]
    copies = [shutil.copy(notebook.solution, tmp_path) for notebook in notebooks]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval-lax", "-v", "-p", "no:cacheprovider", *copies],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={
            **os.environ,
            **Runtime(clock="simulated").environment(),
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
        },
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    for notebook in notebooks:
        assert f"{notebook.name}::" in run.stdout
