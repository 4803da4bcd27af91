"""A class that was collected and marked, and whose pages are written, without a notebook being run."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from grader.tests.a_course import TINY
from grader.tests.in_process import run_here
from starvelab_grader.commands import platforms
from starvelab_grader.commands.platforms import CollectApp
from tests.archives import zipped

PAGE = "<html><head><style>p { color: red }</style></head><body class='x'><p>{}</p></body></html>"


class Pages:
    """Stands for the pages of a class, of which nothing was graded."""

    stale = ()

    def __init__(self, classroom):
        self.folder = Path(classroom.course.root) / classroom.course.feedback_directory
        written = sorted(path.parents[1].name for path in self.folder.glob(f"*/{TINY}/index.html"))
        self.unchanged = [one for one in written if one not in self.stale]
        self.failed = {}

    def out_of_date(self, only=""):
        self.unchanged = [one for one in self.unchanged if not only or one in only]
        return [SimpleNamespace(student=one) for one in self.stale]


@pytest.fixture
def class_of_three(course, monkeypatch):
    """A course whose three students came from Canvas, and have marks and pages."""
    monkeypatch.setattr(platforms, "FeedbackPages", Pages)
    files = {f"smith_{number}_7{number}_one.ipynb": "{}" for number in (101, 102, 103)}
    (course.folder / "canvas.zip").write_bytes(zipped(files))
    run_here(course, CollectApp(), TINY, "canvas.zip")
    (course.folder / "canvas.csv").write_text(
        "Student,ID,Section,Tiny (42)\nPoints Possible,,,10\nA,101,,1\nB,102,,1\nC,103,,1\n"
    )
    with course.gradebook() as book:
        for number in ("101", "102", "103"):
            submit(book, number)
        book.db.commit()
    for number in ("101", "102", "103"):
        write_page(course, number, "Well done.")
    return course


def submit(book, student):
    book.update_or_create_student(student)
    for nb in book.add_submission(TINY, student).notebooks:
        for grade in nb.grades:
            grade.auto_score, grade.needs_manual_grade = grade.cell.max_score / 4, False


def write_page(course, student, text):
    page = course.folder / "course" / "feedback" / student / TINY / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(PAGE.replace("{}", text))
