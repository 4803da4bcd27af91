"""Downloads of Canvas and Moodle, sorted into folders of students."""

from __future__ import annotations

import io
import zipfile
from pathlib import PurePosixPath

import pytest

from starvelab.errors import InputError
from starvelab.grading.collecting import collect_download, whose


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


@pytest.mark.parametrize(
    "told",
    [
        {
            "lovelaceada_123_456_01_one.ipynb": ("123", "01_one.ipynb"),
            "barkerbob_LATE_124_457_01_one-1.ipynb": ("124", "01_one-1.ipynb"),
            "readme.txt": (None, "readme.txt"),
        },
        {
            "submissions/lovelaceada_123_456_predictions.json": ("123", "predictions.json"),
            "submissions/barkerbob_124_457_predictions.json": ("124", "predictions.json"),
        },
        {
            "Ada Lovelace_789_assignsubmission_file_/deep/01_one.ipynb": ("789", "deep/01_one.ipynb"),
            "Ada Lovelace_789_assignsubmission_file_/notes_2026_11_21.ipynb": (
                "789",
                "notes_2026_11_21.ipynb",
            ),
            "Ada_de Byron_790_assignsubmission_file/x.zip": ("790", "x.zip"),
            "index.html": (None, "index.html"),
        },
        {
            "ada/01_one.ipynb": ("ada", "01_one.ipynb"),
            "ada/notes_2026_11_21.ipynb": ("ada", "notes_2026_11_21.ipynb"),
            "bob/tiny/01_one.ipynb": ("bob", "tiny/01_one.ipynb"),
        },
        {"ada/notes_2026_11_21.ipynb": ("ada", "notes_2026_11_21.ipynb")},
    ],
)
def test_whose_a_file_is_is_told_by_the_download_as_a_whole(told):
    expected = {PurePosixPath(path): (who, PurePosixPath(inner)) for path, (who, inner) in told.items()}
    assert whose(expected) == expected


def test_a_download_is_sorted_and_sorted_again_changes_nothing(download, tmp_path):
    files = {
        "adalovelace_1_2_one.ipynb": "a",
        "bobbarker_3_4_one.ipynb": "b",
        "__MACOSX/._x": "",
        "notes.txt": "n",
    }
    found = collect_download(download(files), tmp_path / "submitted", "tiny")
    assert (found.new, found.changed, found.unchanged, found.left_out) == (["1", "3"], [], [], ["notes.txt"])
    assert sorted_files(tmp_path / "submitted") == {"1/tiny/one.ipynb": b"a", "3/tiny/one.ipynb": b"b"}
    again = collect_download(download(files), tmp_path / "submitted", "tiny")
    assert (again.new, again.changed, again.unchanged) == ([], [], ["1", "3"])


def test_what_was_handed_in_before_is_kept_aside(download, tmp_path):
    collect_download(download({"ada_1_2_one.ipynb": "old"}), tmp_path / "submitted", "tiny")
    found = collect_download(download({"ada_1_5_one-1.ipynb": "new"}), tmp_path / "submitted", "tiny")
    assert found.changed == ["1"]
    assert sorted_files(tmp_path / "submitted") == {"1/tiny/one-1.ipynb": b"new"}
    ((path, content),) = sorted_files(tmp_path / "replaced" / "tiny").items()
    assert path.startswith("1-20")
    assert content == b"old"


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
    assert found.left_out == ["ada/data/a.csv", "cem/timestamp.txt"]
    assert sorted_files(tmp_path / "submitted") == {
        "ada/tiny/data": b"a file",
        "cem/tiny/one.ipynb": b"c",
        "cem/tiny/deep/timestamp.txt": b"mine",
        "dee/tiny/one.ipynb": b"d",
    }


def test_what_one_student_sends_is_bounded(download, tmp_path, monkeypatch):
    monkeypatch.setattr("starvelab.grading.collecting.LONGEST_IN_ALL", 10)
    found = collect_download(download({"ada/a": "1" * 8, "ada/b": "2" * 8}), tmp_path / "submitted", "tiny")
    assert (found.new, found.left_out) == (["ada"], ["ada/b"])


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
def test_the_command_says_what_it_did(course, download):
    path = download({"ada_1_2_one.ipynb": "a", "notes.txt": "n"})
    printed = course.run("starvelab", "collect", "tiny", str(path))
    assert printed.stdout.startswith("tiny: 1 new, 0 changed, 0 unchanged, in ")
    assert (
        "Left out, since no student could be told from the name, or too large:\n  notes.txt" in printed.stdout
    )
    for arguments, said in (((), "Which assignment, and which file?"), (("tiny", "none.zip"), "is no .zip")):
        printed = course.run("starvelab", "collect", *arguments, fine=False)
        assert printed.returncode == 1
        assert said in printed.stderr
        assert "Traceback" not in printed.stderr
