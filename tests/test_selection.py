"""What is left out of a run is said at its end, and the table of what tests need names files that exist."""

from itertools import chain
from types import SimpleNamespace

import pytest

from tests import selection
from tests.rejected import message
from tests.selection import LONGEST_FIRST, NEEDS, REASONS, REPOSITORY, TOGETHER, left_out_by


def test_the_tables_name_what_exists_and_can_be_left_out():
    paths = [*chain(*NEEDS.values()), *LONGEST_FIRST, *TOGETHER]
    assert [path for path in paths if not (REPOSITORY / path).exists()] == []
    assert NEEDS.keys() == REASONS.keys()


EXPORTS = "grader/tests/lms/test_exports.py"


@pytest.mark.parametrize(("file", "fixtures", "without", "word"), [
    ("tests/browser/test_lab_in_browser.py", [], {"browser"}, "browser"),
    ("tests/browser/test_lab_in_browser.py", [], {"programs"}, "programs"),
    ("tests/browser/test_lab_in_browser.py", [], {"sandbox", "index"}, ""),
    ("tests/model/test_pipeline.py", [], {"browser", "programs", "sandbox"}, ""),
    (EXPORTS, ["course", "released_course"], {"browser", "sandbox"}, "sandbox"),
    (EXPORTS, ["course", "released_course"], {"programs"}, "programs"),
    (EXPORTS, ["tmp_path"], {"sandbox", "programs"}, ""),
])  # fmt: skip
def test_a_test_is_left_out_for_what_it_needs(file, fixtures, without, word):
    assert left_out_by(file, fixtures, without) == word
    long = left_out_by("tests/test_pipeline.py", [], without, long=True)
    assert long == ("programs" if "programs" in without else ""), "what takes long is left out with them"


class Item:
    """As much of a test as is looked at."""

    def __init__(self, file: str) -> None:
        self.path = REPOSITORY / file

    def get_closest_marker(self, name: str) -> None:
        """Nothing is marked."""


def test_the_longest_files_come_first_and_the_last_line_says_what_was_left_out_and_why(monkeypatch, capsys):
    monkeypatch.setenv("STARVELAB_TESTS_WITHOUT", "browser,index")
    monkeypatch.setattr(selection, "LONGEST_FIRST", ("tests/test_units.py", "tests/test_errors.py"))
    items = [Item(f"tests/test_{name}.py") for name in ("packaging", "catalogue", "errors", "units")]
    worker = SimpleNamespace(stash=pytest.Stash(), workeroutput={})
    selection.pytest_collection_modifyitems(worker, items)
    assert [item.path.stem for item in items] == ["test_units", "test_errors", "test_catalogue"]
    config = SimpleNamespace(stash=pytest.Stash())
    selection.pytest_testnodedown(SimpleNamespace(workeroutput=worker.workeroutput, config=config), None)
    selection.pytest_unconfigure(config)
    said = "Left out: 1 tests that ask the package index, since STARVELAB_TESTS_WITHOUT names index.\n"
    assert capsys.readouterr().out == said


def test_what_cannot_be_left_out_is_named(monkeypatch):
    monkeypatch.setenv("STARVELAB_TESTS_WITHOUT", "browser network")
    said = message(pytest.UsageError, selection.without)
    assert said == f"STARVELAB_TESTS_WITHOUT takes {', '.join(REASONS)}, got network."
