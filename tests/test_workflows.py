"""What GitHub runs: which actions it takes, and that the commands of its jobs do what they are for."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from tests.documents import published

pytestmark = pytest.mark.programs

FOLDER = Path(__file__).resolve().parents[1] / ".github/workflows"
EACH_WORKFLOW = pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yml")), ids=lambda path: path.stem)
PINNED = re.compile(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*")


def jobs(name: str) -> dict[str, dict]:
    return yaml.safe_load((FOLDER / f"{name}.yml").read_text(encoding="utf-8"))["jobs"]


@EACH_WORKFLOW
def test_every_action_is_pinned_by_its_hash_and_says_its_version(path):
    text = path.read_text(encoding="utf-8")
    lines = [line.strip().removeprefix("- ") for line in text.splitlines()]
    pinned = [line for line in lines if PINNED.fullmatch(line)]
    steps = [step for job in yaml.safe_load(text)["jobs"].values() for step in (*job.get("steps", ()), job)]
    assert len(pinned) == len([step for step in steps if "uses" in step]) > 0


COLLECT = """
import json, sys
import pytest
sys.modules.update(dict.fromkeys(json.loads(sys.argv[1])))  # None: as if it were not installed
plugins = ["-p", "pytest_timeout", "-p", "xdist.plugin", "-p", "no:cacheprovider"]
sys.exit(pytest.main(["--collect-only", "-qq", *plugins, *sys.argv[2:]]))
"""


def test_the_tests_of_the_learners_path_import_nothing_that_a_learner_does_not_install(repository):
    steps = jobs("test")["learners"]["steps"]
    install, test, notebook = (shlex.split(step["run"]) for step in steps if "run" in step)
    assert {"make", "bash", "sh"}.isdisjoint([*install, *test, *notebook]), "Windows has none of them"
    project, doctor, grader = (
        tomllib.loads((repository / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for folder in published()
    )
    extras = (project["optional-dependencies"][name] for name in ("grade", "postgres", "test", "torch"))
    learners = chain(project["dependencies"], project["optional-dependencies"]["notebooks"])
    houses = (*doctor["dependencies"], *grader["dependencies"])
    others = {Requirement(text).name for text in chain(houses, *extras)} - {
        "starvelab", *install, *(Requirement(text).name for text in learners)
    }  # fmt: skip
    missing = ["yaml" if name == "pyyaml" else name.replace("-", "_") for name in (*others, "dask")]
    folders = [word for word in test if word.startswith("tests/")]
    done = subprocess.run(
        [sys.executable, "-c", COLLECT, json.dumps(missing), *folders],
        cwd=repository, capture_output=True, text=True,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    assert (done.returncode, folders) == (0, ["tests/model", "tests/lesson"]), done.stdout + done.stderr
    assert (repository / notebook[-1]).is_file()


def test_a_gradebook_on_a_server_and_the_page_on_hubs_are_tested_there_and_nowhere_else():
    job = jobs("test")["postgres"]
    # Without the address the test is skipped.
    assert job["env"]["STARVELAB_POSTGRES"].startswith("postgresql+psycopg://")
    assert "grader/tests/test_postgres.py" in job["steps"][-1]["run"]
    assert {step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step} == {
        "actions/checkout", "actions/setup-python"
    }  # fmt: skip
    command = jobs("test")["hub"]["steps"][-1]["run"]
    # Without the variable, and without root, the test is skipped.
    assert command.startswith('sudo env STARVELAB_HUB="$PWD"')
    assert command.endswith("grader/tests/test_hub.py")


def test_a_release_is_what_its_tag_says(tmp_path):
    steps = jobs("release")["build"]["steps"]
    (commands,) = [step["run"] for step in steps if "REF_NAME" in step.get("run", "")]
    (tmp_path / "dist").mkdir()

    def passes(tag: str, *built: str) -> bool:
        for old in (tmp_path / "dist").iterdir():
            old.unlink()
        for name in built:
            (tmp_path / "dist" / f"{name}.tar.gz").touch()
        environment = os.environ | {"GITHUB_REF_NAME": tag}
        return subprocess.run(["bash", "-e", "-c", commands], cwd=tmp_path, env=environment).returncode == 0

    assert passes("v1.2.0", "starvelab-1.2.0")
    assert not passes("v1.2.1", "starvelab-1.2.0")
    assert passes("v1.2.0", "other-1.2.0", "starvelab-1.2.0")
    assert not passes("v1.2.0", "other-1.1.0", "starvelab-1.2.0")


def test_only_what_was_built_and_tested_is_published_and_without_a_password():
    build, publish = jobs("release").values()
    assert "make dist" in [step.get("run") for step in build["steps"]]
    makefile = (FOLDER.parents[1] / "Makefile").read_text(encoding="utf-8")
    recipe = makefile.partition("\ndist: ")[2].partition("\n\n")[0]
    assert recipe.index("solutions/build.py --check") < recipe.index("-m build")
    assert publish["needs"] == "build"
    assert publish["permissions"] == {"id-token": "write"}
    assert [step for step in publish["steps"] if "run" in step or "password" in step.get("with", {})] == []
    # The site only after its lab has run in a browser, with the compiled wheels.
    build, publish = (jobs("docs")[name] for name in ("build", "publish"))
    assert publish["needs"] == "build"
    assert build["env"]["STARVELAB_PYODIDE_WHEELS"]  # without it the test would be skipped
    steps = [step.get("run", step.get("uses")) for step in build["steps"] if "continue-on-error" not in step]
    made, tested, published = (
        next(number for number, step in enumerate(steps) if phrase in step)
        for phrase in ("make site", "pytest tests/browser/test_lite_in_browser.py", "upload-pages-artifact")
    )
    assert made < tested < published
