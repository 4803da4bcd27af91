"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the checkout.

The first line of a block says where the rest goes: into a file that is new, above, below or in place of a
line of a file, or at its end. Each recipe names its tests, and with the blocks they pass.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest

from tests.assignments import REPOSITORY

GUIDE = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
PLACE = re.compile(r"(?:#|%%) (\S+?)(?:, (at the end|(above|below|in place of) (.+)))?\n")
BLOCK = re.compile(r"^( *)(`{3,})\w+\n(.*?)^ *\2$", re.DOTALL | re.MULTILINE)
ESSAY = """# %% [markdown]
# ## Exercise 1.3: why (2 points, read by a person)

# %% [markdown] role="essay" id="why" points=2
# The queue is shorter than the bursts.
#
# ### BEGIN MARK SCHEME
# - 2 points: names the queue.
# ### END MARK SCHEME

# %% [markdown]
# ## Take"""
# What takes long, and looks at nothing that a recipe changes.
ELSEWHERE = (
    "tests/model/stages/test_barrier.py",
    # docs/build.py has run just before.
    "tests/test_documents.py::test_the_generated_parts_are_fresh_and_a_stale_one_is_written_anew",
    "tests/test_published.py::test_no_row_rests_on_itself_or_on_a_rate_that_the_package_ships_for_it",
    "tests/test_layers.py::test_an_import_that_points_upward_a_picture_in_the_model_or_a_module_without_a_place",
    "doctor/tests/test_zoo.py::test_the_doctor_names_the_cause",
    "grader/tests/lms/test_exports.py::test_nbgrader_takes_them_by_name_and_its_own_table_from_us",
)
# That a property holds is tried elsewhere with as many examples as it takes.
OPTIONS = ("-pno:cacheprovider", "-pno:anyio", "--assert=plain", "--hypothesis-profile", "one")
QUICKLY = ("-m", "pytest", *OPTIONS, *(f"--deselect={one}" for one in ELSEWHERE))
# All commands together count for the first test. Some recipes change the doctor or the grader.
EVERY_HOUSE = pytest.mark.needs("starvelab_doctor", "starvelab_grader")
pytestmark = [pytest.mark.long, pytest.mark.programs, pytest.mark.timeout(1500), EVERY_HOUSE]
# They need the index, and a day.
NOT_HERE = {"Update the pinned versions", "Make a release"}


def recipes() -> dict[str, str]:
    """The text of each recipe, by its heading."""
    found = re.split(r"^## (.+)$", GUIDE, flags=re.MULTILINE)[1:]
    return dict(zip(found[::2], found[1::2], strict=True))


def apply(recipe: str, root: Path) -> None:
    """Put each block of code where its first line says."""
    for indent, _, block in BLOCK.findall(recipe):
        text = "".join(line.removeprefix(indent) for line in block.splitlines(keepends=True))
        match = PLACE.match(text)
        assert match, f"the first line of a block says where it goes: {text[:80]!r}"
        name, end, where, anchor = match.groups()
        path, new = root / name, text[match.end() :]
        if end is None:
            assert not path.exists(), f"{name} is there already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(new, encoding="utf-8")
            continue
        if where is None:
            path.write_text(path.read_text(encoding="utf-8") + new, encoding="utf-8")
            continue
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        places = [number for number, line in enumerate(lines) if anchor in line]
        assert len(places) == 1, f"{name} has {len(places)} lines with {anchor!r}"
        (place,) = places
        lines[place + (where == "below") : place + (where != "above")] = [new]
        path.write_text("".join(lines), encoding="utf-8")


def commands(recipe: str) -> list[list[str]]:
    """What the recipe tells to run, but for `make test` and what asks another server."""
    prose = BLOCK.sub("", recipe)
    quoted = [" ".join(each.split()) for each in re.findall(r"`([^`]+)`", prose)]
    made = [["solutions/build.py"], ["docs/build.py"]] if "make build" in quoted else []
    run = [shlex.split(each)[1:] for each in quoted if each.startswith(".venv/bin/python ")]
    return made + run


