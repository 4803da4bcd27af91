"""Whose a file of a download is, by the names of Canvas and Moodle."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from starvelab_grader.lms.collecting import whose


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
        {
            "de_la_cruz_ana_123_456_one.ipynb": ("123", "one.ipynb"),
            "de_la_cruz_eva_LATE_124_457_my_2_notes.ipynb": ("124", "my_2_notes.ipynb"),
            "müllerjörg_125_text.html": ("125", "text.html"),
        },
        {
            "anon_aB3dE_456_one.ipynb": ("anon_aB3dE", "one.ipynb"),
            "LATE_anon_x9Zk2_457_one.ipynb": ("anon_x9Zk2", "one.ipynb"),
        },
        {
            "Ada Lovelace_789_assignsubmission_file_01_one.ipynb": ("789", "01_one.ipynb"),
            "Bob_790_assignsubmission_file_notes_2026_11_21.ipynb": ("790", "notes_2026_11_21.ipynb"),
            "Bob_790_assignsubmission_onlinetext_onlinetext.html": ("790", "onlinetext.html"),
            "grades.csv": (None, "grades.csv"),
        },
        # From here on one student chooses a name that looks like a platform's.
        {
            "ada/x_101_assignsubmission_file_/one.ipynb": ("ada", "x_101_assignsubmission_file_/one.ipynb"),
            "ada/x_101_assignsubmission_file_one.ipynb": ("ada", "x_101_assignsubmission_file_one.ipynb"),
            "bob/one.ipynb": ("bob", "one.ipynb"),
        },
        {"ada/x_101_assignsubmission_file_/one.ipynb": ("ada", "x_101_assignsubmission_file_/one.ipynb")},
        {
            "Ada_789_assignsubmission_file_/x_101_assignsubmission_file_/one.ipynb": (
                "789",
                "x_101_assignsubmission_file_/one.ipynb",
            ),
            "Eve_5_assignsubmission_file_ x_790_assignsubmission_file_/one.ipynb": ("790", "one.ipynb"),
        },
        {
            "class/Ada_789_assignsubmission_file_/x_101_assignsubmission_file_/a.ipynb": (
                "789",
                "x_101_assignsubmission_file_/a.ipynb",
            ),
            "class/Bob_790_assignsubmission_file_/one.ipynb": ("790", "one.ipynb"),
        },
        {
            "ada/one.ipynb": ("ada", "one.ipynb"),
            "bob/1_2_one.ipynb": ("bob", "1_2_one.ipynb"),
            "eve_1_20_one.ipynb": (None, "eve_1_20_one.ipynb"),
        },
        {
            "ada_1_20_one.ipynb": ("1", "one.ipynb"),
            "bob_2_21_x/eve_1_99_one.ipynb": (None, "bob_2_21_x/eve_1_99_one.ipynb"),
            "eve_3_22_mal_1_99_LATE_one.ipynb": ("3", "mal_1_99_LATE_one.ipynb"),
        },
        {
            "Ada_789_assignsubmission_file_one.ipynb": ("789", "one.ipynb"),
            "Eve_789_assignsubmission_file_ x_790_assignsubmission_file_one.ipynb": (
                None,
                "Eve_789_assignsubmission_file_ x_790_assignsubmission_file_one.ipynb",
            ),
        },
        {
            "ada_1_20_one.ipynb": (None, "ada_1_20_one.ipynb"),
            "eve_1_3_22_one.ipynb": (None, "eve_1_3_22_one.ipynb"),
            "bob_2_21_one.ipynb": ("2", "one.ipynb"),
        },
        {
            "anon_1_20_one.ipynb": ("1", "one.ipynb"),
            "bob_2_21_one.ipynb": ("2", "one.ipynb"),
        },
        {
            "anon_aB3dE_456_01_one.ipynb": ("anon_aB3dE", "01_one.ipynb"),
            "anon_x9Zk2_457_01_one.ipynb": ("anon_x9Zk2", "01_one.ipynb"),
        },
        {
            "ada_1_20_one.ipynb": ("1", "one.ipynb"),
            "eve_\u0661_\u0662_3_22_one.ipynb": ("3", "one.ipynb"),
        },
        {
            "Jose\u0301/one.ipynb": ("Jos\u00e9", "one.ipynb"),
            ".git/config": (None, ".git/config"),
        },
    ],
)
def test_whose_a_file_is_is_told_by_the_download_as_a_whole(told):
    expected = {PurePosixPath(path): (who, PurePosixPath(inner)) for path, (who, inner) in told.items()}
    assert {path: (file.student, file.path) for path, file in whose(expected).items()} == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("lovelaceada_LATE_1_20_one.ipynb", ("lovelaceada", True, 20)),
        ("de_la_cruz_ana_1_20_one.ipynb", ("de_la_cruz_ana", False, 20)),
        ("LATE_anon_aB3dE_20_one.ipynb", ("", True, 20)),
        ("Ada de Byron_1_assignsubmission_file_/one.ipynb", ("Ada de Byron", False, 0)),
    ],
)
def test_the_name_says_more_than_whose_a_file_is(path, expected):
    (file,) = whose([PurePosixPath(path)]).values()
    assert (file.name, file.late, file.upload) == expected


def test_a_word_that_stands_for_every_name_is_none():
    paths = [PurePosixPath(f"Teilnehmerin_{n}_assignsubmission_file_/one.ipynb") for n in (1, 2)]
    assert {file.name for file in whose(paths).values()} == {""}
