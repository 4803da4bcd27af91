"""nbval runs a notebook in a fresh kernel; tests/test_notebooks.py runs all."""

import os
import shutil
import subprocess
import sys

import pytest

from starvelab.runtime import Runtime
from tests.assignments import NOTEBOOKS, REPOSITORY

pytestmark = [pytest.mark.long, pytest.mark.programs]


def test_a_solution_runs_under_nbval(tmp_path):
    # In a copy: the notebooks lock predictions, and none may stand in solutions/.
    notebook = NOTEBOOKS[-1]
    copy = shutil.copy(notebook.solution, tmp_path)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval-lax", "-v", "-p", "no:cacheprovider", copy],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={
            **os.environ,
            **Runtime(clock="simulated").environment(),
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
        },
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    assert f"{notebook.name}::" in run.stdout