def change(source: Path, target: Path, how: Callable[[str], str]) -> None:
    target.parent.mkdir(exist_ok=True)
    before = source.read_text(encoding="utf-8")
    after = how(before)
    assert after != before, f"nothing in {source.name} was to be changed"
    target.write_text(after, encoding="utf-8")


def write_notebook(root: Path, assignment: str, name: str) -> None:
    """Write a notebook and its data: another one with ids of its own."""
    old, number = "01_write_the_loader", int(name[:2])
    own = "x" if assignment == "master-the-loader" else "y"  # an id stands once in all assignments

    def script(text: str) -> str:
        for key in ("setup-loader", "bursts", "step-ends", "verdicts"):
            text = text.replace(f'"{key}', f'"{own}-{key}')
        text = re.sub(r"^(# #+ (?:Exercise )?)1\.", rf"\g<1>{number}.", text, flags=re.MULTILINE)
        text = text[: text.rindex("# **")] + "# **What comes next** is your own job.\n"
        if assignment != "master-the-loader":  # an assignment has an exercise that a person reads
            text = text.replace("# %% [markdown]\n# ## Take", ESSAY, 1)
        return text

    def data(text: str) -> str:
        text = re.sub(r"^\[\[", f"[[{own}-", text, flags=re.MULTILINE)
        return text if assignment == "master-the-loader" else text.replace("points = 35", "points = 37", 1)

    script_of, data_of = (f"{folder}/%s/%s" for folder in ("solutions", "tests/notebooks"))
    source, target = ("master-the-loader", old), (assignment, name)
    change(root / f"{script_of % source}.py", root / f"{script_of % target}.py", script)
    change(root / f"{data_of % source}.toml", root / f"{data_of % target}.toml", data)


FOLLOWED = {title: recipe for title, recipe in recipes().items() if title not in NOT_HERE}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy, in which each recipe is followed, one after the other."""
    root = tmp_path_factory.mktemp("recipes") / "starvelab"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (REPOSITORY / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, root / name)
    # With its time a file that no recipe changes keeps its bytecode, which takes seconds to make.
    houses = ("starvelab", "doctor", "grader")
    for compiled in chain(*((REPOSITORY / house).rglob("*.pyc") for house in houses)):
        copied = root / compiled.relative_to(REPOSITORY)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(compiled, copied)
    for title, recipe in FOLLOWED.items():
        apply(recipe, root)
        if title == "Add a notebook":
            write_notebook(root, "master-the-loader", "04_once_more")
        elif title == "Add an assignment":
            write_notebook(root, "once-more", "01_once_more")
    return root


def test_each_recipe_names_its_tests():
    for title, recipe in FOLLOWED.items():
        assert any("pytest" in command for command in commands(recipe)), title


def together() -> list[list[str]]:
    """The commands of all recipes, each once; all tests, of whole files or chosen by words, are one run."""
    every = dict.fromkeys(tuple(command) for recipe in FOLLOWED.values() for command in commands(recipe))
    files, words = [], []
    for command in (each[2:] for each in every if "pytest" in each):
        whole = "-k" not in command
        files += command if whole else command[:-2]
        words += [Path(each).name for each in command] if whole else [f"({command[-1]})"]
    tests = [*QUICKLY, *dict.fromkeys(files), "-k", " or ".join(words)]
    return [*(list(command) for command in every if "pytest" not in command), tests]


@pytest.fixture(scope="module")
def done(checkout) -> dict[str, subprocess.CompletedProcess[str]]:
    """What each command said: first those that build, and then those that test."""
    houses = os.pathsep.join(str(checkout / house) for house in (".", "doctor", "grader"))
    environment = os.environ | {"PYTHONPATH": houses}
    return {
        shlex.join(command): subprocess.run(
            [sys.executable, *command], cwd=checkout, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )
        for command in together()
    }  # fmt: skip


@pytest.mark.parametrize("command", [*map(shlex.join, together())], ids=lambda command: command[:60])
def test_whoever_follows_the_recipes_to_the_letter_has_tests_that_pass(command, done):
    assert done[command].returncode == 0, f"{command}:\n{done[command].stdout[-6000:]}"
