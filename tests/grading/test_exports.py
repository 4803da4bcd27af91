"""Tables for Canvas and Moodle: filled in, and otherwise as they were."""

from __future__ import annotations

import csv
import logging

import pytest
from nbgrader.api import Gradebook

from starvelab.errors import InputError
from starvelab.grading.exports import Canvas, Moodle

# nbgrader's own queries warn.
pytestmark = [pytest.mark.grading, pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")]


@pytest.fixture(scope="module")
def gradebook(tmp_path_factory):
    """Three students, of whom two handed in; one waits for a mark, and one was late."""
    with Gradebook(f"sqlite:///{tmp_path_factory.mktemp('exports') / 'gradebook.db'}") as book:
        book.add_assignment("tiny")
        book.add_notebook("one", "tiny")
        book.add_grade_cell("test", "one", "tiny", max_score=8, cell_type="code")
        for name, first, last in (
            ("101", "Ada", "Lovelace"),
            ("102", "Bob", "Barker"),
            ("103", "Cem", "Can"),
        ):
            book.add_student(name, first_name=first, last_name=last, email=f"{first.lower()}@x.org")
        for name, points in (("101", 7.5), ("102", 4.0)):
            book.add_submission("tiny", name)
            grade = book.find_grade("test", "one", "tiny", name)
            grade.auto_score, grade.needs_manual_grade = points, name == "102"
        book.find_submission_notebook("one", "tiny", "102").late_submission_penalty = 1.0
        book.db.commit()
        yield book


@pytest.fixture
def export(gradebook, tmp_path, caplog):
    def run(kind, roster: str | None = None, **more) -> list[list[str]]:
        if roster is not None:
            (tmp_path / "roster.csv").write_text(roster, encoding="utf-8-sig")
            more["roster"] = str(tmp_path / "roster.csv")
        caplog.set_level(logging.WARNING)
        kind(to=str(tmp_path / "out.csv"), log=logging.getLogger("starvelab.test"), **more).export(gradebook)
        return list(csv.reader((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()))

    return run


def test_canvas_gets_its_own_table_back_with_the_points_in_it(export, caplog):
    found = export(
        Canvas,
        "Student,ID,SIS User ID,SIS Login ID,Section,Quiz (7),Tiny (42),Final Score\n"
        "Points Possible,,,,,5,8,(read only)\n"
        '"Lovelace, Ada",101,,ada,A,4,,88\n'
        '"Can, Cem",103,,cem,A,5,2,70\n',
    )
    assert found == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Quiz (7)", "Tiny (42)", "Final Score"],
        ["Points Possible", "", "", "", "", "5", "8", "(read only)"],
        ["Lovelace, Ada", "101", "", "ada", "A", "4", "7.5", "88"],
        ["Can, Cem", "103", "", "cem", "A", "5", "2", "70"],
    ]
    assert "Graded, but not in the roster: 102" in caplog.text
    assert "1 submissions wait for a mark by hand, which counts as 0 until then." in caplog.text


def test_canvas_gets_a_new_table_where_there_is_none(export):
    assert export(Canvas) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "tiny"],
        ["Points Possible", "", "", "", "", "8"],
        ["Lovelace, Ada", "101", "", "101", "", "7.5"],
        ["Barker, Bob", "102", "", "102", "", "3"],
        ["Can, Cem", "103", "", "103", "", ""],
    ]


def test_moodle_gets_its_worksheet_back(export):
    found = export(
        Moodle,
        "Identifier,Full name,Status,Grade,Maximum Grade\n"
        "Participant 101,Ada Lovelace,Submitted,,8\n"
        "Participant 102,Bob Barker,Submitted,,8\n"
        "Participant 103,=cmd(),No submission,,8\n",
    )
    assert [row[3] for row in found] == ["Grade", "7.5", "3", ""], "a penalty for being late is taken off"
    assert found[3][1] == "'=cmd()", "no cell is a formula"


def test_moodle_gets_a_new_table_where_there_is_none(export):
    assert export(Moodle)[:2] == [["username", "email", "tiny"], ["101", "ada@x.org", "7.5"]]


def test_a_roster_that_names_nobody_is_refused_with_what_it_needs(export):
    with pytest.raises(InputError) as error:
        export(Canvas, "Student,ID\nAda,999\n")
    assert str(error.value) == (
        "No student of the gradebook stands in the roster. It needs one of the columns ID, SIS Login ID, "
        "SIS User ID, Student with the names of the folders in submitted/; it has: Student, ID."
    )


def test_a_roster_that_is_not_there_or_empty_is_refused(gradebook, export):
    with pytest.raises(InputError, match=r"is not there. Pass the table that the platform exported"):
        Moodle(roster="/nowhere.csv").export(gradebook)
    with pytest.raises(InputError, match=r"is empty. Pass the table that the platform exported"):
        export(Moodle, "")


def test_nbgrader_takes_them_by_name(course):
    with course.gradebook() as book:
        book.add_student("ada")
        book.add_submission("tiny", "ada")
    for kind in ("Canvas", "Moodle"):
        to = course.folder / f"{kind}.csv"
        course.run("nbgrader", "export", f"--exporter=starvelab.grading.exports.{kind}", f"--to={to}")
        assert "ada" in to.read_text()
