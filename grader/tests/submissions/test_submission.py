"""Finding the notebooks of a submission; unusual ones are in grader/tests/hostile/test_structures.py."""

import json
import zipfile

import pytest

from starvelab_grader.submissions import archives
from starvelab_grader.submissions.submission import read_submission
from tests.archives import zipped, zipped_on_macos

EXPECTED = {"01_one": {"a", "b"}, "02_two": {"c", "d"}}


def nb(*names: str) -> str:
    """As much of a notebook as is read."""
    return json.dumps({"cells": [{"metadata": {"nbgrader": {"grade_id": name}}} for name in names]})


ONE = {"01_one.ipynb": nb("a")}


@pytest.fixture
def read(tmp_path):
    """Adds files to a submission and reads it."""

    def add_and_read(files: dict[str, str | bytes], expected=EXPECTED):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_submission(tmp_path, "ada", "tiny", expected)

    return add_and_read


def texts(result, *, person: bool | None = None) -> list[str]:
    """The warnings about a submission, or those for a person alone."""
    warnings = [one for each in result.warnings.values() for one in each]
    return [one.text for one in warnings if person in (None, one.person)]


def test_notebooks_with_their_names_are_read_without_a_warning(read):
    result = read({**ONE, "02_two.ipynb": nb("c"), "notes.txt": "x", "01_one (1).ipynb": nb("a")})
    assert result.notebooks.keys() == EXPECTED.keys()
    assert result.files == {"notes.txt": b"x"}
    assert (texts(result), result.rejected) == ([], {})


@pytest.mark.parametrize("name", ["01_one (1).ipynb", "ada_5_6_01-one-Copy2.ipynb", "01 ONE.IPYNB.json"])
def test_a_notebook_is_known_by_a_name_that_holds_its_own(read, name):
    result = read({name: nb("a")})
    assert texts(result) == [f"The file of this notebook is called `{name}`."]
    assert list(result.notebooks) == ["01_one"]


@pytest.mark.parametrize(
    ("name", "found"),
    [("演習二.ipynb", "演習二"), ("U\u0308bung 2.ipynb", "Übung_2"), ("Übung_2 (1).ipynb", "Übung_2"),
     ("ÜBUNG-2.ipynb", "Übung_2"), ("03_predictions (1).ipynb", "03_predictions")],
)  # fmt: skip
def test_notebooks_are_told_apart_in_any_script(read, name, found):
    expected = {"演習一": {"a"}, "演習二": {"b"}, "Übung_1": {"c"}, "Übung_2": {"d"}, "03_predictions": {"e"}}
    assert list(read({name: "{}"}, expected).notebooks) == [found]


def test_a_notebook_is_known_by_its_cells(read):
    result = read({"x.ipynb": nb("c", "d"), "y.ipynb": nb("a", "c")})
    assert list(result.notebooks) == ["02_two"], "half of the cells is not enough"


def test_the_newest_of_several_copies_counts_where_none_has_the_name_itself(read):
    result = read({f"01_one ({number}).ipynb": nb(number) for number in ("2", "11", "1")})
    assert result.notebooks["01_one"] == nb("11").encode()
    (warning,) = texts(result, person=True)[:1]
    assert "`01_one (11).ipynb` counts, and `01_one (2).ipynb`, `01_one (1).ipynb` does not." in warning


def test_a_copy_counts_where_the_file_with_the_name_itself_was_cut_off(read):
    for name, cut in (("01_one", ""), ("02_two", nb("c")[:-9])):
        result = read({f"{name}.ipynb": cut, f"{name} (1).ipynb": nb("a", "c")})
        assert result.notebooks[name] == nb("a", "c").encode()
        assert f"`{name} (1).ipynb` counts, and `{name}.ipynb` does not." in texts(result, person=True)[-1]


MISSING = "`02_two.ipynb` was not submitted, so its exercises earn no points."


@pytest.mark.parametrize(("files", "reason"), [
    (ONE, MISSING),
    ({"01_one.ipynb": nb("x", "y")}, f"{MISSING} `01_one.ipynb` is of another assignment."),
    (ONE | {"02-two.html": "<html>"},
     f"{MISSING} `02-two.html` is not the notebook itself. Submit the notebook, as .ipynb."),
])  # fmt: skip
def test_why_a_notebook_is_missing_is_said(read, files, reason):
    rejected = read(files).rejected["02_two"]
    assert (rejected.text, rejected.person) == (reason, True)


