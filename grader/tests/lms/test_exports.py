"""Tables for Canvas and Moodle: filled in, and otherwise as they were."""

import csv
import logging

import pytest
from nbgrader.api import Gradebook
from nbgrader.apps.nbgraderapp import NbGraderApp

from grader.tests.in_process import run_here
from starvelab_grader.errors import InputError
from starvelab_grader.lms.exports import Canvas, Grades, Moodle


@pytest.fixture(scope="module")
def gradebook(tmp_path_factory):
    """Three students, of whom two handed in; one waits for a mark, and one was late."""
    with Gradebook(f"sqlite:///{tmp_path_factory.mktemp('exports') / 'gradebook.db'}") as book:
        book.add_assignment("tiny")
        book.add_notebook("one", "tiny")
        book.add_grade_cell("test", "one", "tiny", max_score=8, cell_type="code")
        names = {"101": ("Ada", "Lovelace"), "102": ("Bob", "Barker"), "103": ("Cem", "Can")}
        for name, (first, last) in names.items():
            book.add_student(
                name, first_name=first, last_name=last, email=f"{first.lower()}@x.org", lms_user_id=name
            )
        for name, points in (("101", 7.5), ("102", 4.0)):
            book.add_submission("tiny", name)
            grade = book.find_grade("test", "one", "tiny", name)
            grade.auto_score, grade.needs_manual_grade = points, name == "102"
        book.find_submission_notebook("one", "tiny", "102").late_submission_penalty = 1.0
        book.db.commit()
        yield book


@pytest.fixture
def export(gradebook, tmp_path, logged):
    """The lines of a table, which is in out.csv as well; the first are the headers."""

    def run(kind, roster: str | None = None, **more) -> list[list[str]]:
        if roster is not None:
            (tmp_path / "roster.csv").write_text(roster, encoding="utf-8-sig")
            more["roster"] = str(tmp_path / "roster.csv")
        table = kind(log=logging.getLogger("starvelab.test"), **more).table(gradebook)
        (tmp_path / "out.csv").write_bytes(table.content)
        lines = table.content.decode("utf-8-sig").splitlines()
        return list(csv.reader(lines, delimiter=table.delimiter))

    return run


def test_canvas_gets_its_own_table_back_with_the_points_in_it(export, logged):
    headers = "Student,ID,SIS User ID,SIS Login ID,Section,Quiz (7),Tiny (42),Final Score"
    possible = "Points Possible,,,,,5,8,(read only)"
    found = export(
        Canvas, f'{headers}\n{possible}\n"Lovelace, Ada",101,,ada,A,4,,88\n"Can, Cem",103,,cem,A,5,2,70\n'
    )
    assert found == [
        headers.split(","),
        possible.split(","),
        ["Lovelace, Ada", "101", "", "ada", "A", "4", "7.5", "88"],
        ["Can, Cem", "103", "", "cem", "A", "5", "2", "70"],
    ]
    assert "Graded, but not in the roster: 102" in logged.text
    assert "1 submissions wait for a mark by hand, which counts as 0 until then." in logged.text
    assert not [text for text in ("is added", "points possible") if text in logged.text]


STARVING = "Student,ID,Section,Starving the GPU (4711)\r\n    Points Possible,,,100\r\n"


@pytest.fixture
def starving(gradebook):
    """An assignment with a title of several words, submitted by Ada."""
    gradebook.update_or_create_assignment("starving-the-gpu")
    gradebook.update_or_create_notebook("one", "starving-the-gpu")
    gradebook.update_or_create_grade_cell("t", "one", "starving-the-gpu", max_score=90, cell_type="code")
    gradebook.update_or_create_submission("starving-the-gpu", "101")
    gradebook.find_grade("t", "one", "starving-the-gpu", "101").auto_score = 81
    gradebook.db.commit()
    yield "starving-the-gpu"
    gradebook.remove_assignment("starving-the-gpu")


def test_canvas_calls_an_assignment_by_its_title(export, starving, logged):
    found = export(Canvas, STARVING + '"Lovelace, Ada",101,A,\r\n', assignment=[starving])
    assert found[2][3] == "81"
    assert len(found[0]) == 4
    assert "is added" not in logged.text


