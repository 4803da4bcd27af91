"""Finding the notebooks of a submission; unusual ones are in tests/hostile/test_structures.py."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile

import pytest

from starvelab_grader.submissions import archives, submission
from starvelab_grader.submissions.submission import read_submission

ASKED = {"01_one": {"a", "b"}, "02_two": {"c", "d"}}


def nb(*names: str) -> str:
    """As much of a notebook as is looked at."""
    return json.dumps({"cells": [{"metadata": {"nbgrader": {"grade_id": name}}} for name in names]})


@pytest.fixture
def given(tmp_path):
    def give(**files: str | bytes):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_submission(tmp_path, "ada", "tiny", give.asked)

    give.asked = ASKED
    give.folder = tmp_path
    return give


def told(handed) -> list[str]:
    return [one.text for each in handed.warnings.values() for one in each]


def test_notebooks_with_their_names_are_taken_and_nothing_is_said(given):
    handed = given(**{"01_one.ipynb": nb("a"), "02_two.ipynb": nb("c"), "notes.txt": "x"})
    assert handed.notebooks.keys() == ASKED.keys()
    assert handed.files == {"notes.txt": b"x"}
    assert (told(handed), handed.rejected) == ([], {})


@pytest.mark.parametrize(
    "name",
    ["01_one (1).ipynb", "01-one-Copy2.ipynb", "ada_5_6_01_one.ipynb", "01 ONE.IPYNB", "01_one.ipynb.json"],
)
def test_a_notebook_is_known_by_a_name_that_holds_its_own(given, name):
    handed = given(**{name: nb("a")})
    assert told(handed) == [f"The file of this notebook is called `{name}`."]
    assert list(handed.notebooks) == ["01_one"]


def test_a_notebook_is_known_by_its_cells(given):
    handed = given(**{"x.ipynb": nb("c", "d"), "y.ipynb": nb("a", "c")})
    assert list(handed.notebooks) == ["02_two"], "half of the cells is not enough"


def test_the_newest_of_several_copies_counts_where_none_has_the_name_itself(given):
    handed = given(
        **{"01_one (2).ipynb": nb("2"), "01_one (11).ipynb": nb("11"), "01_one (1).ipynb": nb("1")}
    )
    assert handed.notebooks["01_one"] == nb("11").encode()
    assert (
        "`01_one (11).ipynb` counts, and `01_one (2).ipynb`, `01_one (1).ipynb` does not." in told(handed)[1]
    )
    assert handed.warnings["01_one"][1].person


def test_copies_that_are_the_same_are_not_worth_a_word(given):
    handed = given(**{"01_one.ipynb": nb("a"), "01_one (1).ipynb": nb("a")})
    assert told(handed) == []


def test_what_is_missing_is_said(given):
    handed = given(**{"01_one.ipynb": nb("a")})
    assert handed.rejected["02_two"].text == (
        "`02_two.ipynb` was not submitted, so its exercises earn no points."
    )
    assert handed.rejected["02_two"].person


def test_a_notebook_of_another_assignment_is_said(given):
    handed = given(**{"01_one.ipynb": nb("x", "y"), "quiz.ipynb": nb("z")})
    assert told(handed) == [
        "Notebooks that are not asked for were left out: `quiz.ipynb`.",
        "`01_one.ipynb` holds no cell of this notebook: it may be of another assignment.",
    ]
    assert [one.person for one in handed.warnings["01_one"]] == [False, True]
    assert handed.rejected["02_two"].text.endswith(" `01_one.ipynb` is of another assignment.")


def test_a_page_that_shows_a_notebook_is_said(given):
    handed = given(**{"01_one.ipynb": nb("a"), "02-two.html": "<html>"})
    assert handed.rejected["02_two"].text.endswith(
        " `02-two.html` is not the notebook itself. Submit the notebook, as .ipynb."
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [("{", "must be JSON, and it is not"), ("[]", "must hold one table"), ('{"a": 1}', "must hold whole")],
)
def test_predictions_that_cannot_be_read_are_said(given, content, why):
    handed = given(**{"01_one.ipynb": nb("a"), "predictions.json": content})
    (one,) = told(handed)
    assert one.startswith(f"`predictions.json` cannot be read, or not all of it: predictions.json {why}")
    assert "The next prediction you lock" not in one
    assert handed.warnings["01_one"][0].person


def test_a_link_is_no_notebook(tmp_path, given):
    (tmp_path / "real.txt").write_text("x")
    (tmp_path / "01_one.ipynb").symlink_to(tmp_path / "real.txt")
    handed = given(**{"02_two.ipynb": nb("c")})
    assert handed.rejected["01_one"].text == (
        "`01_one.ipynb` was submitted as a link, and not as a file. Submit the file itself."
    )
    assert told(handed) == ["`01_one.ipynb` is a link, and was left out."]


def test_files_are_found_from_the_folder_of_the_notebooks(given):
    handed = given(**{"my work/01_one.ipynb": nb("a"), "my work/data/x.csv": "1", "readme.txt": "2"})
    assert handed.files == {"data/x.csv": b"1", "readme.txt": b"2"}


def test_of_two_files_in_one_place_that_beside_the_notebooks_counts(given):
    handed = given(
        **{
            "work/01_one.ipynb": nb("a"),
            "work/predictions.json": '{"a": {"answer": 1}}',
            "predictions.json": "{}",
            "work/data/x.csv": "below",
            "work/x.csv": "beside",
            "same.csv": "same",
            "work/same.csv": "same",
        }
    )
    assert handed.files == {
        "predictions.json": b'{"a": {"answer": 1}}',
        "data/x.csv": b"below",
        "x.csv": b"beside",
        "same.csv": b"same",
    }
    said = [one for one in told(handed) if one.startswith("There are several files")]
    assert said == [
        "There are several files of `predictions.json`: `work/predictions.json` counts, and "
        "`predictions.json` does not."
    ]
    assert handed.warnings["01_one"][0].person


def test_of_two_files_in_one_place_that_which_was_not_packed_counts(given):
    packed = tape(*[tarfile.TarInfo("x.csv")])
    handed = given(**{"01_one.ipynb": nb("a"), "all.tar": packed, "all/x.csv": "1"})
    assert handed.files == {"all/x.csv": b"1"}


def test_of_many_copies_ten_are_named(given):
    names = ["a.csv"] * 30 + [f"b{number}.csv" for number in range(15)] * 2
    entries = [tarfile.TarInfo(name) for name in names]
    for number, one in enumerate(entries):
        one.size = number
    handed = given(**{"01_one.ipynb": nb("a"), "a.tar": tape(*entries, body=b"x" * len(entries))})
    assert len(told(handed)) == 11
    assert told(handed)[10] == "There are several files in 6 more places."
    (of_thirty,) = (one for one in told(handed) if one.startswith("There are several files of `a/a.csv`:"))
    assert of_thirty.endswith(", `a/a.csv` and 19 more does not.")


@pytest.mark.parametrize(
    "name", ["predictions.json", "predictions (1).json", "deep/down/predictions.json", "old predictions.json"]
)
def test_predictions_are_found(given, name):
    handed = given(**{"01_one.ipynb": nb("a"), name: "{}"})
    assert handed.files["predictions.json"] == b"{}"


def test_what_tools_leave_behind_stays_behind(given):
    handed = given(
        **{
            "01_one.ipynb": nb("a"),
            "math.py": "x",
            ".git/config": "x",
            "__pycache__/m.pyc": "x",
            "a.txt": "x",
        }
    )
    # What is code is left out later, and named.
    assert list(handed.files) == ["a.txt", "math.py"]
    assert told(handed) == [
        "Hidden files and folders, and those that tools make, were left out: `.git`, `__pycache__`.",
    ]


def test_what_of_an_archive_is_no_file_or_packed_too_deep_is_named(given):
    nameless, pipe, checkpoint = map(tarfile.TarInfo, ("..", "work/pipe", "work/.ipynb_checkpoints/a.ipynb"))
    pipe.type = tarfile.FIFOTYPE
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("deep.zip", b"PK")
        archive.writestr("..", b"x")
    packed = tarfile.TarInfo("inner.zip")
    packed.size = len(inner.getvalue())
    tar = tape(nameless, pipe, checkpoint, packed, body=inner.getvalue())
    assert told(given(**{"01_one.ipynb": nb("a"), "a.tar": tar})) == [
        "A file in `a` has no name, and was left out.",
        "`work/pipe` is no ordinary file, and was left out.",
        "`deep.zip` was not unpacked: it stands in 2 archives. Submit the files themselves.",
        "A file in `a/inner` has no name, and was left out.",
        "Hidden files and folders, and those that tools make, were left out: `.ipynb_checkpoints`.",
    ]


def test_a_notebook_may_be_called_predictions(given):
    given.asked = {"03_predictions": {"a"}}
    assert list(given(**{"03_predictions (1).ipynb": nb("a")}).notebooks) == ["03_predictions"]


@pytest.mark.parametrize(
    "name", ["演習二.ipynb", "U\u0308bung 2.ipynb", "Übung_2 (1).ipynb", "ÜBUNG-2.ipynb"]
)
def test_notebooks_are_told_apart_in_any_script(given, name):
    given.asked = {"演習一": {"a"}, "演習二": {"b"}, "Übung_1": {"c"}, "Übung_2": {"d"}}
    (found,) = given(**{name: "{}"}).notebooks
    assert found in ("演習二", "Übung_2")


def test_of_several_files_of_predictions_one_counts_and_the_others_are_named(given):
    files = {"01_one.ipynb": nb("a"), "predictions (1).json": "{}", "my predictions.json": '{"a": 1}'}
    handed = given(**files)
    assert handed.files["predictions.json"] == b'{"a": 1}'
    assert told(handed)[0] == (
        "`my predictions.json` counts as `predictions.json`, and `predictions (1).json` does not."
    )
    assert handed.warnings["01_one"][0].person
    assert told(given(**files, **{"predictions.json": "{}"}))[0] == (
        "`predictions.json` counts, and `my predictions.json` does not."
    )


def test_the_lock_of_the_predictions_is_nothing_to_speak_of(given):
    assert told(given(**{"01_one.ipynb": nb("a"), ".predictions.json.lock": ""})) == []


def test_a_folder_that_cannot_be_read_is_said(given, monkeypatch, tmp_path):
    def closed(folder, onerror):
        onerror(PermissionError(13, "Permission denied", f"{folder}/secret"))
        return iter(())

    monkeypatch.setattr(archives.os, "walk", closed)
    (one,) = given().warnings["01_one"]
    assert one.text == "`secret` could not be read: Permission denied."
    assert one.person


def test_limits_are_kept_and_said(given, monkeypatch):
    monkeypatch.setattr(archives, "MAX_TOTAL", 100)
    handed = given(**{"01_one.ipynb": nb("a"), "big.bin": b"x" * 200, "z.txt": "x"})
    assert list(handed.notebooks) == ["01_one"]
    assert handed.files == {}
    (one,) = handed.warnings["01_one"]
    assert one.text.endswith("were submitted: from `big.bin` on, files were left out.")
    assert one.person


def test_a_large_file_takes_no_notebooks_place(given, monkeypatch):
    monkeypatch.setattr(archives, "MAX_TOTAL", 1000)
    handed = given(**{"01_one.ipynb": nb("a"), "00_big.bin": b"x" * 2000, "predictions.json": "{}"})
    assert list(handed.notebooks) == ["01_one"]
    assert handed.files == {"predictions.json": b"{}"}


def tape(*entries: tarfile.TarInfo, mode: str = "w:xz", body: bytes = b"") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:
        for entry in entries:
            archive.addfile(entry, io.BytesIO(body[: entry.size]))
    return made.getvalue()


def test_of_an_archive_everything_is_read_but_what_tools_leave_behind(given):
    left = ("work/__MACOSX/01_one.ipynb", "work/.ipynb_checkpoints/02_two.ipynb")
    entries = [tarfile.TarInfo(name) for name in ("work/01_one.ipynb", "work/notes.txt", *left)]
    for entry in entries:
        entry.size = len(nb("a"))
    handed = given(**{"x.tar": tape(*entries, mode="w:", body=nb("a").encode())})
    assert handed.notebooks.keys() == {"01_one"}
    assert handed.files == {"notes.txt": nb("a").encode()}


def folders(number: int) -> list[tarfile.TarInfo]:
    found = [tarfile.TarInfo(f"f{at}") for at in range(number)]
    for one in found:
        one.type = tarfile.DIRTYPE
    return found


def test_folders_in_an_archive_are_counted_as_well(given, monkeypatch):
    monkeypatch.setattr(archives, "MAX_ENTRIES", 50)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for at in range(49):
            archive.writestr(zipfile.ZipInfo(f"d{at}/"), b"")
    for name, content, first in (
        ("a.tar.xz", tape(*folders(200)), "a.tar/f46"),
        ("a.zip", made.getvalue(), "a/d46"),
    ):
        handed = given(**{"02_two.ipynb": nb("c"), name: content, "01_one.ipynb": nb("a")})
        (one,) = told(handed)
        assert one.endswith(f"were submitted: from `{first}` on, files were left out.")
        assert list(handed.notebooks) == ["01_one", "02_two"], "what stands before it is read"
        (given.folder / name).unlink()


def test_a_zip_with_a_table_of_contents_that_is_too_long_is_not_opened(given, monkeypatch):
    monkeypatch.setattr(archives, "MAX_ENTRIES", 50)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for at in range(51):
            archive.writestr(zipfile.ZipInfo(f"d{at}/"), b"")
    monkeypatch.setattr(archives.zipfile, "ZipFile", None)
    (one,) = told(given(**{"01_one.ipynb": nb("a"), "z.zip": made.getvalue()}))
    assert one.endswith("from `z` on, files were left out.")


def test_a_compressed_tape_is_read_no_further_than_the_limit(given, monkeypatch):
    """What is left out would be unpacked too, to find what stands behind it."""
    monkeypatch.setattr(archives, "MAX_TOTAL", 100_000)
    padding, last = tarfile.TarInfo(".git"), tarfile.TarInfo("01_one.ipynb")
    padding.size = last.size = 200_000
    handed = given(**{"a.tar.xz": tape(padding, last, body=b" " * 200_000)})
    assert handed.notebooks == {}
    (one,) = told(handed)
    assert one.endswith("from `a.tar/.git` on, files were left out.")


@pytest.mark.parametrize("names", [[3_000_000], [1_100_000] * 2])
def test_headers_of_megabytes_are_taken_for_damage(given, names):
    entries = [tarfile.TarInfo("x" * length) for length in names]
    handed = given(**{"01_one.ipynb": nb("a"), "a.tar.gz": tape(*entries, mode="w:gz")})
    assert told(handed) == ["`a.tar.gz` could not be unpacked: it is damaged."]


def test_names_that_no_file_system_takes_are_cut(given, tmp_path):
    deep, wide = "/".join(["d" * 90] * 60), "\N{PILE OF POO}" * 250
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(f"{deep}/deep.csv", "1")
        archive.writestr(f"{wide}/wide.csv", "2")
        archive.writestr("w" * 300 + ".csv", "3")
    handed = given(**{"01_one.ipynb": nb("a"), "a.zip": made.getvalue()})
    assert sorted(handed.files.values()) == [b"1", b"2", b"3"]
    for at, (name, content) in enumerate(handed.files.items()):
        path = tmp_path / f"written-{at}" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        assert path.suffix == ".csv"


def test_a_notebook_that_is_too_large_says_what_to_do(given, monkeypatch):
    monkeypatch.setattr(submission, "MAX_NOTEBOOK", 10)
    handed = given(**{"01_one.ipynb": nb("a")})
    assert "Clear its outputs, save it and submit it again." in handed.rejected["01_one"].text


@pytest.mark.parametrize(
    ("stamp", "when"),
    [
        ("2026-11-21 12:00:00 UTC", "2026-11-21T12:00:00"),
        ("2026-11-21T12:00:00+01:00", "2026-11-21T11:00:00"),
        ("", None),
    ],
)
def test_the_time_is_that_of_whoever_collected(given, stamp, when):
    handed = given(**{"01_one.ipynb": nb("a"), "timestamp.txt": stamp})
    assert handed.timestamp == when
    assert (told(handed), handed.files) == ([], {})


@pytest.mark.parametrize(
    "stamp", ["tomorrow`", "9" * 40, "0001-01-01 00:00:00+14:00", "2026-11-21 12:00 +99999999", "1e400"]
)
def test_a_time_that_is_none_is_said(given, stamp):
    handed = given(**{"01_one.ipynb": nb("a"), "timestamp.txt": stamp})
    assert handed.timestamp is None
    assert told(handed) == [f"`timestamp.txt` holds no time: `{stamp.replace('`', chr(39))}`."]


def test_a_time_that_a_student_packed_is_none(given):
    handed = given(**{"in/01_one.ipynb": nb("a"), "in/timestamp.txt": "2001-01-01 00:00:00 UTC"})
    assert (handed.timestamp, handed.files) == (None, {})
    assert told(handed) == [
        "Only the platform says when something was submitted: `in/timestamp.txt` was left out."
    ]


def test_the_fingerprint_of_a_notebook_tells_any_two_submissions_apart(given):
    submissions = [
        given(**{"01_one.ipynb": nb("a")}),
        given(**{"01_one.ipynb": nb("a", "b")}),
        given(x="1"),
        given(x="2"),
        given(x="", y="2"),
    ]
    assert len({one.fingerprints()["01_one"] for one in submissions}) == 5
    assert given().fingerprints() == submissions[-1].fingerprints(), "and the same one is the same"


def test_a_notebook_changes_its_own_fingerprint_and_a_file_beside_it_changes_all(given):
    def differ(**files: str) -> list[str]:
        before = given().fingerprints()
        after = given(**files).fingerprints()
        assert before.keys() == after.keys() == ASKED.keys()
        return [name for name in ASKED if before[name] != after[name]]

    given(**{"01_one.ipynb": nb("a")})
    assert differ(**{"02_two.ipynb": nb("c")}) == ["02_two"], "it was missing"
    assert differ(**{"01_one.ipynb": nb("a", "b")}) == ["01_one"]
    assert differ(**{"old/01_one.ipynb": nb("b")}) == ["01_one"], "what is said of it is another thing"
    assert differ(**{"predictions.json": "{}"}) == ["01_one", "02_two"]
    assert differ(**{"timestamp.txt": "2026-11-21 12:00:00 UTC"}) == []
