"""The contract of imports that `make lint` checks can be broken, and is written the same in both places."""

import re
import shutil
import subprocess
import sys
import tomllib

import pytest

import starvelab

starvelab_doctor = pytest.importorskip("starvelab_doctor")
starvelab_grader = pytest.importorskip("starvelab_grader")

pytestmark = pytest.mark.programs


def lint_imports(folder):
    """Run import-linter there; its command has no module to run with ``python -m``."""
    paths = "import sys; sys.path[:0] = '', 'doctor', 'grader'"
    code = f"{paths}; from importlinter import cli; cli.lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", code, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture
def contracts(repository):
    pyproject = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))
    return pyproject["tool"]["importlinter"]["contracts"]


# What is planted, each in a module of its own, and the contract that it breaks.
PLANTED = {
    "starvelab/units.py": ("from . import model", "Imports point downward BROKEN"),
    "starvelab/model/stages/data.py": ("import matplotlib", "The model draws nothing BROKEN"),
    "starvelab/commands.py": ("import starvelab_grader", "knows nothing of the doctor and the grader BROKEN"),
    "doctor/starvelab_doctor/compare.py": ("import starvelab.show", "nothing of the lesson and the grader"),
    "doctor/starvelab_doctor/spans.py": ("from . import judging", "Within the doctor, imports point"),
}


def test_an_import_that_points_upward_a_picture_in_the_model_or_a_module_without_a_place_is_noticed(
    repository, tmp_path
):
    for package in ("starvelab", "doctor/starvelab_doctor", "grader/starvelab_grader"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(repository / package, tmp_path / package, ignore=ignored)
    shutil.copy(repository / "pyproject.toml", tmp_path)
    for module, (line, _) in PLANTED.items():
        with (tmp_path / module).open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")
    done = lint_imports(tmp_path)
    assert done.returncode != 0
    assert "2 kept, 5 broken" in done.stdout
    for _, broken in PLANTED.values():
        assert broken in done.stdout
    (tmp_path / "starvelab" / "nowhere.py").touch()
    done = lint_imports(tmp_path)
    assert done.returncode != 0
    assert "nowhere" in done.stdout + done.stderr


@pytest.mark.parametrize("package", [starvelab, starvelab_doctor, starvelab_grader])
def test_the_rooms_of_the_docstring_are_those_of_the_contract(contracts, package):
    block = re.search(r"::\n\n(.*?)\n\n", package.__doc__, flags=re.DOTALL).group(1)
    written = [set(line.split("  ")[0].split(" | ")) for line in (row.strip() for row in block.splitlines())]
    (layers,) = (one["layers"] for one in contracts if one.get("containers") == [package.__name__])
    assert written == [set(layer.split(" | ")) for layer in layers]


def test_every_room_of_the_model_is_kept_from_drawing(contracts):
    layers = next(contract for contract in contracts if contract["type"] == "layers")["layers"]
    names = {f"starvelab.{name}" for layer in layers for name in layer.split(" | ")}
    forbidden = next(contract for contract in contracts if contract["type"] == "forbidden")
    free = {
        f"starvelab.{name}"
        for name in ("commands", "grader_plugin", "lab_command", "lesson", "show", "widgets")
    }
    assert set(forbidden["source_modules"]) == names - free | {"starvelab.lesson.checks"}
