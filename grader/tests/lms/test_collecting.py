"""Downloads of Canvas and Moodle, sorted into folders of students by the names that these give."""

import os
from datetime import datetime
from pathlib import PurePosixPath

import pytest

from grader.tests.in_process import run_here
from starvelab_grader.commands.platforms import CollectApp
from starvelab_grader.lms import collecting
from starvelab_grader.lms.collecting import TOO_LARGE, collect_download, files_of
from starvelab_grader.submissions.archives import SubmissionReader
from tests.archives import zipped, zipped_on_macos

pytestmark = pytest.mark.programs

ONE = "one.ipynb"


def sorted_files(folder) -> dict[str, bytes]:
    """All files but the record of what the platform calls them, which test_returning.py looks at."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if not name.startswith("collected/")}


@pytest.fixture
def collect(tmp_path):
    """Sorts a folder, or a .zip with these files, and gives what came of it and all files that are there."""

    def run(source, home=tmp_path / "home", **more):
        if isinstance(source, dict):
            (tmp_path / "submissions.zip").write_bytes(zipped(source))
            source = tmp_path / "submissions.zip"
        found = collect_download(source, home / "submitted", "tiny", **more)
        return found, sorted_files(home)

    return run


# By download, what the paths of its files say: student and file, or nothing. In the later ones a student has
# chosen a name that looks like a platform's.
DOWNLOADS = """
lovelaceada_123_456_01_one.ipynb = 123/01_one.ipynb
barkerbob_LATE_124_457_01_one-1.ipynb = 124/01_one-1.ipynb
readme.txt = ?

submissions/lovelaceada_123_456_predictions.json = 123/predictions.json
submissions/barkerbob_124_457_predictions.json = 124/predictions.json

Ada Lovelace_789_assignsubmission_file_/deep/01_one.ipynb = 789/deep/01_one.ipynb
Ada Lovelace_789_assignsubmission_file_/notes_2026_11_21.ipynb = 789/notes_2026_11_21.ipynb
Ada_de Byron_790_assignsubmission_file/x.zip = 790/x.zip
index.html = ?

ada/01_one.ipynb = ada/01_one.ipynb
ada/notes_2026_11_21.ipynb = ada/notes_2026_11_21.ipynb
bob/tiny/01_one.ipynb = bob/tiny/01_one.ipynb

ada/notes_2026_11_21.ipynb = ada/notes_2026_11_21.ipynb

de_la_cruz_ana_123_456_one.ipynb = 123/one.ipynb
de_la_cruz_eva_LATE_124_457_my_2_notes.ipynb = 124/my_2_notes.ipynb
müllerjörg_125_text.html = 125/text.html

anon_aB3dE_456_one.ipynb = anon_aB3dE/one.ipynb
LATE_anon_x9Zk2_457_one.ipynb = anon_x9Zk2/one.ipynb

Ada Lovelace_789_assignsubmission_file_01_one.ipynb = 789/01_one.ipynb
Bob_790_assignsubmission_file_notes_2026_11_21.ipynb = 790/notes_2026_11_21.ipynb
Bob_790_assignsubmission_onlinetext_onlinetext.html = 790/onlinetext.html
grades.csv = ?

ada/x_101_assignsubmission_file_/one.ipynb = ada/x_101_assignsubmission_file_/one.ipynb
ada/x_101_assignsubmission_file_one.ipynb = ada/x_101_assignsubmission_file_one.ipynb
bob/one.ipynb = bob/one.ipynb

ada/x_101_assignsubmission_file_/one.ipynb = ada/x_101_assignsubmission_file_/one.ipynb

Ada_7_assignsubmission_file_/x_101_assignsubmission_file_/a = 7/x_101_assignsubmission_file_/a
Eve_5_assignsubmission_file_ x_790_assignsubmission_file_/one.ipynb = 790/one.ipynb

class/Ada_7_assignsubmission_file_/x_1_assignsubmission_file_/a = 7/x_1_assignsubmission_file_/a
class/Bob_790_assignsubmission_file_/one.ipynb = 790/one.ipynb