def test_notebooks_of_another_assignment_are_named(read):
    result = read({"01_one.ipynb": nb("x", "y"), "quiz.ipynb": nb("z")})
    other = "`01_one.ipynb` holds no cell of this notebook: it may be of another assignment."
    assert texts(result) == ["Notebooks that are not asked for were left out: `quiz.ipynb`.", other]
    assert texts(result, person=True) == [other]
    assert result.files == {}


def test_a_link_is_no_notebook(tmp_path, read):
    (tmp_path / "01_one.ipynb").symlink_to(tmp_path / "real.txt")
    result = read({"02_two.ipynb": nb("c"), "real.txt": "x"})
    assert result.rejected["01_one"].text == (
        "`01_one.ipynb` was submitted as a link, and not as a file. Submit the file itself."
    )
    assert texts(result) == ["`01_one.ipynb` is a link, and was left out."]


def test_predictions_that_cannot_be_read_are_said(read):
    (one,) = texts(read(ONE | {"predictions.json": "{"}), person=True)
    assert one.startswith("`predictions.json` cannot be read, or not all of it: predictions.json must be ")
    assert "The next prediction you lock" not in one


@pytest.mark.parametrize(
    "name", ["predictions.json", "predictions (1).json", "deep/down/predictions.json", "old predictions.json"]
)
def test_predictions_are_found_and_their_lock_is_nothing_to_speak_of(read, name):
    result = read(ONE | {name: "{}", ".predictions.json.lock": ""})
    assert (result.files["predictions.json"], texts(result)) == (b"{}", [])


def test_of_several_files_of_predictions_one_counts_and_the_others_are_named(read):
    files = ONE | {"predictions (1).json": "{}", "my predictions.json": '{"a": 1}'}
    result = read(files)
    assert result.files["predictions.json"] == b'{"a": 1}'
    assert texts(result, person=True)[0] == (
        "`my predictions.json` counts as `predictions.json`, and `predictions (1).json` does not."
    )
    assert texts(read({"predictions.json": "{}"}))[0] == (
        "`predictions.json` counts, and `my predictions.json` does not."
    )


def test_files_are_found_from_the_folder_of_the_notebooks_and_those_beside_them_count(read):
    result = read(
        {
            "my work/01_one.ipynb": nb("a"), "my work/predictions.json": "[]", "predictions.json": "{}",
            "my work/data/x.csv": "below", "my work/x.csv": "beside", "x.csv": "above", "readme.txt": "above",
        }
    )  # fmt: skip
    files = {"predictions.json": "[]", "data/x.csv": "below", "x.csv": "beside", "readme.txt": "above"}
    assert result.files == {name: content.encode() for name, content in files.items()}
    several = "There are several files of `predictions.json`: `my work/predictions.json` counts, and "
    assert f"{several}`predictions.json` does not." in texts(result, person=True)


def test_of_two_files_in_one_place_that_which_was_not_packed_counts(read):
    assert read(ONE | {"all.zip": zipped({"x.csv": ""}), "all/x.csv": "1"}).files == {"all/x.csv": b"1"}


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_many_copies_ten_are_named(read):
    names = ["a.csv"] * 30 + [f"b{number}.csv" for number in range(15)] * 2
    entries = {zipfile.ZipInfo(name): "x" * size for size, name in enumerate(names)}
    found = texts(read(ONE | {"a.zip": zipped(entries)}))
    assert found[10:] == ["There are several files in 6 more places."]
    (of_thirty,) = (one for one in found if one.startswith("There are several files of `a/a.csv`:"))
    assert of_thirty.endswith(", `a/a.csv` and 19 more does not.")


def test_names_that_no_file_system_takes_are_left_out(read):
    deep, wide = "/".join(["d" * 90] * 60), "\N{PILE OF POO}" * 60
    result = read(ONE | {"a.zip": zipped({f"{deep}/deep.csv": "1", f"{wide}.csv": "2", "x.csv": "3"})})
    assert result.files == {"a/x.csv": b"3"}
    (text,) = texts(result, person=True)
    assert text.startswith("Files with names that are too long were left out: `")


