"""Downloads of Canvas and Moodle, sorted into folders of students."""

from __future__ import annotations

import io
import os
import zipfile
from datetime import datetime

import pytest

from starvelab.widgets import pack
from starvelab_grader.commands.collect import CollectApp
from starvelab_grader.errors import InputError
from starvelab_grader.lms import collecting
from starvelab_grader.lms.collecting import TOO_LARGE, collect_download
from starvelab_grader.submissions.archives import SubmissionReader
from tests.grader.in_process import run_here


@pytest.fixture
def download(tmp_path):
    def make(files: dict[str, bytes | str], name: str = "submissions.zip"):
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            for path, content in files.items():
                archive.writestr(path, content)
        (tmp_path / name).write_bytes(made.getvalue())
        return tmp_path / name

    return make


def sorted_files(folder) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_a_download_is_sorted_and_sorted_again_changes_nothing(download, tmp_path):
    files = {
        "adalovelace_1_2_one.ipynb": "a",
        "bobbarker_3_4_one.ipynb": "b",
        "__MACOSX/._x": "",
        "notes.txt": "n",
    }
    found = collect_download(download(files), tmp_path / "submitted", "tiny")
    assert (found.new, found.changed, found.unchanged) == (["1", "3"], [], [])
    assert found.left_out == {
        "notes.txt": "its name does not tell the student",
        "__MACOSX": "macOS adds it to archives",
    }
    assert sorted_files(tmp_path / "submitted") == {"1/tiny/one.ipynb": b"a", "3/tiny/one.ipynb": b"b"}
    again = collect_download(download(files), tmp_path / "submitted", "tiny")
    assert (again.new, again.changed, again.unchanged) == ([], [], ["1", "3"])


def test_what_a_learner_packs_is_collected_and_read(download, tmp_path):
    """The file that `pack` writes, uploaded to Canvas as it is."""
    home = tmp_path / "tiny"
    home.mkdir()
    beside = {"predictions.json": b"{}", "train.txt": b"pass", "two.ipynb": b"b"}
    for name, content in (beside | {"one.ipynb": b"a", ".hidden": b"", "tiny.zip": b"old"}).items():
        (home / name).write_bytes(content)
    packed = pack(home)
    assert packed.files == ("one.ipynb", "predictions.json", "train.txt", "two.ipynb")
    canvas = download({"adalovelace_1_2_tiny.zip": packed.path.read_bytes()})
    found = collect_download(canvas, tmp_path / "submitted", "tiny", notebooks=["one", "two"])
    assert (found.new, found.left_out) == (["1"], {})
    read = SubmissionReader()
    files = {file.path.name: file.content for file in read.files(tmp_path / "submitted/1/tiny")}
    assert files == {**beside, "one.ipynb": b"a"}
    assert read.warnings == []


def test_what_was_handed_in_before_is_kept_aside(download, tmp_path):
    collect_download(download({"ada_1_2_one.ipynb": "old"}), tmp_path / "submitted", "tiny")
    found = collect_download(download({"ada_1_5_one-1.ipynb": "new"}), tmp_path / "submitted", "tiny")
    assert found.changed == ["1"]
    assert sorted_files(tmp_path / "submitted") == {"1/tiny/one-1.ipynb": b"new"}
    ((path, content),) = sorted_files(tmp_path / "replaced" / "tiny").items()
    assert path.startswith("1-20")
    assert content == b"old"


def test_of_several_uploads_the_latest_counts_and_the_others_are_kept(download, tmp_path):
    """One uploaded again after Canvas had renamed it, one without; a second notebook is no second upload."""
    files = {
        "ada_1_20_one.ipynb": "old",
        "ada_1_21_one-1.ipynb": "new",
        "bob_2_31_one.ipynb": "new",
        "bob_2_30_one-1.ipynb": "old",
        "cem_3_41_lab-1.ipynb": "first",
        "cem_3_40_lab-2.ipynb": "second",
        "dan_4_50_one-1.ipynb": "only",
    }
    asked = ["one", "lab-1", "lab-2"]
    found = collect_download(download(files), tmp_path / "submitted", "tiny", notebooks=asked)
    assert sorted_files(tmp_path / "submitted") == {
        "1/tiny/one.ipynb": b"new",
        "1/tiny/earlier-uploads/1/one.ipynb": b"old",
        "2/tiny/one.ipynb": b"new",
        "2/tiny/earlier-uploads/1/one-1.ipynb": b"old",
        "3/tiny/lab-1.ipynb": b"first",
        "3/tiny/lab-2.ipynb": b"second",
        "4/tiny/one-1.ipynb": b"only",
    }
    assert found.chosen == {
        "1": ["one-1.ipynb counts, and one.ipynb does not"],
        "2": ["one.ipynb counts, and one-1.ipynb does not"],
    }


