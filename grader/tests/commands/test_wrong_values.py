"""Each option of each command with a value that it cannot take: one sentence, and a status that is not 0."""

from pathlib import Path

import pytest
from nbgrader.apps.nbgraderapp import NbGraderApp

from grader.tests.a_course import TINY, Course
from grader.tests.in_process import run_here
from starvelab_grader.commands.grade import FeedbackApp, GradeApp, ReleaseApp
from starvelab_grader.commands.mark import MarkApp
from starvelab_grader.commands.platforms import CollectApp, ReturnApp


@pytest.fixture(scope="module")
def course(released_course, tmp_path_factory):
    """A course with a student, and beside it files that are none of those that are asked for."""
    course = released_course.copy(tmp_path_factory.mktemp("wrong"))
    course.hand_in("ada", course.solved())
    with course.gradebook() as book:
        book.add_student("ada")
        book.add_submission(TINY, "ada")
    (course.folder / "roster.csv").write_text("Student,ID,Lab 1 (7),Final\n,,100,(read only)\nAda,ada,,9\n")
    (course.folder / "worksheet.csv").write_text("Identifier,Grade,Maximum Grade\nada,,10\n")
    (course.folder / "empty.csv").touch()
    (course.folder / "noise.csv").write_bytes(bytes(range(256)))
    (course.folder / "text.zip").write_text("no archive")
    (course.folder / "folder").mkdir()
    return course


def files(course: Course) -> list[Path]:
    return sorted(path for path in course.folder.rglob("*") if path.name != ".lock")


def exports(name: str, *options: str) -> tuple[type, list[str]]:
    return NbGraderApp, ["export", f"--exporter=starvelab_grader.lms.exports.{name}", *options]


NO_FOLDER = "/proc/none/x"  # where not even root makes a file
# What all commands share, such as the check of the assignment, is tried with one of them.
CASES = [
    (CollectApp, ["", "text.zip"], "has no assignment ''"),
    (GradeApp, ["none"], "/source; it has: tiny."),
    (GradeApp, [TINY, "--workers=x"], "expected an int, not the str 'x'"),
    *[(app, [TINY, "--workers=-1"], "should not be less than 0") for app in (GradeApp, FeedbackApp)],
    *[(app, [TINY, "--only=nobody"], "called 'nobody'") for app in (GradeApp, FeedbackApp, ReturnApp)],
    (ReleaseApp, [TINY, "--db=nonsense"], "The gradebook cannot be used: "),
    *[(GradeApp, [TINY, f"--db={url}"], "The gradebook cannot be used: ")
      for url in ("nonsense", f"sqlite:///{NO_FOLDER}", "sqlite:///text.zip", "nothing://x")],
    (GradeApp, [TINY, "--db=postgresql+psycopg://teacher:secret@127.0.0.1:9/course"],
     "The gradebook cannot be used: connection failed"),
    (GradeApp, [], "Which assignment? For example: starvelab-grader grade starving-the-gpu"),
    (GradeApp, [TINY, "--db=oracle://x"], "needs a driver: No module named 'oracledb'"),
    (ReleaseApp, [TINY, "--IsolatedExecute.timeout=x"], "expected a float, not the str 'x'"),
    (GradeApp, [TINY, "--IsolatedExecute.deadline=-3"], "should not be less than 0"),
    (GradeApp, [TINY, "--IsolatedExecute.checks=maybe"], "any of ['outside', 'inside'], not the str 'maybe'"),
    (GradeApp, [TINY, "--log-level=LOUD"], "not the str 'LOUD'"),
    (GradeApp, [TINY, "--again=x"], "--again"),
    (MarkApp, [TINY, "--port=70000"], "should not be greater than 65535"),
    (CollectApp, [TINY, "none.zip"], "none.zip cannot be used: No such file or directory"),
    (CollectApp, [TINY, "text.zip"], "text.zip is no .zip and no folder"),
    (CollectApp, [TINY, "folder"],
     "In folder there is nothing that belongs to a student. It should hold one folder for each"),
    *[(CollectApp, [TINY, "course/submitted", f"--roster={file}"], said) for file, said in (
        ("none.csv", "The roster 'none.csv' is not there. Pass the table that the platform exported"),
        ("folder", "The roster 'folder' is not there"),
        ("empty.csv", "The roster 'empty.csv' is empty. Pass the table that the platform exported"),
    )],
    (*exports("Moodle"), "The roster '' is not there. Pass the table that the platform exported"),
    (*exports("Canvas", "--Canvas.roster=noise.csv"), "stands in the roster"),
    *[(*exports("Canvas", "--Canvas.roster=roster.csv", f"--Canvas.column={column}"), f"'{column}' is none")
      for column in ("Lab 9", "ID")],
    (*exports("Canvas", "--Canvas.scale=x"), "'x'"),
    (*exports("Moodle", "--Moodle.scale=True", "--Moodle.roster=roster.csv"), "The points possible of"),
    (*exports("Grades", f"--to={NO_FOLDER}"), f"{NO_FOLDER} cannot be used: No such file or directory"),
    *[(*exports(*each, "--to=folder"), "folder cannot be used: Is a directory")
      for each in (["Grades"], ["Moodle", "--Moodle.roster=worksheet.csv"])],
    *[(*exports(name, "--assignment=none"), "The gradebook has no assignment 'none'; it has: tiny")
      for name in ("Canvas", "Grades")],
    (*exports("Moodle", "--student=none"), "The gradebook has no student 'none'; it has: ada"),
    (*exports("Nothing"), "could not be imported"),
]  # fmt: skip


@pytest.mark.parametrize(("app", "arguments", "said"), CASES)
def test_a_wrong_value_is_one_sentence_and_an_error(course, app, arguments, said):
    before = files(course)
    done = run_here(course, app(), *arguments, fine=False)
    assert done.returncode not in (0, None)
    # What a program prints that ends with a sentence; nbgrader says beside it what it does.
    lines = f"{done.returncode if isinstance(done.returncode, str) else ''}\n{done.stderr}".splitlines()
    lines = [line for line in lines if line and "INFO]" not in line and "WARNING]" not in line]
    assert "secret" not in done.stderr
    assert said in lines[-1] if "usage:" in lines[0] else said in lines[0], done
    assert "usage:" in lines[0] or len(lines) == 1, done.stderr
    assert files(course) == before