def test_the_time_is_that_of_whoever_collected_and_not_one_that_a_student_packed(read):
    for stamp, when in (("2026-11-21T12:00:00+01:00", "2026-11-21T11:00:00"), ("", None)):
        result = read(ONE | {"timestamp.txt": stamp})
        assert (result.timestamp, texts(result), result.files) == (when, [], {})
    result = read({"in/timestamp.txt": "2001-01-01 00:00:00 UTC"})
    assert (result.timestamp, result.files) == (None, {})
    assert texts(result) == [
        "Only the platform writes files of this name, so yours were left out: `in/timestamp.txt`."
    ]


@pytest.mark.parametrize(
    "stamp", ["tomorrow`", "9" * 40, "0001-01-01 00:00:00+14:00", "2026-11-21 12:00 +99999999", "1e400"]
)
def test_a_time_that_is_none_is_said(read, stamp):
    result = read(ONE | {"timestamp.txt": stamp})
    assert result.timestamp is None
    assert texts(result) == [f"`timestamp.txt` holds no time: `{stamp.replace('`', chr(39))}`."]


def test_what_tools_leave_behind_is_left_out_and_named(read):
    beside = {"math.py": "x", ".git/config": "x", "__pycache__/m.pyc": "x", "a.txt": "x"}
    left = ("work/__MACOSX/01_one.ipynb", "work/.ipynb_checkpoints/02_two.ipynb")
    content = nb("a").encode()
    names = ("work/01_one.ipynb", "work/notes.txt", *left)
    result = read(beside | {"x.zip": zipped(dict.fromkeys(names, content))})
    assert result.notebooks == {"01_one": content}
    # What is code is left out later, and named.
    assert result.files.keys() == {"a.txt", "math.py", "notes.txt"}
    assert texts(result) == [
        "Hidden files and folders, and those that tools make, were left out: `.git`, `__pycache__`, "
        "`__MACOSX`, `.ipynb_checkpoints`."
    ]


def test_what_of_an_archive_is_no_file_or_packed_too_deep_is_named(read):
    inner = zipped({"deep.zip": b"PK", "..": b"x"})
    odd = {"..": b"", "inner.zip": inner}
    assert texts(read(ONE | {"a.zip": zipped(odd), "b.tar.gz": "x", "c.zip": "x", "d.zip": ""})) == [
        "A file in `a` has no name, and was left out.",
        "`deep.zip` was not unpacked: it is inside 2 archives. Submit the files themselves.",
        "A file in `a/inner` has no name, and was left out.",
        "`b.tar.gz` could not be unpacked: submit the files themselves, or a .zip.",
        "`c.zip` could not be unpacked: it is damaged.",
        "`d.zip` could not be unpacked: it is empty.",
    ]


def test_a_folder_that_cannot_be_read_is_said(read, monkeypatch):
    def closed(folder, onerror):
        onerror(PermissionError(13, "Permission denied", f"{folder}/secret"))
        return iter(())

    monkeypatch.setattr(archives.os, "walk", closed)
    assert texts(read({}), person=True) == ["`secret` could not be read: Permission denied."]


def test_a_large_file_takes_no_notebooks_place_and_where_reading_ended_is_said(read, monkeypatch):
    monkeypatch.setattr(archives, "MAX_TOTAL", 1000)
    result = read(ONE | {"big.bin": b"x" * 2000, "predictions.json": "{}", "z.txt": "x"})
    assert list(result.notebooks) == ["01_one"]
    assert result.files == {"predictions.json": b"{}"}
    assert texts(result, person=True) == [
        "More than 2000 files or 0.001 MB were submitted: from `big.bin` on, files were left out."
    ]


@pytest.mark.parametrize("packed", [True, False])
def test_thousands_of_other_files_take_no_notebooks_place(read, monkeypatch, packed):
    monkeypatch.setattr(archives, "MAX_FILES", 10)
    others = {f"data/{number}.csv": "x" for number in range(20)}
    others |= {f"env/Lib/site-packages/{number}.py": "x" for number in range(20)}
    files = others | {"work/01_one.ipynb": nb("a"), "work/02_two.ipynb": nb("c")}
    result = read({"all.zip": zipped(files)} if packed else files)
    assert list(result.notebooks) == ["01_one", "02_two"]
    assert not any("site-packages" in name for name in result.files)
    assert any("were submitted: from `" in text for text in texts(result, person=True))


