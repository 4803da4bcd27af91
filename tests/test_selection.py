"""What is left out of a run is said at its end, and the table of what tests need names files that exist."""

import os
import re
import subprocess
import sys
from itertools import chain

import pytest

from tests import selection
from tests.rejected import message
from tests.selection import LONGEST_FIRST, NEEDS, REASONS, REPOSITORY, TOGETHER, left_out_by


def test_the_tables_name_what_exists_and_can_be_left_out():
    paths = [*chain(*NEEDS.values()), *LONGEST_FIRST, *TOGETHER]
    assert [path for path in paths if not (REPOSITORY / path).exists()] == []
    assert NEEDS.keys() == REASONS.keys()


EXPORTS = "tests/grader/lms/test_exports.py"


@pytest.mark.parametrize(
    ("file", "fixtures", "without", "word"),
    [
        ("tests/browser/test_lab_in_browser.py", [], {"browser"}, "browser"),
        ("tests/browser/test_lab_in_browser.py", [], {"programs"}, "programs"),
        ("tests/browser/test_lab_in_browser.py", [], {"sandbox", "postgres"}, ""),
        ("tests/model/test_pipeline.py", [], {"browser", "programs", "sandbox", "postgres"}, ""),
        (EXPORTS, ["course", "released_course"], {"browser", "sandbox"}, "sandbox"),
        (EXPORTS, ["course", "released_course"], {"programs"}, "programs"),
        (EXPORTS, ["tmp_path"], {"sandbox", "programs"}, ""),
    ],
)
def test_a_test_is_left_out_for_what_it_needs(file, fixtures, without, word):
    assert left_out_by(file, fixtures, without) == word
    long = left_out_by("tests/test_pipeline.py", [], without, long=True)
    assert long == ("programs" if "programs" in without else ""), "what takes long is left out with them"


def test_the_last_line_says_how_many_tests_were_left_out_and_why():
    # All plugins of pytest take seconds to load: these are needed here.
    plugins = [f"-p{name}" for name in ("no:cacheprovider", "pytest_timeout", "xdist.plugin")]
    files = ("tests/test_packaging.py", "tests/test_errors.py", "--numprocesses=1")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, *files],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
        env=os.environ | {"STARVELAB_TESTS_WITHOUT": "browser,index", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    *_, last = done.stdout.splitlines()
    said = r"Left out: \d\d tests that ask the package index, since STARVELAB_TESTS_WITHOUT names index\."
    assert re.fullmatch(said, last)


def test_what_cannot_be_left_out_is_named(monkeypatch):
    monkeypatch.setenv("STARVELAB_TESTS_WITHOUT", "browser network")
    said = message(pytest.UsageError, selection.without)
    assert said == f"STARVELAB_TESTS_WITHOUT takes {', '.join(REASONS)}, got network."


def test_the_longest_files_come_first(monkeypatch):
    class Item:
        def __init__(self, file: str) -> None:
            self.path = REPOSITORY / file

        def get_closest_marker(self, name: str) -> None:
            """Nothing is marked."""

    class Config:
        stash = pytest.Stash()

    monkeypatch.setattr(selection, "LONGEST_FIRST", ("tests/test_units.py", "tests/test_errors.py"))
    items = [Item(f"tests/test_{name}.py") for name in ("catalogue", "errors", "units")]
    selection.pytest_collection_modifyitems(Config, items)
    assert [item.path.stem for item in items] == ["test_units", "test_errors", "test_catalogue"]