ada/one.ipynb = ada/one.ipynb
bob/1_2_one.ipynb = bob/1_2_one.ipynb
eve_1_20_one.ipynb = ?

ada_1_20_one.ipynb = 1/one.ipynb
bob_2_21_x/eve_1_99_one.ipynb = ?
eve_3_22_mal_1_99_LATE_one.ipynb = 3/mal_1_99_LATE_one.ipynb

Ada_789_assignsubmission_file_one.ipynb = 789/one.ipynb
Eve_789_assignsubmission_file_ x_790_assignsubmission_file_one.ipynb = ?

ada_1_20_one.ipynb = ?
eve_1_3_22_one.ipynb = ?
bob_2_21_one.ipynb = 2/one.ipynb

anon_1_20_one.ipynb = 1/one.ipynb
bob_2_21_one.ipynb = 2/one.ipynb

ada_1_20_one.ipynb = 1/one.ipynb
eve_\u0661_\u0662_3_22_one.ipynb = 3/one.ipynb

Jose\u0301/one.ipynb = Jos\xe9/one.ipynb
.git/config = ?
"""


@pytest.mark.parametrize("download", DOWNLOADS.strip().split("\n\n"))
def test_whose_a_file_is_is_read_from_the_download_as_a_whole(download):
    expected = dict(line.split(" = ") for line in download.splitlines())
    found = files_of(map(PurePosixPath, expected))
    assert {
        str(file.source): f"{file.student}/{file.path}" if file.student else "?" for file in found
    } == expected


def test_the_name_says_more_than_whose_a_file_is():
    for path, expected in {
        "de_la_cruz_ana_LATE_1_20_one.ipynb": ("de_la_cruz_ana", True, 20),
        "LATE_anon_aB3dE_20_one.ipynb": ("", True, 20),
        "Ada de Byron_1_assignsubmission_file_/one.ipynb": ("Ada de Byron", False, 0),
    }.items():
        (file,) = files_of([PurePosixPath(path)])
        assert (file.name, file.late, file.upload) == expected
    # A word that stands for every name is none.
    paths = [PurePosixPath(f"Teilnehmerin_{n}_assignsubmission_file_/one.ipynb") for n in (1, 2)]
    assert {file.name for file in files_of(paths)} == {""}


def test_a_download_is_sorted_and_sorted_again_changes_nothing(collect):
    files = {"adalovelace_1_2_one.ipynb": "a", "bobbarker_3_4_one.ipynb": "b"}
    for new, unchanged in ((["1", "3"], []), ([], ["1", "3"])):
        found, there = collect(files)
        assert (found.new, found.changed, found.unchanged) == (new, [], unchanged)
        assert there == {"submitted/1/tiny/one.ipynb": b"a", "submitted/3/tiny/one.ipynb": b"b"}
    again, there = collect({"adalovelace_1_5_one-1.ipynb": "new"})
    assert again.changed == ["1"]
    ((before, content),) = ((path, content) for path, content in there.items() if "replaced" in path)
    assert before.startswith("replaced/tiny/1-20"), "what was submitted before is kept aside"
    assert (content, there["submitted/1/tiny/one-1.ipynb"]) == (b"a", b"new")


def test_of_several_uploads_the_latest_counts_and_the_others_are_kept(collect):
    """One uploaded again after Canvas had renamed it, one without; a second notebook is no second upload."""
    files = {
        "ada_1_20_one.ipynb": "old", "ada_1_21_one-1.ipynb": "new",
        "bob_2_31_one.ipynb": "new", "bob_2_30_one-1.ipynb": "old",
        "cem_3_41_lab-1.ipynb": "first", "cem_3_40_lab-2.ipynb": "second",
        "dan_4_50_one-1.ipynb": "only",
    }  # fmt: skip
    found, there = collect(files, notebooks=["one", "lab-1", "lab-2"])
    assert there == {
        "submitted/1/tiny/one.ipynb": b"new",
        "submitted/1/tiny/earlier-uploads/1/one.ipynb": b"old",
        "submitted/2/tiny/one.ipynb": b"new",
        "submitted/2/tiny/earlier-uploads/1/one-1.ipynb": b"old",
        "submitted/3/tiny/lab-1.ipynb": b"first",
        "submitted/3/tiny/lab-2.ipynb": b"second",
        "submitted/4/tiny/one-1.ipynb": b"only",
    }
    assert found.chosen == {
        "1": ["one-1.ipynb counts, and one.ipynb does not"],
        "2": ["one.ipynb counts, and one-1.ipynb does not"],
    }


def test_who_was_late_gets_a_time_behind_the_due_date(collect):
    files = {"ada_LATE_1_2_one.ipynb": "a", "bob_3_4_one.ipynb": "b"}
    found, there = collect(files, due=datetime(2026, 11, 1, 23, 59))
    assert found.late == ["1"]
    assert there.keys() - {"submitted/1/tiny/one.ipynb", "submitted/3/tiny/one.ipynb"} == {
        "submitted/1/tiny/timestamp.txt"
    }
    assert there["submitted/1/tiny/timestamp.txt"] == b"2026-11-01 23:59:01 UTC"


PLACE = "Ada_1_assignsubmission_{}_/text.html"


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(("files", "left_out", "there"), [
    ({"../../ada/../../one.ipynb": "a"}, {}, {"ada/tiny/one.ipynb": b"a"}),
    ({"ada/one.ipynb": "a", "ada//one.ipynb": "b", "__MACOSX/ada/._one": "", "../": "", "..": "x"},
     {"ada//one.ipynb": "another file has its place", "__MACOSX": "macOS adds it to archives",
      "..": "it has no name"}, {"ada/tiny/one.ipynb": b"a"}),
    ({"ada_1_2_one.ipynb": "a", "notes.txt": "n"},
     {"notes.txt": "its name does not tell the student"}, {"1/tiny/one.ipynb": b"a"}),
    ({PLACE.format("file"): "a", PLACE.format("onlinetext"): "b"},
     {PLACE.format("onlinetext"): "another file has its place"}, {"1/tiny/text.html": b"a"}),
    ({"ada\\": "", "ada\\in\\": "", "ada\\in\\one.ipynb": "a"}, {}, {"ada/tiny/in/one.ipynb": b"a"}),
    ({"ada/data": "a file", "ada/data\\a.csv": "beside it"},
     {"ada/data/a.csv": "a file has the name of its folder"}, {"ada/tiny/data": b"a file"}),
    # A time that a student wrote is no time.
    ({"cem/one.ipynb": "c", "cem/timestamp.txt": "2001-01-01 00:00 UTC", "cem/deep/timestamp.txt": ""},
     {"cem/timestamp.txt": "only the platform says when something was submitted"},
     {"cem/tiny/one.ipynb": b"c", "cem/tiny/deep/timestamp.txt": b""}),
    # What counts comes first, and what one student sends is bounded.
    ({"ada_1_20_one.ipynb": "1" * 60, "ada_1_21_one-1.ipynb": "2" * 60, "b_2_22_one.ipynb": "3" * 101},
     {"ada_1_20_one.ipynb": TOO_LARGE, "b_2_22_one.ipynb": TOO_LARGE}, {"1/tiny/one.ipynb": b"2" * 60}),
])  # fmt: skip
def test_what_is_left_out_is_named(collect, monkeypatch, files, left_out, there):
    monkeypatch.setattr(collecting, "MAX_TOTAL", 100)
    found, written = collect(files, notebooks=["one"])
    assert found.left_out == left_out
    assert written == {f"submitted/{path}": content for path, content in there.items()}


def test_one_students_files_stop_nobody(collect):
    files = {f"{name}/one.ipynb": "a" for name in (f"bob/{'x' * 300}", "Ada", "ada", "cem")}
    found, there = collect(files)
    assert found.new == ["Ada", "cem"]
    assert found.failed.pop("bob").startswith(
        "The files could not be sorted: OSError: [Errno 36] File name too"
    )
    assert found.failed == {"ada": "Its name differs from Ada in case alone: give one of them another name."}
    assert there == {f"submitted/{name}/tiny/one.ipynb": b"a" for name in ("Ada", "cem")}


def test_a_colon_in_a_name_which_a_mac_shows_as_a_slash_is_no_reason_to_leave_a_file_out(collect, tmp_path):
    inner = zipped({"Lab 1:2/one.ipynb": "a", "data 3:4.csv": "b"})
    found, _ = collect({"C:/ada/one: final.ipynb": "a", "ada/both.zip": inner})
    assert (found.new, found.left_out) == (["ada"], {})
    reader = SubmissionReader()
    files = {str(file.path): file.content for file in reader.files(tmp_path / "home/submitted/ada/tiny")}
    expected = {"one: final.ipynb": b"a", "both/Lab 1:2/one.ipynb": b"a", "both/data 3:4.csv": b"b"}
    assert (files, reader.warnings) == (expected, [])


def test_a_download_that_was_packed_again_on_macos_has_the_names_of_the_students(collect, tmp_path):
    place = tmp_path / "packed.zip"
    place.write_bytes(zipped_on_macos({"Jo\u0308rg \u738b_7_assignsubmission_file_/one.ipynb": "a"}))
    assert collect(place)[0].names == {"7": "Jörg 王"}


def test_what_of_a_folder_is_not_collected_is_named(collect, tmp_path, monkeypatch):
    folder = tmp_path / "unpacked"
    (folder / "ada").mkdir(parents=True)
    (folder / "ada" / ONE).write_text("a")
    (folder / "ada" / "two.ipynb").symlink_to(folder / "ada" / ONE)
    (folder / "bob").symlink_to(folder / "ada")
    os.mkfifo(folder / "ada" / "pipe")
    walk = os.walk

    def closed(folder, onerror):
        onerror(PermissionError(13, "Permission denied", f"{folder}/cem"))
        return walk(folder)

    monkeypatch.setattr(collecting.os, "walk", closed)
    found, _ = collect(folder)
    assert found.new == ["ada"]
    assert found.left_out == {
        "bob": "it is a link", "ada/two.ipynb": "it is a link", "ada/pipe": "it is no ordinary file",
        "cem": "Permission denied",
    }  # fmt: skip


def test_names_that_are_not_in_utf_8_stop_nobody(course, tmp_path):
    folder = tmp_path / "unpacked"
    for name in ("lovelac\udce9ada_1_2_one.ipynb", "bob_3_4_one.ipynb"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("a")
    printed = run_here(course, CollectApp(), "tiny", str(folder)).stdout
    assert printed.startswith("tiny: 2 new, ")
    with course.gradebook() as book:
        assert {one.id: one.last_name for one in book.students} == {"1": "lovelac?ada", "3": "bob"}


def test_the_command_says_what_it_did(course, tmp_path):
    with course.gradebook() as book:
        book.update_or_create_assignment("tiny", duedate="2026-11-01 00:00:00 UTC")
    files = {
        "lovelaceada_LATE_1_2_one.ipynb": "a", "barkerbob_3_4_one.ipynb": "a",
        "barkerbob_3_5_one-1.ipynb": "b", "notes.txt": "n",
    }  # fmt: skip
    (tmp_path / "submissions.zip").write_bytes(zipped(files))
    roster = course.folder / "canvas.csv"
    roster.write_text('Student,ID,Section\n"Lovelace, Ada",1,A\n"Can, Cem",7,A\n')
    printed = run_here(
        course, CollectApp(), "tiny", str(tmp_path / "submissions.zip"), f"--roster={roster}"
    ).stdout
    assert printed.startswith("tiny: 2 new, 0 changed, 0 unchanged, in ")
    for line in (
        "Left out:\n  notes.txt: its name does not tell the student",
        "the latest upload counts (to choose another, put it in its place):\n"
        "  3: one-1.ipynb counts, and one.ipynb does not",
        "1 came late, says Canvas, and not how late: they count as one second late, by the due date",
        "Nothing came from 1 of the 2 in the roster:\n  7 Cem Can",
    ):
        assert line in printed
    with course.gradebook() as book:
        names = {one.id: (one.first_name, one.last_name) for one in book.students}
    assert names == {"1": ("Ada", "Lovelace"), "3": (None, "barkerbob"), "7": ("Cem", "Can")}
