"""The configuration of this lab's own course."""

import os
import shutil

from traitlets.config import PyFileConfigLoader

from tests.rejected import message


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