def test_a_column_is_named_as_the_table_has_it(export):
    labs = "Student,ID,Lab 3 (12),Lab 31 (13)\n,,8,8\nAda,101,,5\n"
    assert export(Canvas, labs, column="Lab 3 (12)", assignment=["tiny"])[2] == ["Ada", "101", "7.5", "5"]
    for column in ("Lab 3", "ID"):
        message = rf"and '{column}' is none\. It has: Student, ID, Lab 3 \(12\), Lab 31 \(13\)\."
        with pytest.raises(InputError, match=message):
            export(Canvas, labs, column=column, assignment=["tiny"])


@pytest.mark.parametrize(("kind", "roster", "written"), [
    # Canvas reads both marks, and a spreadsheet that takes semicolons takes 7.5 for the 7th of May.
    (Canvas, "Student;ID;Tiny (4)\nAda;101;\n", "7,5"),
    (Canvas, "Student,ID,Tiny (4)\nAda,101,\n", "7.5"),
    # Moodle reads "7,5" as 7 in a language with a decimal point, so its own numbers decide.
    (Moodle, "ID;tiny\n101;\n", "7.5"),
    (Moodle, 'ID;tiny;other\n101;;"3,25"\n', "7,5"),
])  # fmt: skip
def test_points_have_the_decimal_mark_that_the_platform_reads(export, kind, roster, written):
    assert export(kind, roster, assignment=["tiny"])[-1][2 if kind is Canvas else 1] == written


@pytest.mark.parametrize("date", ["7. May", "07.05.2026", "7-May", "May-26", "2026-05-07", "05/07/26"])
def test_points_that_a_spreadsheet_has_turned_into_a_date_are_rejected(export, date):
    with pytest.raises(InputError, match=rf"'Tiny \(4\)' .* '{date}' is a date: a spreadsheet has"):
        export(Canvas, f"Student,ID,Tiny (4)\n,,8\nAda,101,\nBob,102,{date}\n", assignment=["tiny"])


@pytest.mark.parametrize("points", ["    Points Possible,,5\n", ""])
def test_a_column_that_is_added_is_announced_and_carries_its_points(export, logged, points):
    found = export(Canvas, f"Student,ID,Quiz (7)\n{points}Ada,101,4\n")
    line = ["    Points Possible", "", "5", "8"] if points else ["Points Possible", "", "", "8"]
    assert found == [["Student", "ID", "Quiz (7)", "tiny"], line, ["Ada", "101", "4", "7.5"]]
    assert "no column for tiny: one is added, with 8 points possible, and Canvas makes a new" in logged.text
    assert "--Canvas.column=" in logged.text


def test_who_is_excused_on_the_platform_stays_so(export):
    assert export(Canvas, "Student,ID,tiny (4)\n,,8\nAda,101,EX\nCem,103,\n")[2:] == [
        ["Ada", "101", "EX"],
        ["Cem", "103", ""],
    ]


@pytest.mark.parametrize(("kind", "roster", "options", "message"), [
    (Canvas, "Student,ID,Tiny (1),tiny (2)\nAda,101,,\n", {"assignment": ["tiny"]},
     r"'Tiny \(1\)' and 'tiny \(2\)', and both .*--Canvas.column="),
    (Canvas, "Student,ID,Lab 3\nAda,101,\n", {"column": "Lab 3"},
     r"A column holds the points of one assignment, .*grades of 2: .*Name one of them: --assignment="),
    (Moodle, "Identifier,Full name,Grade\nParticipant 101,Ada,\n", {}, r"of one assignment, .* of 2: "),
    (Canvas, "Student,ID\nAda,999\n", {},
     r"No student of the gradebook stands in the roster\. It needs one of the columns ID, SIS Login ID, "
     r"SIS User ID, Student with the names of the folders in submitted/\. It has: Student, ID\."),
    (Canvas, f'ID,"{"x" * 200_000}', {}, "is no table: field larger than field limit"),
])  # fmt: skip
def test_what_cannot_be_meant_is_rejected_with_what_to_pass(export, starving, kind, roster, options, message):
    assert starving, "and there are two assignments"
    with pytest.raises(InputError, match=message):
        export(kind, roster, **options)