def test_who_was_late_gets_a_time_behind_the_due_date(download, tmp_path):
    files = {"ada_LATE_1_2_one.ipynb": "a", "bob_3_4_one.ipynb": "b", "bob_3_5_timestamp.txt": "1999-01-01"}
    due = datetime(2026, 11, 1, 23, 59)
    found = collect_download(download(files), tmp_path / "submitted", "tiny", due=due)
    assert found.late == ["1"]
    assert sorted_files(tmp_path / "submitted") == {
        "1/tiny/one.ipynb": b"a",
        "1/tiny/timestamp.txt": b"2026-11-01 23:59:01 UTC",
        "3/tiny/one.ipynb": b"b",
    }, "and a time that a student wrote is no time"


def test_a_folder_will_do(tmp_path):
    (tmp_path / "unpacked" / "ada").mkdir(parents=True)
    (tmp_path / "unpacked" / "ada" / "one.ipynb").write_text("a")
    assert collect_download(tmp_path / "unpacked", tmp_path / "submitted", "tiny").new == ["ada"]


def test_no_path_leads_out(download, tmp_path):
    collect_download(download({"../../ada/../../one.ipynb": "a"}), tmp_path / "in" / "submitted", "tiny")
    assert sorted_files(tmp_path / "in") == {"submitted/ada/tiny/one.ipynb": b"a"}


def test_one_students_files_stop_nobody(download, tmp_path):
    """A file and a folder of the same name, a name that is too long, a stamp of the student's own."""
    files = {
        "ada/data": "a file",
        "ada/data\\a.csv": "beside it",
        f"bob/{'x' * 300}/one.ipynb": "b",
        "cem/one.ipynb": "c",
        "cem/timestamp.txt": "2001-01-01 00:00:00 UTC",
        "cem/deep/timestamp.txt": "mine",
        "dee/one.ipynb": "d",
    }
    found = collect_download(download(files), tmp_path / "submitted", "tiny")
    assert found.new == ["ada", "cem", "dee"]
    assert list(found.failed) == ["bob"]
    assert found.failed["bob"].startswith("The files could not be sorted: OSError: [Errno 36] File name too")
    assert found.left_out == {
        "ada/data/a.csv": "a file has the name of its folder",
        "cem/timestamp.txt": "only the platform says when something was submitted",
    }
    assert sorted_files(tmp_path / "submitted") == {
        "ada/tiny/data": b"a file",
        "cem/tiny/one.ipynb": b"c",
        "cem/tiny/deep/timestamp.txt": b"mine",
        "dee/tiny/one.ipynb": b"d",
    }


def test_an_inner_folder_of_one_student_is_no_layout_of_the_class(download, tmp_path):
    collect_download(download({"101/one.ipynb": "mine"}), tmp_path / "submitted", "tiny")
    files = {"101/one.ipynb": "mine", "eve/x_101_assignsubmission_file_/one.ipynb": "not mine"}
    found = collect_download(download(files), tmp_path / "submitted", "tiny")
    assert (found.new, found.unchanged, found.left_out) == (["eve"], ["101"], {})
    assert (tmp_path / "submitted/101/tiny/one.ipynb").read_bytes() == b"mine"


