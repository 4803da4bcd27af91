"""The configuration of the lab's own course: who can open what it holds, and what would replace it."""

import os
import shutil

import pytest
from traitlets.config import PyFileConfigLoader

from starvelab_grader import configuration
from tests.rejected import message

pytestmark = pytest.mark.programs


def test_what_is_made_is_for_the_owner_alone_and_what_exists_stays(tmp_path):
    configuration.make_private(tmp_path / "new" / "course")
    assert (tmp_path / "new" / "course").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "new" / "course" / "gradebook.db").stat().st_mode & 0o777 == 0o600
    (tmp_path / "old").mkdir(mode=0o755)
    (tmp_path / "old" / "gradebook.db").write_text("marks")
    (tmp_path / "old" / "gradebook.db").chmod(0o640)
    configuration.make_private(tmp_path / "old")
    assert (tmp_path / "old" / "gradebook.db").read_text() == "marks"
    assert (tmp_path / "old" / "gradebook.db").stat().st_mode & 0o777 == 0o640


def test_a_terminal_that_names_no_course_is_told_which_it_is_and_that_it_is_new(
    repository, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    default = tmp_path / "starvelab-course"
    said = (
        f"The course folder is {default}. For another one set the variable STARVELAB_COURSE (on a "
        "JupyterHub: in ~/.jupyter/nbgrader_config.py).\n"
    )
    for new in (f"A new course, with nothing in it, is made in {default}.\n", ""):
        monkeypatch.setenv("STARVELAB_COURSE", "")
        PyFileConfigLoader("nbgrader_config.py", path=str(repository)).load_config()
        assert capsys.readouterr().err == said + new
        PyFileConfigLoader("nbgrader_config.py", path=str(repository)).load_config()
        assert capsys.readouterr().err == "", "nbgrader reads it twice"


def test_a_prediction_left_beside_the_solutions_stops_nbgrader_before_it_replaces_the_students(
    repository, tmp_path, monkeypatch
):
    monkeypatch.setenv("STARVELAB_COURSE", str(tmp_path / "course"))
    monkeypatch.setenv("PATH", os.environ["PATH"])  # which the configuration changes
    shutil.copy(repository / "nbgrader_config.py", tmp_path)
    stray = tmp_path / "solutions" / "doubling" / "predictions.json"
    stray.parent.mkdir(parents=True)
    stray.write_text("{}")
    # As nbgrader reads it, before it does anything.
    said = message(SystemExit, PyFileConfigLoader("nbgrader_config.py", path=str(tmp_path)).load_config)
    assert said == (
        "What notebooks write belongs to students, and solutions/doubling/predictions.json would replace "
        "theirs. Delete it, and try notebooks in a copy."
    )
