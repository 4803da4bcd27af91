"""Which files of a course nbgrader leaves out, found without listing a folder for each file."""

from __future__ import annotations

import glob
import os

import nbgrader.utils
import pytest
from nbgrader.coursedir import CourseDirectory

from starvelab.grading.autograde.nbgrader_private import is_ignored

NAMES = [".hidden", ".ipynb_checkpoints", "a.pyc", "b.txt", "__pycache__", "[1].txt", "1.txt", ".x.pyc"]
PATTERNS = [["*.pyc"], [".*"], ["*"], ["[1].txt"], ["__pycache__", "?.txt"], ["sub/*"], [".x*"], [""], []]


@pytest.mark.parametrize("patterns", [CourseDirectory().ignore, *PATTERNS])
def test_it_is_what_a_shell_would_match(tmp_path, patterns):
    for name in NAMES:
        (tmp_path / name).touch()
    for name in NAMES:
        path = str(tmp_path / name)
        expected = any(path in glob.glob(os.path.join(tmp_path, pattern)) for pattern in patterns)
        assert is_ignored(path, patterns) == expected, name


def test_the_name_of_the_folder_is_no_pattern(tmp_path):
    folder = tmp_path / "hw [1]"
    (folder / "inner").mkdir(parents=True)
    for name in ("kept.txt", "left.pyc", "inner/left.pyc"):
        (folder / name).touch()
    assert nbgrader.utils.find_all_files(str(folder), ["*.pyc"]) == [str(folder / "kept.txt")]
    assert not is_ignored("kept.txt")


def test_no_folder_is_listed_for_a_file(monkeypatch):
    monkeypatch.setattr(glob, "glob", lambda *_: pytest.fail("a folder was listed"))
    assert nbgrader.utils.is_ignored("/somewhere/a.pyc", ["*.txt", "*.pyc"])
