"""Every command of the instructors' page, in its order: from a download to tables to import."""

import csv
import os
import re
import shlex
import zipfile
from pathlib import Path
from unittest import mock

import pytest
from nbgrader.apps import NbGraderApp

from grader.tests.a_course import Course
from grader.tests.a_round import Round
from grader.tests.in_process import run_here
from starvelab_grader.commands import grade
from starvelab_grader.commands.grade import FeedbackApp, GradeApp, ReleaseApp
from starvelab_grader.commands.mark import MarkApp
from starvelab_grader.commands.platforms import CollectApp, ReturnApp
from tests.assignments import REPOSITORY
from tests.notebooks.exercises import exercises
from tests.notebooks.ledger import TOTAL

pytestmark = [
    pytest.mark.long,
    pytest.mark.sandbox,
    pytest.mark.usefixtures("one_sandbox"),
    pytest.mark.timeout(900),
]
ASSIGNMENT = "starving-the-gpu"
NOTEBOOK = "01_compute_baseline"
PAGE = (REPOSITORY / "docs" / "instructors.md").read_text(encoding="utf-8")
APPS = {
    "release": ReleaseApp, "collect": CollectApp, "grade": GradeApp, "feedback": FeedbackApp,
    "return": ReturnApp, "export": NbGraderApp,
}  # fmt: skip
# What brings the repository and its programs here: tests/test_launch.py tries the targets of make.
BEFORE = ("git clone", "sudo apt-get", "make ", "export ")


def commands() -> list[str]:
    """The lines of the page's first block, without what they say."""
    block = re.search(r"```bash\n(git clone.*?)```", PAGE, re.DOTALL).group(1)
    return [line.split("  #")[0].strip() for line in block.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A home with downloads in it, and what each command printed."""
    home = tmp_path_factory.mktemp("home")
    it = Round.start(ASSIGNMENT, home)
    it.course = home / "ml-systems-2026"
    # One notebook stands for all: grader/tests/test_round.py grades whole assignments.
    for path in it.repository.glob(f"*/{ASSIGNMENT}/0*"):
        if path.stem != NOTEBOOK:
            path.unlink()
    (home / "Downloads").mkdir()
    with zipfile.ZipFile(home / "Downloads" / "submissions.zip", "w") as archive:
        for student, origin in (("adalovelace_11", "solutions"), ("bobbarker_LATE_12", "labs")):
            for path in (it.repository / origin / ASSIGNMENT).glob("*.ipynb"):
                # Canvas numbers what is handed in again.
                again = "-1" if student.startswith("bob") else ""
                archive.write(path, f"{student}_7{path.stem[:2]}_{path.stem}{again}.ipynb")
    (home / "Downloads" / "canvas.csv").write_text(
        f"Student,ID,SIS User ID,SIS Login ID,Section,{ASSIGNMENT} (5)\n"
        f"Points Possible,,,,,{TOTAL[ASSIGNMENT]}\n"
        '"Lovelace, Ada",11,,ada,A,\n"Barker, Bob",12,,bob,A,\n'
    )
    (home / "Downloads" / "moodle.csv").write_text(
        "Identifier,Full name,Grade\nParticipant 11,Ada,\nParticipant 12,Bob,\n"
    )
    printed = {}
    variables = {"HOME": str(home), "STARVELAB_COURSE": str(it.course)}
    for command in commands():
        if command.startswith(BEFORE):
            continue
        # In this process: each program takes seconds to start.
        with mock.patch.dict(os.environ, variables), mock.patch.object(grade, "CPU_COUNT", 1):
            program, *words = shlex.split(os.path.expandvars(command))
            words = [re.sub(r"(?<==)~|^~", str(home), word) for word in words]
            app = APPS[words[0] if program == "nbgrader" else words.pop(0)]
            run = run_here(Course(it.repository), app(), *words)
        printed[command] = run.stdout + run.stderr
    return it.repository, it.course, printed


def table(path: Path) -> list[list[str]]:
    return list(csv.reader(path.read_text(encoding="utf-8").splitlines()))


def test_grades_can_be_filed_at_the_end(done):
    repository, course, printed = done
    steps = [f"starvelab {verb}" for verb in ("release", "collect", "grade", "feedback", "return")]
    assert [" ".join(command.split()[:2]) for command in printed] == [*steps, *["nbgrader export"] * 3]
    assert sorted(path.name for path in repository.iterdir()) == ["labs", "nbgrader_config.py", "solutions"]
    most = sum(one.points for one in exercises(ASSIGNMENT) if one.notebook == NOTEBOOK)
    rows = {row[3]: row for row in table(course / "grades.csv")}
    assert (rows["11"][-2], rows["12"][-2]) == (str(most), "0.0")
    filed = [row[-1] for row in table(course / "for-canvas.csv")]
    assert filed == [f"{ASSIGNMENT} (5)", str(TOTAL[ASSIGNMENT]), f"{most:g}", "0"]
    assert [row[-1] for row in table(course / "for-moodle.csv")] == ["Grade", f"{most:g}", "0"]
    # An index and a page for each student; what was submitted as "..-1" has its page by that name too.
    assert len(list((course / "feedback").glob(f"1[12]/{ASSIGNMENT}/*.html"))) == 5
    assert (course / "report" / ASSIGNMENT / "report.html").exists()
    returned = course / "returned" / ASSIGNMENT / "001"
    assert [row[-1] for row in table(returned / "points.csv")] == filed
    with zipfile.ZipFile(returned / "pages.zip") as archive:
        assert archive.namelist() == ["feedback_11_701_page.ipynb", "feedback_12_701_page.ipynb"]


def test_a_feedback_page_says_what_was_odd_about_the_submission(done):
    ada, bob = (
        (done[1] / "feedback" / student / ASSIGNMENT / "01_compute_baseline.html").read_text(encoding="utf-8")
        for student in ("11", "12")
    )
    assert "The file of this notebook is called <code>01_compute_baseline-1.ipynb</code>." in bob
    assert "About your submission" not in ada
    assert 'name="viewport"' in ada


def test_every_option_that_the_page_names_exists(capsys):
    for command in (GradeApp(), CollectApp(), MarkApp(), FeedbackApp(), ReturnApp()):
        with pytest.raises(SystemExit):
            command.initialize(["--help-all"])
    helped = capsys.readouterr().out
    of_others = {"--exporter", "--to", "--assignment", "--duedate", "--user", "--scope"}
    for option in set(re.findall(r"(--[a-z]+(?:-[a-z]+)*)(?==|\b)", PAGE)) - of_others:
        assert option in helped, option
    for trait in ("IsolatedExecute.timeout", "IsolatedExecute.deadline", "IsolatedExecute.unsafe"):
        assert trait in helped
