"""Feedback on its way back: names that the platforms' own code reads, and each page once to its student."""

import csv
import io
import json
import re
import tomllib
import zipfile
from pathlib import Path

import nbformat
import pytest

from grader.tests.a_course import TINY
from grader.tests.in_process import run_here
from grader.tests.lms.conftest import PAGE, Pages, submit, write_page
from starvelab_grader.commands import platforms as command
from starvelab_grader.commands.platforms import PAGES, POINTS, CollectApp, ReturnApp
from starvelab_grader.errors import InputError
from starvelab_grader.lms.collecting import CANVAS, MOODLE, Origin, collect_download, load_origins
from starvelab_grader.lms.returning import RECORD, Delivery, as_notebook, members_of
from starvelab_grader.lms.rosters import Sheet
from tests.archives import zipped

GOLDEN = tomllib.loads(Path(__file__).with_name("returned.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", GOLDEN["canvas"])
def test_a_name_is_one_that_canvas_has_read(name):
    case = GOLDEN["canvas"][name]
    origin = Origin(CANVAS, files=case["submitted"])
    assert Delivery(case["student"], case["student"], Path("/x/tiny/index.html"), origin, "").path == name
    assert case["canvas"].endswith(f" shown as {case['shown']}")
    assert Path(name).suffix == Path(case["shown"]).suffix


@pytest.mark.parametrize("name", GOLDEN["moodle"])
def test_a_name_is_one_that_moodle_has_read(name):
    case = GOLDEN["moodle"][name]
    assert Delivery(case["participant"], "9", Path("/x/tiny/index.html"), Origin(MOODLE), "").path == name
    # A name with a slash is that of a file which is there already: the same page again changes nothing.
    assert case["moodle"] == f"{case['participant']} assignfeedback_file /tiny-feedback.html"


def test_a_page_is_packed_as_what_its_name_says(tmp_path):
    (tmp_path / "tiny").mkdir()
    page = tmp_path / "tiny" / "index.html"
    figure = '<img alt="A" src="data:image/png;base64,iVBO/w=="><pre>a\n\n$b \\begin{c} d$</pre>'
    page.write_text(PAGE.replace("{}", figure))

    def packed(ending):
        return Delivery("1", "1", page, Origin(CANVAS, files={"7": ending}), "").packed

    assert packed(".html") == page.read_bytes()
    with zipfile.ZipFile(io.BytesIO(packed(".zip"))) as archive:
        assert archive.read("tiny-feedback.html") == page.read_bytes()
    nb = nbformat.reads(packed(".ipynb").decode(), as_version=4)
    nbformat.validate(nb)
    (cell,) = nb.cells
    text = "a&#10;&#10;&#36;b &#92;begin{c} d&#36;"  # no blank line, and nothing that looks as a formula
    picture = '<img alt="A" src="attachment:figure-1">'  # JupyterLab takes out those with data in them
    assert cell.source == f"<div><p>{picture}<pre>{text}</pre></p></div>"
    assert cell.attachments == {"figure-1": {"image/png": "iVBO/w=="}}
    assert as_notebook(b"<p>A page without a body").startswith(b"{")


def test_collecting_writes_down_what_the_platform_calls_the_files(course):
    (course.folder / "canvas.zip").write_bytes(
        zipped({"lovelaceada_LATE_11_70_one.ipynb": "{}", "lovelaceada_LATE_11_71_a_2.ZIP": "x"})
    )
    run_here(course, CollectApp(), TINY, "canvas.zip")
    record = course.folder / "course" / "collected" / f"{TINY}.json"
    ada = Origin(CANVAS, "lovelaceada", {"70": ".ipynb", "71": ".zip"})
    assert load_origins(record) == {"11": ada}
    files = {"Bob Barker_12_assignsubmission_file_/one.ipynb": "{}"}
    (course.folder / "moodle.zip").write_bytes(zipped(files))
    run_here(course, CollectApp(), TINY, "moodle.zip")
    origins = load_origins(record)
    assert (origins["11"], origins["12"]) == (ada, Origin(MOODLE, "Bob Barker")), "the others stay"
    record.write_text("damaged")
    assert load_origins(record) == {}


@pytest.mark.parametrize("name", ["999_888.ipynb", "._x.ipynb", "LATE_anon_1_2.ipynb", "a\u202e\n=1.ipynb"])
def test_a_name_that_a_student_chose_is_not_in_the_name_of_a_page(tmp_path, name):
    (tmp_path / "canvas.zip").write_bytes(
        zipped({f"eve_101_7101_{name}": "{}", "bob_102_7102_x.ipynb": "{}"})
    )
    collect_download(tmp_path / "canvas.zip", tmp_path / "submitted", TINY)
    origin = load_origins(tmp_path / "collected" / f"{TINY}.json")["101"]
    assert Delivery("101", "101", Path("/x"), origin, "").path == "feedback_101_7101_page.ipynb"


WORKSHEET = "Identifier,Full name,Group,Grade,Maximum grade\n"
TEAMS = (
    f"{WORKSHEET}Participant 55,Eve E,Blue_Team!,,6\nParticipant 101,Ada L,Red: one,,6\n"
    "Participant 102,Bob B,Red: one,,6\nParticipant 103,Cem C,,,6\n"
)
ONES = f"{WORKSHEET}Participant 101,Ada L,,,6\nParticipant 102,Bob B,,,6\nParticipant 103,Bob B,,,6\n"


@pytest.mark.parametrize(("roster", "names", "members"), [
    # Group 55 is not participant 55, who is in another one.
    (TEAMS, {"55": "Red one", "56": "Blue Team"}, {"101": "55", "102": "55", "55": "56"}),
    (ONES, {"101": "Ada L", "103": "Bob B"}, {"101": "101", "103": "103"}),
    (ONES, {"101": "Ada L", "102": "Bob Renamed", "109": "Gone"}, {"101": "101", "102": "102"}),
    (ONES, {"101": "", "102": ""}, {"101": "101", "102": "102"}),  # graded blind
    (TEAMS, {"55": "Red one", "103": "?!"}, {"101": "55", "102": "55"}),
])  # fmt: skip
def test_a_page_goes_to_each_member_of_a_group_and_to_nobody_else(roster, names, members):
    origins = {number: Origin(MOODLE, name) for number, name in names.items()}
    assert members_of(Sheet(roster), origins) == members


@pytest.mark.parametrize("roster", ["username,tiny\nada,\n", f"{WORKSHEET}Participant 55,Eve E,,,6\n"])
def test_a_roster_that_does_not_name_the_groups_is_rejected(roster):
    with pytest.raises(InputError, match=r"does not name those who submitted.* Pass the grading worksheet"):
        members_of(Sheet(roster), {"55": Origin(MOODLE, "Red one")})


def returned(course, number="001"):
    folder = course.folder / "course" / "returned" / TINY / number
    with zipfile.ZipFile(folder / PAGES) as archive:
        names = archive.namelist()
    points = folder / POINTS
    rows = list(csv.reader(points.read_text().splitlines())) if points.exists() else []
    return names, rows


def test_a_return_has_a_page_for_each_and_the_points_and_a_second_one_only_what_is_new(class_of_three):
    course = class_of_three
    shown = run_here(course, ReturnApp(), TINY, "--roster=canvas.csv", "--dry-run").stdout
    assert re.search(r"^ +101 +2\.5 of 10 points +new +feedback_101_7101_page\.ipynb$", shown, re.MULTILINE)
    assert not (course.folder / "course" / "returned").exists()
    done = run_here(course, ReturnApp(), TINY, "--roster=canvas.csv")
    assert done.stdout.startswith("tiny: 3 pages to return, 0 were returned before.\nThey are in ")
    assert "In Canvas upload points.csv (Grades, Import; of --roster), once pages.zip" in done.stdout
    assert "smith" not in done.stdout + done.stderr
    names, rows = returned(course)
    assert names == [f"feedback_{one}_7{one}_page.ipynb" for one in (101, 102, 103)]
    assert [row[-1] for row in rows] == ["Tiny (42)", "10", "2.5", "2.5", "2.5"]
    assert run_here(course, ReturnApp(), TINY).stdout == "tiny: 0 pages to return, 3 were returned before.\n"
    # One is marked again; of another the page looks different, and says the same.
    write_page(course, "102", "Better.")
    page = course.folder / "course" / "feedback" / "103" / TINY / "index.html"
    page.write_text(page.read_text().replace("red", "blue"))
    shown = run_here(course, ReturnApp(), TINY, "--dry-run").stdout
    assert "changed" in shown
    done = run_here(course, ReturnApp(), TINY, "--roster=canvas.csv")
    names, rows = returned(course, "002")
    assert names == ["feedback_102_7102_page.ipynb"]
    assert [row[-1] for row in rows[2:]] == ["1", "2.5", "1"], "what others have stays"
    run_here(course, ReturnApp(), TINY, "--only=103", "--again")
    names, rows = returned(course, "003")
    assert (names, rows) == (["feedback_103_7103_page.ipynb"], [])


def test_by_file_too_what_was_returned_first_and_counts_again_is_returned_again(class_of_three):
    """A, B, A in the page of one, and then in the scale of all."""
    course, options = class_of_three, ("--roster=canvas.csv",)
    (course.folder / "canvas.csv").write_text("Student,ID,Tiny (42)\nPoints Possible,,20\nA,101,\nB,102,\n")
    for number, text in enumerate(["Well done.", "Better.", "Well done."], start=1):
        write_page(course, "101", text)
        run_here(course, ReturnApp(), TINY, *options)
        names, rows = returned(course, f"00{number}")
        assert "feedback_101_7101_page.ipynb" in names
        assert rows[2][-1] == "2.5"
    for number, more, points in ((4, ["--scale"], "5"), (5, [], "2.5")):
        done = run_here(course, ReturnApp(), TINY, *options, *more)
        assert "tiny: 0 pages and the points of 2 to return, 1 were returned before." in done.stdout
        names, rows = returned(course, f"00{number}")
        assert names == [], "no page comes twice"
        assert [row[-1] for row in rows[2:]] == [points, points]
    assert "0 pages to return, 3 were" in run_here(course, ReturnApp(), TINY, *options).stdout


def test_a_return_that_was_not_uploaded_is_undone_with_its_folder(class_of_three):
    said = run_here(class_of_three, ReturnApp(), TINY).stdout
    assert "\nIf you upload nothing of it, delete that folder" in said
    folder = class_of_three.folder / "course" / "returned" / TINY / "001"
    record = json.loads((folder / RECORD).read_text())
    assert sorted(record) == ["101", "102", "103"]
    assert {(len(each["page"]), each["points"]) for each in record.values()} == {(64, "")}
    (folder / RECORD).write_text("damaged")
    done = run_here(class_of_three, ReturnApp(), TINY, fine=False)
    assert re.match(r".*returned\.json cannot be read\. Delete its folder: it is returned again", done.stderr)
    (folder / RECORD).unlink()
    assert "3 pages to return, 0 were returned" in run_here(class_of_three, ReturnApp(), TINY).stdout


def test_whom_nothing_can_be_returned_to_is_said_with_what_to_do(class_of_three, monkeypatch):
    course = class_of_three
    monkeypatch.setattr(Pages, "stale", ("101",))
    write_page(course, "104", "By hand.")
    with course.gradebook() as book:
        submit(book, "104")
        book.find_submission(TINY, "103").notebooks[0].grades[0].needs_manual_grade = True
        book.db.commit()
    shown = run_here(course, ReturnApp(), TINY, "--dry-run").stdout
    assert shown.splitlines()[2:] == [
        "Not returned:",
        "  101: the page is not up to date: starvelab-grader feedback tiny",
        "  103: not marked yet (--unmarked)",
        "  104: its name on the platform is not known",
    ]
    assert "2 pages to return" in run_here(course, ReturnApp(), TINY, "--dry-run", "--unmarked").stdout
    monkeypatch.setattr(Pages, "stale", ("101", "102"))
    shown = run_here(course, ReturnApp(), TINY, "--dry-run").stdout
    assert "\n  101, 102: the page is not up to date: starvelab-grader feedback tiny\n" in shown
    monkeypatch.setattr(Pages, "stale", ("101",))
    record = course.folder / "course" / "collected" / f"{TINY}.json"
    record.write_text(record.read_text().replace(".ipynb", ".pdf"))
    said = run_here(course, ReturnApp(), TINY).stdout
    assert "  102: no notebook, archive or page was submitted" in said
    assert "tiny: 0 pages to return, 0 were returned before." in said
    record.unlink()
    done = run_here(course, ReturnApp(), TINY, fine=False)
    assert done.stderr.startswith("Pages are returned by the numbers of Canvas or Moodle, and none")
    assert "send the pages in feedback/ yourself" in done.stderr


def test_moodle_gets_a_page_and_points_for_each_member_of_a_group(class_of_three):
    course = class_of_three
    (course.folder / "course" / "collected" / f"{TINY}.json").unlink()
    (course.folder / "teams.zip").write_bytes(zipped({
        f"{name}_assignsubmission_file_/one.ipynb": "{}" for name in ("Red one_102", "Blue Team_103")
    }))  # fmt: skip
    run_here(course, CollectApp(), TINY, "teams.zip")
    teams = TEAMS.replace("102,Bob", "104,Bob").replace("55", "102")
    (course.folder / "worksheet.csv").write_text(teams)
    done = run_here(course, ReturnApp(), TINY, "--only=102,103", fine=False)
    assert done.stderr.startswith("Moodle numbers the groups of a download as it numbers students")
    done = run_here(course, ReturnApp(), TINY, "--only=102,103", "--roster=worksheet.csv", "--scale")
    assert "In Moodle upload points.csv (grading worksheet), and then pages.zip" in done.stdout
    names, rows = returned(course)
    places = [f"Participant_{one}_assignfeedback_file_/tiny-feedback.html" for one in (101, 102, 104)]
    assert names == places, "102 is in the group that is called 103, and no member of group 102"
    assert [row[3] for row in rows] == ["Grade", "1.5", "1.5", "1.5", ""]


def test_a_return_that_cannot_be_written_whole_is_not_there(class_of_three, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", "returned.json")

    monkeypatch.setattr(command, "write_record", full)
    assert "No space left" in run_here(class_of_three, ReturnApp(), TINY, fine=False).stderr
    assert not list((class_of_three.folder / "course" / "returned" / TINY).glob("*"))