def test_cells_that_are_not_ours_keep_their_values(export, gradebook, tmp_path):
    roster = '\ufeffStudent;"ID";Note;tiny\r\n\r\n"Lovelace; ""Ada""\n";"101";=1+1; \r\nCem;103;"007";"2,0"'
    export(Canvas, roster.removeprefix("\ufeff"))
    written = '\ufeffStudent;ID;Note;tiny\r\n"Lovelace; ""Ada""\n";101;=1+1;7,5\r\nCem;103;007;2,0\r\n'
    assert (tmp_path / "out.csv").read_bytes() == written.encode()


SCALED = {
    # By platform and decimal mark: a table, the column of points, what is written as it is, and scaled.
    "canvas": (Canvas, "Student,ID,Tiny (4)\nPoints Possible,,100\nAda,101,\nBob,102,4.5\n", 2,
               ["100", "7.5", "3"], ["100", "93.75", "37.5"]),
    "moodle": (Moodle, "Identifier,Grade,Maximum Grade\nParticipant 101,,30.00\nParticipant 102,,30.00\n", 1,
               ["7.5", "3"], ["28.13", "11.25"]),
    "comma": (Moodle, 'ID;Note;Maximum\nPerson 101;;"30,00"\nPerson 102;"1,5";30,00\n', 1,
              ["7,5", "3"], ["28,13", "11,25"]),
}  # fmt: skip


@pytest.mark.parametrize("platform", SCALED)
def test_other_points_possible_are_announced_and_points_scaled_to_them_if_asked(export, logged, platform):
    kind, roster, column, as_they_are, scaled = SCALED[platform]
    assert [row[column] for row in export(kind, roster, assignment=["tiny"])[1:]] == as_they_are
    most = "100" if kind is Canvas else "30"
    announced = (
        f"has {most} points possible, and tiny has 8: points are written as they are, so that who earned all "
        f"has 8 of {most}. Give it 8 points there, or scale them: --{kind.__name__}.scale=True"
    )
    assert logged.text.splitlines()[0].endswith(announced)
    logged.text = ""
    assert [row[column] for row in export(kind, roster, assignment=["tiny"], scale=True)[1:]] == scaled
    assert "points possible" not in logged.text


def test_points_are_scaled_only_to_what_a_table_says(export):
    added = export(Canvas, "Student,ID\nPoints Possible,\nAda,101\n", assignment=["tiny"], scale=True)
    assert added[2] == ["Ada", "101", "7.5"]


WORKSHEETS = {
    "english": "Identifier,Full name,Status,Grade,Maximum Grade,Feedback comments\nParticipant 101,Ada,,,8,\n"
    "Participant 102,Bob,,,8,\nParticipant 103,=cmd(),No submission,,8,\n",
    "german": "ID,Vollständiger Name,Status,Bewertung,Bestwertung,Feedback als Kommentar\n"
    'Teilnehmer/in101,Ada,,,"8,00",\nTeilnehmer/in102,Bob,,,"8,00",\n',
    "chinese": "编号,全名,状态,分数,最高分,反馈评语\n参与者101,Ada,,,8.00,\n参与者102,Bob,,,8.00,\n",
    "blind": "Identifier,Status,Grade,Maximum Grade,Last modified (grade),Feedback comments\n"
    "Participant 101,,,8,-,\nParticipant 102,,,8,-,\n",
}


@pytest.mark.parametrize("language", WORKSHEETS)
def test_a_worksheet_is_filled_in_in_any_language(export, language):
    roster = WORKSHEETS[language]
    headers, *rows = export(Moodle, roster)
    assert headers == roster.splitlines()[0].split(","), "no column is added"
    grade = 2 if language == "blind" else 3
    points = ["7,5" if language == "german" else "7.5", "3", *[""] * len(rows[2:])]
    assert [row[grade] for row in rows] == points
    assert [row[1] for row in rows[2:]] in ([], ["=cmd()"]), "what the platform wrote stays as it was"


def test_a_table_of_grades_may_name_students_by_email(export, starving):
    by_email = export(Moodle, "Email address,tiny\nada@x.org,\nx@x.org,\n", assignment=["tiny"])
    assert by_email[1:] == [["ada@x.org", "7.5"], ["x@x.org", ""]]
    worksheet = "Identifier,Full name,Grade\nParticipant 101,Ada,\n"
    assert export(Moodle, worksheet, assignment=[starving])[1][2] == "81"


