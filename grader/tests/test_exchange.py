"""nbgrader's exchange, as on a JupyterHub: the hub's configuration names it, the course's does not.

Teacher and student are one account here.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import nbformat
import pytest
from nbgrader.apps import NbGraderApp

from grader.tests.a_course import TINY, Course
from grader.tests.in_process import run_here
from starvelab_grader.commands.grade import FeedbackApp, GradeApp
from starvelab_grader.submissions.submission import SECRET, TIMESTAMP

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.usefixtures("one_sandbox"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # nbgrader closes no file
]

HUB = """
c = get_config()
c.Exchange.root = {root!r}
c.CourseDirectory.course_id = "ml-systems"
"""
RENAMED = "one (1)"


@dataclass
class Hub:
    """A shared exchange, a teacher in the course's folder, and a student in an empty one."""

    course: Course
    student: Course
    variables: dict[str, str]

    def teacher(self, *command: str) -> CompletedProcess:
        return run_here(self.course, NbGraderApp(), *command, TINY, **self.variables)

    def learner(self, *command: str) -> CompletedProcess:
        return run_here(self.student, NbGraderApp(), *command, TINY, **self.variables)

    @property
    def work(self) -> Path:
        """What the student has fetched."""
        return self.student.folder / TINY

    def submit(self, **answers: str) -> None:
        """Submit right answers, or others, one notebook under another name."""
        (self.work / "one.ipynb").unlink(missing_ok=True)
        for name, notebook in self.course.solved(**answers).items():
            nbformat.write(notebook, self.work / f"{RENAMED if name == 'one' else name}.ipynb")
        self.learner("submit")

    def grade(self) -> str:
        """Collect and grade, and write the pages."""
        self.teacher("collect", "--update")
        printed = run_here(self.course, GradeApp(), TINY, **self.variables).stdout
        printed += run_here(self.course, FeedbackApp(), TINY, **self.variables).stdout
        self.teacher("release_feedback")
        return printed

    def pages(self) -> dict[str, str]:
        """The pages of the last submission that the student can fetch, by name."""
        self.learner("fetch_feedback")
        latest = max((self.work / "feedback").iterdir(), key=lambda folder: folder.name)
        return {path.stem: path.read_text(encoding="utf-8") for path in latest.glob("*.html")}


@pytest.fixture
def hub(course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """The small course on a hub, fetched by a student."""
    exchange, configuration, home = (tmp_path / name for name in ("exchange", "hub", "student"))
    for folder in (exchange, configuration, home):
        folder.mkdir()
    exchange.chmod(0o777)
    (configuration / "nbgrader_config.py").write_text(HUB.format(root=str(exchange)))
    variables = {"JUPYTER_CONFIG_PATH": str(configuration), "JUPYTER_DATA_DIR": str(tmp_path / "data")}
    it = Hub(course, Course(home), variables)
    it.teacher("release_assignment")
    it.learner("fetch_assignment")
    return it


def test_what_is_released_is_in_the_hubs_exchange_and_in_its_course(hub, tmp_path):
    assert sorted(path.name for path in hub.work.iterdir()) == ["one.ipynb", "two.ipynb"]
    assert (tmp_path / "exchange" / "ml-systems" / "outbound" / TINY).is_dir()
    assert not (hub.course.folder / "course" / "exchange").exists()


def test_a_student_fetches_a_page_for_each_notebook_also_a_renamed_one_with_the_total(hub):
    hub.submit(double="def double(x):\n    return x * x")
    hub.grade()
    pages = hub.pages()
    assert pages.keys() == {RENAMED, "two"}
    assert "That is the square." in pages[RENAMED]
    for page in pages.values():
        assert "The whole assignment: <strong>4 of 10 points</strong>" in page
    assert "This notebook: <strong>1 of 1 points</strong>" in pages["two"]


def test_who_submits_the_same_again_is_not_graded_again_and_fetches_pages_for_the_new_submission(hub):
    hub.submit()
    assert "1 graded, 0 unchanged" in hub.grade()
    hub.submit()
    assert "0 graded, 1 unchanged" in hub.grade()
    assert hub.pages().keys() == {RENAMED, "two"}
    hub.submit(value="answer = 41")
    assert "1 notebook of 1 submission" in hub.grade()
    assert "The whole assignment: <strong>5 of 10 points" in hub.pages()["two"]


def test_who_submitted_elsewhere_stops_no_feedback_and_keeps_one_name_there(hub):
    hub.course.hand_in("by-mail", hub.course.solved())
    hub.submit()
    hub.grade()
    folder = hub.course.folder / "course" / "feedback" / "by-mail" / TINY
    secret = (folder / SECRET).read_text()
    assert len(secret) == 128
    assert (folder / TIMESTAMP).read_text() == ""
    assert "0 pages written, 2 up to date" in hub.grade()
    assert (folder / SECRET).read_text() == secret


@pytest.mark.parametrize("name", ["index", "two"])
def test_a_notebook_that_is_called_like_another_page_replaces_no_page(hub, name):
    for path in hub.work.glob("*.ipynb"):
        path.unlink()
    nbformat.write(hub.course.solved()["one"], hub.work / f"{name}.ipynb")
    hub.learner("submit")
    hub.grade()
    pages = hub.course.folder / "course" / "feedback"
    folder = pages / os.listdir(pages)[0]
    assert {path.stem for path in (folder / TINY).glob("*.html")} == {"index", "one", "two"}
    assert "Total: <strong>" in (folder / TINY / "index.html").read_text()
    assert "This notebook: <strong>" in (folder / TINY / "two.html").read_text()
