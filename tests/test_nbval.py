"""The instructor's notebooks run through nbval: every cell, in a fresh kernel, without an error."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


def test_every_solution_notebook_runs_under_nbval(tmp_path):
    # In a copy: the notebooks lock predictions, and none may stand in solutions/.
    shutil.copytree(REPOSITORY / "solutions", tmp_path / "solutions")
    notebooks = sorted(str(path) for path in tmp_path.glob("solutions/*/*.ipynb"))
    assert notebooks, "no notebooks: run python solutions/build.py"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval-lax", "-q", "-p", "no:cacheprovider", *notebooks],
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