MEANS = r"A name in the roster has to mean one student, and '{}' means {}\. Correct the one"
ONE_ROW = r"A student has one row in the roster, and '{}' and '{}' both mean {}\. Correct the one"
# Students who are called as others are, a roster, and what is said of it.
CLASHES = {
    "a folder called by an email": (
        {"ada@x.org": {}}, "Email,tiny\nada@x.org,\nbob@x.org,\n",
        MEANS.format("ada@x.org", r"101 \(by the email\) and ada@x\.org \(by the folder\)"),
    ),
    "a folder of digits": (
        {"zoe": {"lms_user_id": "777"}, "777": {}}, "ID,tiny\n101,\n777,\n",
        MEANS.format("777", r"777 \(by the folder\) and zoe \(by the number\)"),
    ),
    "one email of two": (
        {"eve": {"email": "bob@x.org"}}, "Email,tiny\nbob@x.org,\n",
        MEANS.format("bob@x.org", r"102 \(by the email\) and eve \(by the email\)"),
    ),
    "one number of two": (
        {"eve": {"lms_user_id": "102"}}, "ID,tiny\n101,\n102,\n",
        MEANS.format("102", r"102 \(by the folder\) and eve \(by the number\)"),
    ),
    "two rows of one": ({}, "ID,tiny\n101,\nada@x.org,\n102,\n", ONE_ROW.format("101", r"ada@x\.org", "101")),
}  # fmt: skip


@pytest.mark.parametrize("kind", [Canvas, Moodle])
@pytest.mark.parametrize(("students", "roster", "message"), CLASHES.values(), ids=CLASHES)
def test_nobody_takes_the_row_of_another(export, gradebook, kind, students, roster, message):
    for name, fields in students.items():
        gradebook.add_student(name, **fields)
    try:
        with pytest.raises(InputError, match=message):
            export(kind, roster.replace("Email", "SIS Login ID"), assignment=["tiny"])
        # Whom the roster does not name stops nobody.
        assert export(kind, "ID,tiny\n103,\n", assignment=["tiny"]) == [["ID", "tiny"], ["103", ""]]
    finally:
        for name in students:
            gradebook.remove_student(name)


FORGED = "Eve\ntiny,None,,zoe,Z,Z,z@a.org,8.0,0.0,8.0,8.0"


def test_a_name_is_one_cell_of_nbgraders_own_table_and_no_formula(export, gradebook):
    gradebook.add_student("O'Brien, Pat", first_name="=1+1", last_name=FORGED)
    try:
        found = export(Grades)
        only = export(Grades, student=["102"], assignment=["tiny"])
    finally:
        gradebook.remove_student("O'Brien, Pat")
    header, *rows = found
    students = {row[3]: row for row in rows if row[0] == "tiny"}
    assert students["101"][3:] == ["101", "Lovelace", "Ada", "ada@x.org", "7.5", "0.0", "7.5", "8.0"]
    assert students["102"][7:] == ["4.0", "1.0", "3.0", "8.0"]
    assert students["O'Brien, Pat"][4:] == [FORGED.replace("\n", ""), "'=1+1", "", "0.0", "0.0", "0.0", "8.0"]
    assert only == [header, students["102"]]
    assert {len(row) for row in found} == {len(header)} == {11}


def test_nbgrader_takes_them_by_name_and_its_own_table_from_us(course):
    with course.gradebook() as book:
        book.add_student("ada", last_name="=1+1")
        book.add_submission("tiny", "ada")
    roster, to = course.folder / "roster.csv", course.folder / "to.csv"
    roster.write_text("SIS Login ID,tiny\nada,\n")
    for kind in ("Canvas", "Moodle"):
        by_name = f"--exporter=starvelab_grader.lms.exports.{kind}"
        run_here(course, NbGraderApp(), "export", by_name, f"--{kind}.roster={roster}", f"--to={to}")
        assert "ada,0" in to.read_text()
    run_here(course, NbGraderApp(), "export")
    assert "tiny,,,ada,'=1+1," in (course.folder / "course" / "grades.csv").read_text()
