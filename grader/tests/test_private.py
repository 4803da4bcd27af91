"""Who else can open what a course holds."""

import pytest
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config, PyFileConfigLoader

from starvelab_grader import configuration

pytestmark = pytest.mark.programs


@pytest.fixture
def chain(tmp_path, monkeypatch):
    """A folder below another, both open to everybody, and nothing above them."""
    path = tmp_path / "course" / "graded"
    path.mkdir(parents=True)
    for folder in (path, path.parent):
        folder.chmod(0o755)
    parents = property(lambda self: [path.parent])
    monkeypatch.setattr(type(path), "parents", parents)
    return path


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


@pytest.mark.parametrize(("folder", "above", "group", "expected"), [
    (0o755, 0o755, False, True),
    (0o700, 0o755, True, False),
    (0o755, 0o700, True, False),  # nobody gets there
    (0o750, 0o755, False, False),
    (0o750, 0o710, True, True),
    (0o701, 0o711, False, True),  # a file whose name is known can be opened
])  # fmt: skip
def test_a_folder_is_open_if_somebody_gets_there_and_may_do_something(
    chain, monkeypatch, folder, above, group, expected
):
    monkeypatch.setattr(type(chain), "group", lambda self: "students")
    chain.chmod(folder)
    chain.parent.chmod(above)
    assert configuration.is_open(chain, group=group) is expected
    assert not configuration.is_open(chain / "missing", group=True)
    monkeypatch.setattr(type(chain), "group", lambda self: self.owner())
    for_all = folder & 0o007 and above & 0o001
    assert configuration.is_open(chain, group=True) == bool(for_all), "a group of one's own is nobody else"


def test_all_that_holds_marks_or_answers_is_a_part_of_the_course(tmp_path):
    config = {"CourseDirectory": {"root": str(tmp_path), "db_url": f"sqlite:///{tmp_path}/gradebook.db"}}
    folders = ["submitted", "autograded", "feedback", "graded", "released", "dropped", "report"]
    folders += ["replaced", "collected", "returned"]
    parts = configuration.parts_of(CourseDirectory(config=Config(config)))
    assert parts == [tmp_path / name for name in (*folders, "gradebook.db")]


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