def test_an_archive_may_come_from_any_system(read):
    windows = {"work\\": "", "work\\data\\": "", "work\\data\\x.csv": "1", "work\\01_one.ipynb": nb("a")}
    result = read({"a.zip": zipped(windows)})
    assert (list(result.notebooks), result.files, texts(result)) == (["01_one"], {"data/x.csv": b"1"}, [])
    result = read({"a.zip": zipped_on_macos({"gro\u0308\xdfe.csv": "2", "01_one.ipynb": nb("a")})})
    assert result.files == {"größe.csv": b"2"}, "as a notebook has it that is typed"
    accents = "a" + 9000 * "\N{COMBINING COMMA ABOVE RIGHT}\N{COMBINING GRAVE ACCENT}"
    assert archives.within(accents).name == accents, "to put so many in order takes seconds"


@pytest.mark.parametrize(("folders", "first"), [(49, "a/d46"), (51, "a")])
def test_folders_in_an_archive_are_counted_as_well(read, monkeypatch, folders, first):
    monkeypatch.setattr(archives, "MAX_ENTRIES", 50)
    content = zipped({f"d{at}/": b"" for at in range(folders)})
    if first == "a":  # a table of contents that is too long is not even opened
        monkeypatch.setattr(archives.zipfile, "ZipFile", None)
    result = read(ONE | {"02_two.ipynb": nb("c"), "a.zip": content})
    (one,) = texts(result)
    assert one.endswith(f"were submitted: from `{first}` on, files were left out.")
    assert list(result.notebooks) == ["01_one", "02_two"], "what stands before it is read"


INNER = {
    "archives that hold little": ("{}.zip", b"\0" * 40_000 + zipped({"a.bin": b""})),
    "archives of a kind that is not unpacked": ("{}.rar", b"\0" * 40_000),
    "archives that are packed too deep": ("in.zip/{}.zip", b"\0" * 40_000),
}


@pytest.mark.parametrize("kind", INNER)
def test_what_is_unpacked_on_the_way_counts_against_the_limit(read, monkeypatch, kind):
    monkeypatch.setattr(archives, "MAX_TOTAL", 100_000)
    name, content = INNER[kind]
    folder, _, name = name.rpartition("/")
    outer = zipped({name.format(n): content for n in range(5)}, compression=zipfile.ZIP_DEFLATED)
    result = read({**ONE, "all.zip": zipped({folder: outer}) if folder else outer})
    assert result.notebooks["01_one"]
    (stopped,) = [text for text in texts(result, person=True) if text.startswith("More than 2000 files or 0")]
    assert "`all/" in stopped
    assert sum(len(each) for each in result.files.values()) <= 100_000


def test_the_fingerprint_of_a_notebook_tells_any_two_submissions_apart(read):
    states = [ONE, {"01_one.ipynb": nb("a", "b")}, {"x": "1"}, {"x": "2"}, {"x": "", "y": "2"}]
    submissions = [read(files) for files in states]
    assert len({one.fingerprints()["01_one"] for one in submissions}) == 5
    assert read({}).fingerprints() == submissions[-1].fingerprints(), "and the same one is the same"


@pytest.mark.parametrize(("files", "differing"), [
    ({"02_two.ipynb": nb("c")}, ["02_two"]),  # it was missing
    ({"01_one.ipynb": nb("a", "b")}, ["01_one"]),
    ({"old/01_one.ipynb": nb("b")}, ["01_one"]),  # another warning
    ({"predictions.json": "{}"}, ["01_one", "02_two"]),
    ({"timestamp.txt": "2026-11-21 12:00:00 UTC"}, []),
])  # fmt: skip
def test_a_notebook_changes_its_own_fingerprint_and_a_file_beside_it_changes_all(read, files, differing):
    before, after = read(ONE).fingerprints(), read(files).fingerprints()
    assert before.keys() == after.keys() == EXPECTED.keys()
    assert [name for name in EXPECTED if before[name] != after[name]] == differing