def test_a_colon_in_a_name_which_a_mac_shows_as_a_slash_is_no_reason_to_leave_a_file_out(download, tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("Lab 1:2/one.ipynb", "a")
        archive.writestr("data 3:4.csv", "b")
    files = {"C:/ada/one: final.ipynb": "a", "ada/both.zip": inner.getvalue()}
    found = collect_download(download(files), tmp_path / "submitted", "tiny")
    assert (found.new, found.left_out) == (["ada"], {})
    reader = SubmissionReader()
    files = {str(file.path): file.content for file in reader.files(tmp_path / "submitted/ada/tiny")}
    assert files == {
        "one: final.ipynb": b"a",
        "both/Lab 1:2/one.ipynb": b"a",
        "both/data 3:4.csv": b"b",
    }
    assert reader.warnings == []


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_what_is_not_collected_is_named(download, tmp_path):
    files = {"ada/one.ipynb": "a", "ada//one.ipynb": "b", "__MACOSX/ada/._one": "", "../": "", "..": "x"}
    found = collect_download(download(files), tmp_path / "submitted", "tiny")
    assert found.left_out == {
        "ada//one.ipynb": "another file has its place",
        "__MACOSX": "macOS adds it to archives",
        "..": "it has no name",
    }
    folder = tmp_path / "unpacked"
    (folder / "ada").mkdir(parents=True)
    (folder / "ada" / "one.ipynb").write_text("a")
    (folder / "ada" / "two.ipynb").symlink_to(folder / "ada" / "one.ipynb")
    (folder / "bob").symlink_to(folder / "ada")
    os.mkfifo(folder / "ada" / "pipe")
    found = collect_download(folder, tmp_path / "submitted", "tiny")
    assert found.left_out == {
        "bob": "it is a link",
        "ada/two.ipynb": "it is a link",
        "ada/pipe": "it is no ordinary file",
    }


def test_a_folder_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    (tmp_path / "unpacked" / "ada").mkdir(parents=True)
    (tmp_path / "unpacked" / "ada" / "one.ipynb").write_text("a")
    walk = os.walk

    def closed(folder, onerror):
        onerror(PermissionError(13, "Permission denied", f"{folder}/bob"))
        return walk(folder)

    monkeypatch.setattr(collecting.os, "walk", closed)
    found = collect_download(tmp_path / "unpacked", tmp_path / "submitted", "tiny")
    assert found.left_out == {"bob": "Permission denied"}


def test_two_files_of_one_place_and_two_students_of_one_name_are_named(download, tmp_path):
    files = {
        "Ada_1_assignsubmission_file_/text.html": "a",
        "Ada_1_assignsubmission_onlinetext_/text.html": "b",
    }
    found = collect_download(download(files), tmp_path / "submitted", "tiny")
    assert found.left_out == {"Ada_1_assignsubmission_onlinetext_/text.html": "another file has its place"}
    files = {"Ada/one.ipynb": "a", "ada/one.ipynb": "b", "bob/one.ipynb": "c"}
    found = collect_download(download(files), tmp_path / "in" / "submitted", "tiny")
    assert found.new == ["Ada", "bob"]
    assert found.failed == {"ada": "Its name differs from Ada in case alone: give one of them another name."}


def test_names_that_are_not_in_utf_8_stop_nobody(course, tmp_path):
    folder = tmp_path / "unpacked"
    for name in ("lovelac\udce9ada_1_2_one.ipynb", "bob_3_4_one.ipynb"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("a")
    printed = run_here(course, CollectApp(), "tiny", str(folder)).stdout
    assert printed.startswith("tiny: 2 new, ")
    with course.gradebook() as book:
        assert {one.id: one.last_name for one in book.students} == {"1": "lovelac?ada", "3": "bob"}


def test_what_one_student_sends_is_bounded(download, tmp_path, monkeypatch):
    monkeypatch.setattr("starvelab_grader.lms.collecting.MAX_TOTAL", 10)
    found = collect_download(download({"ada/a": "1" * 8, "ada/b": "2" * 8}), tmp_path / "submitted", "tiny")
    assert (found.new, found.left_out) == (["ada"], {"ada/b": TOO_LARGE})


def test_an_earlier_upload_takes_no_room_from_the_one_that_counts(download, tmp_path, monkeypatch):
    monkeypatch.setattr("starvelab_grader.lms.collecting.MAX_TOTAL", 10)
    files = {"ada_1_20_one.ipynb": "1" * 8, "ada_1_21_one-1.ipynb": "2" * 8}
    found = collect_download(download(files), tmp_path / "submitted", "tiny", notebooks=["one"])
    assert found.left_out == {"ada_1_20_one.ipynb": TOO_LARGE}
    assert sorted_files(tmp_path / "submitted") == {"1/tiny/one.ipynb": b"2" * 8}


def test_what_is_no_download_is_refused_with_what_to_pass(download, tmp_path):
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(
        InputError, match=r"is no .zip and no folder. Pass what Canvas or Moodle let you download"
    ):
        collect_download(tmp_path / "x.txt", tmp_path / "submitted", "tiny")
    with pytest.raises(
        InputError, match=r"nothing that belongs to a student. It should hold one folder for each"
    ):
        collect_download(download({"notes.txt": "x"}), tmp_path / "submitted", "tiny")


@pytest.mark.grading
@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")
def test_the_command_says_what_it_did(course, download):
    with course.gradebook() as book:
        book.update_or_create_assignment("tiny", duedate="2026-11-01 00:00:00 UTC")
    files = {
        "lovelaceada_LATE_1_2_one.ipynb": "a",
        "barkerbob_3_4_one.ipynb": "a",
        "barkerbob_3_5_one-1.ipynb": "b",
        "notes.txt": "n",
    }
    roster = course.folder / "canvas.csv"
    roster.write_text('Student,ID,Section\n"Lovelace, Ada",1,A\n"Can, Cem",7,A\n')
    printed = run_here(course, CollectApp(), "tiny", str(download(files)), f"--roster={roster}").stdout
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
    for arguments, said in (((), "Which assignment, and which file?"), (("tiny", str(roster)), "is no .zip")):
        printed = run_here(course, CollectApp(), *arguments, fine=False)
        assert printed.returncode == 1
        assert said in printed.stderr
        assert "Traceback" not in printed.stderr
