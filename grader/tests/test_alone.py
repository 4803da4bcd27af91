"""The grader without the lab: a course of another kind, in an environment that has no starvelab."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from grader.tests.a_course import exercise_cells
from starvelab.lesson import exercises
from starvelab_grader import configuration, plugins
from tests.assignments import REPOSITORY

pytestmark = [pytest.mark.long, pytest.mark.sandbox]

CONFIG = """
from starvelab_grader import configure
c = get_config()
configure(c)
c.CourseDirectory.root = {folder!r}
"""
# One process, which also grades: to import nbgrader takes seconds.
COMMANDS = """
import sys
from contextlib import nullcontext
try:
    import starvelab
except ModuleNotFoundError:
    from starvelab_grader.autograde.task import grade
    from starvelab_grader.batch import worker_pool
    from starvelab_grader.commands import main
    from starvelab_grader.sandbox.process import Runners
    from traitlets.config import Application
    runners = Runners()
    worker_pool.open_pool = lambda *options, **named: nullcontext()
    worker_pool.graded_by = lambda _, definition, work, *_told: (
        grade(one, definition, runners) for one in work
    )
    one = "--workers=1"
    for command in (["release", "ps1"], ["grade", "ps1", one, "--report"], ["feedback", "ps1", one]):
        main(command)
        type(Application.instance()).clear_instance()
    assert "starvelab" not in sys.modules
"""


@pytest.fixture
def python(tmp_path) -> Path:
    """A Python that finds all packages but starvelab, which stands in its place without an entry point."""
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(tmp_path / "env")}))
    (packages / "all.pth").write_text(f"{sysconfig.get_path('purelib')}\n{REPOSITORY / 'grader'}\n")
    (packages / "starvelab-0.dist-info").mkdir()
    (packages / "starvelab-0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: starvelab\n")
    return tmp_path / "env" / "bin" / "python"


def test_a_course_that_knows_nothing_of_the_lab_is_released_graded_and_given_feedback(python, tmp_path):
    folder = tmp_path / "course"
    (folder / "source" / "ps1").mkdir(parents=True)
    cells = exercise_cells("double", "def double(x):", "return 2 * x", 2, "assert double(3) == 6")
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "source" / "ps1" / "one.ipynb")
    (folder / "nbgrader_config.py").write_text(CONFIG.format(folder=str(folder)))
    for student, answer in {"ada": "return x + x", "bob": "return x ** 2"}.items():
        cells[0].source = f"def double(x):\n    {answer}"
        (folder / "submitted" / student / "ps1").mkdir(parents=True)
        submitted = nbformat.v4.new_notebook(cells=cells)
        nbformat.write(submitted, folder / "submitted" / student / "ps1" / "one.ipynb")
    jupyter = {"JUPYTER_PATH": str(Path(sys.prefix) / "share" / "jupyter")}  # the templates of nbconvert
    done = subprocess.run(
        [python, "-P", "-c", COMMANDS], cwd=folder, env=os.environ | jupyter, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ps1: 2 graded, 0 unchanged" in done.stdout
    assert "def double(x):\n    # YOUR CODE HERE" in nbformat.read(
        folder / "release" / "ps1" / "one.ipynb", as_version=4
    ).cells[0].source  # fmt: skip
    pages = [(folder / "feedback" / one / "ps1" / "index.html").read_text() for one in ("ada", "bob")]
    assert ["2 of 2 points" in page for page in pages] == [True, False]


def test_a_package_that_cannot_be_imported_is_named_with_what_to_do(monkeypatch):
    point = SimpleNamespace(name="x", value="x.plugin", load=lambda: __import__("nowhere_to_be_found"))
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point])
    with pytest.raises(plugins.PluginError) as error:
        plugins.plugins.__wrapped__()
    assert str(error.value) == (
        "x.plugin extends the grader and cannot be imported: ModuleNotFoundError: "
        "No module named 'nowhere_to_be_found'. Repair the package that it belongs to, or uninstall it."
    )


def test_the_lab_declares_what_the_grader_reads():
    declared = [each.__name__ for each in plugins.plugins()]
    assert declared == ["starvelab.grader_plugin"]
    assert plugins.declared("student_files")["predictions.json"][0] == 1_000_000
    assert plugins.declared("environment")["STARVELAB_CLOCK"] == "simulated"
    assert sys.modules["starvelab.grader_plugin"].preload in plugins.functions("preload")


def test_what_both_say_of_an_open_answer_is_the_same():
    for name in ("NOT_ANSWERED", "ESSAY_STUB"):
        assert getattr(configuration, name) == getattr(exercises, name)
