"""Finding the notebooks of a hand-in; what comes of odd ones is in tests/hostile/test_structures.py."""

from __future__ import annotations

import json

import pytest

from starvelab.grading import handin
from starvelab.grading.handin import collect

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
        return collect(tmp_path, "ada", "tiny", ASKED)

    return give


def told(handed) -> list[str]:
    return [one.text for each in handed.remarks.values() for one in each]


def test_notebooks_with_their_names_are_taken_and_nothing_is_said(given):
    handed = given(**{"01_one.ipynb": nb("a"), "02_two.ipynb": nb("c"), "notes.txt": "x"})
    assert handed.notebooks.keys() == ASKED.keys()
    assert handed.files == {"notes.txt": b"x"}
    assert (told(handed), handed.refused) == ([], {})


@pytest.mark.parametrize(
    "name",
    ["01_one (1).ipynb", "01-one-Copy2.ipynb", "ada_5_6_01_one.ipynb", "01 ONE.IPYNB", "01_one.ipynb.json"],
)
def test_a_notebook_is_known_by_a_name_that_holds_its_own(given, name):
    handed = given(**{name: nb("x")})
    assert told(handed) == [f"It was called `{name}`."]
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
    assert handed.remarks["01_one"][1].person


def test_copies_that_are_the_same_are_not_worth_a_word(given):
    handed = given(**{"01_one.ipynb": nb("a"), "01_one (1).ipynb": nb("a")})
    assert told(handed) == []


def test_what_is_missing_is_said(given):
    handed = given(**{"01_one.ipynb": nb("a")})
    assert handed.refused["02_two"].text == (
        "`02_two.ipynb` was not handed in, so that its exercises count nothing."
    )
    assert not handed.refused["02_two"].person


def test_a_link_is_no_notebook(tmp_path, given):
    (tmp_path / "real.txt").write_text("x")
    (tmp_path / "01_one.ipynb").symlink_to(tmp_path / "real.txt")
    handed = given(**{"02_two.ipynb": nb("c")})
    assert handed.refused["01_one"].text == (
        "`01_one.ipynb` was handed in as a link, and not as a file: hand in the file itself."
    )
    assert told(handed) == ["`01_one.ipynb` is a link, and was left out."]


def test_files_are_found_from_the_folder_of_the_notebooks(given):
    handed = given(**{"my work/01_one.ipynb": nb("a"), "my work/data/x.csv": "1", "readme.txt": "2"})
    assert handed.files == {"data/x.csv": b"1", "readme.txt": b"2"}


@pytest.mark.parametrize(
    "name", ["predictions.json", "predictions (1).json", "deep/down/predictions.json", "old predictions.json"]
)
def test_predictions_are_found(given, name):
    handed = given(**{"01_one.ipynb": nb("a"), name: "{}"})
    assert handed.files["predictions.json"] == b"{}"


def test_programs_and_what_tools_leave_behind_stay_behind(given):
    handed = given(
        **{
            "01_one.ipynb": nb("a"),
            "math.py": "x",
            ".git/config": "x",
            "__pycache__/m.pyc": "x",
            "a.txt": "x",
        }
    )
    assert list(handed.files) == ["a.txt"]


def test_a_folder_that_cannot_be_read_is_said(given, monkeypatch, tmp_path):
    def closed(folder, onerror):
        onerror(PermissionError(13, "Permission denied", f"{folder}/secret"))
        return iter(())

    monkeypatch.setattr(handin.os, "walk", closed)
    (one,) = given().remarks["01_one"]
    assert one.text == "`secret` could not be read: Permission denied."
    assert one.person


def test_limits_are_kept_and_said(given, monkeypatch):
    monkeypatch.setattr(handin, "LONGEST_IN_ALL", 100)
    handed = given(**{"01_one.ipynb": nb("a"), "big.bin": b"x" * 200, "z.txt": "x"})
    assert list(handed.notebooks) == ["01_one"]
    assert handed.files == {}
    (one,) = handed.remarks["01_one"]
    assert one.text.endswith("were handed in: from `big.bin` on, files were left out.")
    assert one.person


def test_a_large_file_takes_no_notebooks_place(given, monkeypatch):
    monkeypatch.setattr(handin, "LONGEST_IN_ALL", 1000)
    handed = given(**{"01_one.ipynb": nb("a"), "00_big.bin": b"x" * 2000, "predictions.json": "{}"})
    assert list(handed.notebooks) == ["01_one"]
    assert handed.files == {"predictions.json": b"{}"}


def test_a_notebook_that_is_too_large_says_what_to_do(given, monkeypatch):
    monkeypatch.setattr(handin, "LONGEST_NOTEBOOK", 10)
    handed = given(**{"01_one.ipynb": nb("a")})
    assert "Clear its outputs, save it and hand it in again." in handed.refused["01_one"].text


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


def test_a_time_that_is_none_is_said(given):
    handed = given(**{"01_one.ipynb": nb("a"), "timestamp.txt": "tomorrow`"})
    assert handed.timestamp is None
    assert told(handed) == ["`timestamp.txt` holds no time: `tomorrow'`."]


def test_a_time_that_a_student_packed_is_none(given):
    handed = given(**{"in/01_one.ipynb": nb("a"), "in/timestamp.txt": "2001-01-01 00:00:00 UTC"})
    assert (handed.timestamp, handed.files) == (None, {})


def test_the_fingerprint_tells_any_two_hand_ins_apart(given):
    prints = {
        given(**{"01_one.ipynb": nb("a")}).fingerprint(),
        given(**{"01_one.ipynb": nb("a"), "x": "1"}).fingerprint(),
        given(x="2").fingerprint(),
        given(x="", y="2").fingerprint(),
        given(**{"02_two.ipynb": nb("a")}).fingerprint(),
        given(**{"timestamp.txt": "2026-11-21 12:00:00 UTC"}).fingerprint(),
    }
    assert len(prints) == 6
    assert given().fingerprint() in prints, "and the same one is the same"
