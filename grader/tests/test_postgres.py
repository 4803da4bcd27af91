"""A gradebook on a PostgreSQL server: the workflow starts one and passes its address."""

import os

import pytest
from nbgrader.api import Gradebook
from nbgrader.apps.nbgraderapp import NbGraderApp

from grader.tests.a_course import MOST, TINY
from grader.tests.commands.test_grade import grade
from grader.tests.in_process import run_here
from starvelab_grader.commands.grade import FeedbackApp, ReleaseApp

SERVER = os.environ.get("STARVELAB_POSTGRES", "")
pytestmark = [
    pytest.mark.usefixtures("one_sandbox"),
    pytest.mark.timeout(600),
    pytest.mark.skipif(not SERVER, reason="Pass the address of an empty database in STARVELAB_POSTGRES."),
]


def test_a_class_is_graded_into_postgresql(course):
    with (course.folder / "nbgrader_config.py").open("a") as file:
        file.write(f"c.CourseDirectory.db_url = {SERVER!r}\n")
    run_here(course, ReleaseApp(), TINY)
    course.hand_in("ada", course.solved())
    course.hand_in("bob", course.solved(value="answer = 1"))
    assert "tiny: 2 graded" in grade(course).stdout

    def scores(student: str) -> dict[str, float | None]:
        with Gradebook(SERVER) as book:
            notebooks = book.find_submission(TINY, student).notebooks
            return {grade.name: grade.auto_score for nb in notebooks for grade in nb.grades}

    assert scores("ada") == MOST | {"why": 0}
    assert scores("bob") == MOST | {"why": 0, "value-test": 0}
    assert "tiny: 0 graded, 2 unchanged" in grade(course).stdout
    run_here(course, FeedbackApp(), TINY, "--workers=1")
    assert (course.folder / "course" / "feedback" / "ada" / TINY / "index.html").is_file()
    run_here(course, NbGraderApp(), "export", f"--to={course.folder / 'grades.csv'}")
    assert "ada" in (course.folder / "grades.csv").read_text()
