"""What type checkers say of a user's script: both in strict mode, as installed for this repository."""

import json
import subprocess
import sys

import pytest

SCRIPT = "tests/typed_sweeps.py"
pytestmark = [pytest.mark.long, pytest.mark.programs]


def run(*command: str, cwd) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=cwd, capture_output=True, text=True, check=False
    )


def test_a_users_script_with_sweeps_runs(repository):
    done = run("tests.typed_sweeps", cwd=repository)
    assert done.returncode == 0, done.stderr
    assert "img/s with" in done.stdout


def test_mypy_accepts_a_users_script_with_sweeps_in_strict_mode(repository):
    done = run("mypy", "--strict", SCRIPT, cwd=repository)
    assert done.returncode == 0, done.stdout


def test_pyright_accepts_a_users_script_with_sweeps_in_strict_mode(repository, tmp_path):
    settings = {"include": [str(repository / SCRIPT)], "typeCheckingMode": "strict", "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings | {"extraPaths": [str(repository)]}))
    done = run("basedpyright", "--project", str(tmp_path), "--pythonpath", sys.executable, cwd=repository)
    assert done.returncode == 0, done.stdout
