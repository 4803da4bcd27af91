"""Who is in a class, by the tables of Canvas and Moodle in any language."""

from __future__ import annotations

import pytest
from nbgrader.api import Gradebook

from starvelab_grader.errors import InputError
from starvelab_grader.lms.rosters import Person, key, named_by_download, read_roster, register

ADA = Person("Ada", "Lovelace")


@pytest.mark.parametrize(
    ("roster", "student", "person"),
    [
        ('Student,ID,SIS Login ID\n    Points Possible,,\n"Lovelace, Ada",101,ada@x.org\n', "101",
         Person("Ada", "Lovelace", "ada@x.org")),
        ("Identifier,Full name,Email address,Grade\nParticipant 101,Ada de Byron,ada@x.org,\n", "101",
         Person("Ada de", "Byron", "ada@x.org")),
        ("ID;Vollständiger Name;Bewertung\nTeilnehmer/in101;Ada Lovelace;\n", "101", ADA),
        ("编号,名字,成绩\n参与者101,Ada Lovelace,\n参与者102,Bob,\n", "101", ADA),
        ("Nachname,Vorname,Anmeldename\nLovelace,Ada,ada12\n", "ada12", ADA),
        ("Identifier,Status,Grade\nParticipant 101,Submitted,\n", "101", Person()),
    ],
)  # fmt: skip
def test_a_roster_is_read_by_how_it_is_built(tmp_path, roster, student, person):
    (tmp_path / "roster.csv").write_text(roster, encoding="utf-8-sig")
    assert read_roster(tmp_path / "roster.csv", [student])[student] == person


def test_who_has_not_submitted_is_in_the_roster_too(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text("Identifier,Full name\nParticipant 1,A B\nParticipant 2,C D\n")
    assert read_roster(path, ["2"]).keys() == read_roster(path, []).keys() == {"1", "2"}
    path.write_text('Student,ID\n"Lovelace, Ada",7\n"Student, Test",8\n')
    assert read_roster(path, []) == {"7": ADA}, "and Canvas' test student is nobody"


def test_a_roster_that_names_nobody_is_refused_with_what_to_pass(tmp_path):
    (tmp_path / "roster.csv").write_text("Name,Login\nAda,ada\n")
    with pytest.raises(InputError, match=r"No column of the roster .* for Moodle .*It has: Name, Login\."):
        read_roster(tmp_path / "roster.csv", ["101"])
    with pytest.raises(InputError, match=r"is not there. Pass the table that the platform exported"):
        read_roster(tmp_path / "none.csv", [])


@pytest.mark.grading
@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")
def test_a_name_in_the_gradebook_is_one_line_that_can_be_stored_and_printed():
    with Gradebook("sqlite://") as book:
        register(book, {"1": Person("\x1b[31mA\ud800da\n", "L\u00a0 \u202e" + 200 * "é"), "2": Person("\t")})
        one, two = (book.find_student(name) for name in "12")
        assert named_by_download(book, {"\udcff": "nobody", "3": "a b"}) == {"3": Person("a", "b")}
        assert (one.first_name, one.last_name) == ("[31mAda", "L " + 126 * "é")
        assert (two.first_name, two.last_name) == (None, None)


def test_a_name_of_letters_and_digits_is_no_participant():
    texts = ("Participant 12", "Teilnehmer/in12", " 12 ", "a1b2")
    assert [key(text) for text in texts] == ["12", "12", "12", "a1b2"]


@pytest.mark.grading
@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")
def test_a_name_from_a_roster_is_better_than_one_from_a_download(course):
    with course.gradebook() as book:
        register(book, {"1": ADA, "2": Person("", "barkerbob")})
        register(book, named_by_download(book, {"1": "lovelaceada", "2": "x", "3": "Cem Can"}))
        register(book, {"2": Person("Bob", "Barker", "b@x.org")})
    with Gradebook(f"sqlite:///{course.folder / 'course' / 'gradebook.db'}") as book:
        names = {one.id: (one.first_name, one.last_name, one.email) for one in book.students}
    assert names == {
        "1": ("Ada", "Lovelace", None),
        "2": ("Bob", "Barker", "b@x.org"),
        "3": ("Cem", "Can", None),
    }
