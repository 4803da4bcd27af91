"""What replaces a function of nbgrader's gives the same, without a program and without listing folders."""

import glob
import os
import re
import subprocess
from contextlib import closing
from pathlib import Path

import nbgrader.dbutil
import nbgrader.utils
import pytest
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from sqlalchemy import text

from starvelab_grader.autograde.nbgrader_private import environment_with, is_ignored

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


def test_the_name_of_the_folder_is_no_pattern_and_no_folder_is_listed_for_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(glob, "glob", lambda *_: pytest.fail("a folder was listed"))
    folder = tmp_path / "hw [1]"
    (folder / "inner").mkdir(parents=True)
    for name in ("kept.txt", "left.pyc", "inner/left.pyc"):
        (folder / name).touch()
    assert nbgrader.utils.find_all_files(str(folder), ["*.pyc"]) == [str(folder / "kept.txt")]
    assert not is_ignored("kept.txt")


def test_a_new_gradebook_has_nbgraders_newest_version_and_no_program_is_started(tmp_path, monkeypatch):
    for start in ("Popen", "run", "check_output", "check_call"):
        monkeypatch.setattr(subprocess, start, lambda *_, **__: pytest.fail("a program was started"))
    with closing(Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}")) as book:
        version = book.db.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
    # Each revision names the one before it: the newest is the one that no other names.
    files = Path(nbgrader.dbutil.ALEMBIC_DIR, "versions").glob("*.py")
    steps = [
        re.search(r"^revision = '(\w+)'$.*?^down_revision = (?:'(\w+)'|None)$", file.read_text(), re.M | re.S)
        for file in files
    ]
    made, replaced = ({step[group] for step in steps} for group in (1, 2))
    assert made - replaced == {version}


@pytest.mark.parametrize("setting", [environment_with, lambda **more: nbgrader.utils.setenv(**more)])
@pytest.mark.parametrize("before", [None, "", "validate", "autograde"])
@pytest.mark.parametrize("meanwhile", [{}, {"NBGRADER_EXECUTION": "other"}])
def test_a_variable_is_what_it_was_also_after_an_error(monkeypatch, setting, before, meanwhile):
    name = "NBGRADER_EXECUTION"
    monkeypatch.delenv(name, raising=False) if before is None else monkeypatch.setenv(name, before)

    def fail():
        with setting(NBGRADER_EXECUTION="autograde"):
            assert os.environ.pop(name) == "autograde"
            os.environ.update(meanwhile)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert os.environ.get(name) == before
