"""Submissions with an unusual structure: what is in their folders, made of what was given out.

Each is a function of the folder to fill and of the released notebooks. Those that deserve nothing hold no
right answer; those that are honest hold all of them, and are odd by accident.
"""

from __future__ import annotations

import io
import json
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat

from starvelab_grader.submissions.archives import MAX_FILES

Released = dict[str, Any]
HOSTILE: dict[str, tuple[Callable[[Path, Released], None], str]] = {}
ESCAPED = "starvelab-escaped.ipynb"  # in the folder of temporary files, if an archive could lead there
HONEST: dict[str, tuple[Callable[[Path, Released], None], str]] = {}


def hostile(function: Callable[[Path, Released], None], said: str = "") -> Callable[[Path, Released], None]:
    """Remember it under its name, and a part of what its student is told."""
    HOSTILE[function.__name__.replace("_", "-")] = function, said
    return function


def hostile_link(function: Callable[[Path, Released], None]) -> Callable[[Path, Released], None]:
    """Remember one with a link in it: who followed it would find the solution."""
    return hostile(function, "is a link, and was left out")


def honest(said: str) -> Callable:
    """Remember it, and what its student is told."""

    def remember(function: Callable[[Path, Released], None]) -> Callable[[Path, Released], None]:
        HONEST[function.__name__.replace("_", "-")] = function, said
        return function

    return remember


def text(nb: Any) -> str:
    return nbformat.writes(nb)


def cells(nb: Any, *names: str) -> list[Any]:
    return [cell for cell in nb["cells"] if cell["id"] in names]


def as_json(nb: Any) -> dict[str, Any]:
    return json.loads(text(nb))


def write(folder: Path, name: str, content: Any) -> None:
    """A file of text, of bytes, or of JSON."""
    if not isinstance(content, str | bytes):
        content = json.dumps(content)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def zipped(files: dict[str, str | bytes], **more: Any) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", **more) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def solution_of(folder: Path, name: str) -> Path:
    """The instructor's notebook."""
    path = folder.parents[3] / "source" / "tiny" / name
    assert path.is_file()
    return path


# --- no notebook ------------------------------------------------------------------------------------------


@hostile
def nothing_at_all(folder, released):
    pass


@hostile
def an_empty_file(folder, released):
    write(folder, "one.ipynb", "")


@hostile
def zeros(folder, released):
    write(folder, "one.ipynb", b"\0" * 5000)


@hostile
def words(folder, released):
    write(folder, "one.ipynb", "I could not do it, sorry.")


@hostile
def a_web_page(folder, released):
    write(folder, "one.ipynb", "<!DOCTYPE html><html><body>Log in to download</body></html>")


@hostile
def a_pdf(folder, released):
    write(folder, "one.ipynb", b"%PDF-1.7\n\xff\xfe\x00binary")


@hostile
def a_list(folder, released):
    write(folder, "one.ipynb", [1, 2, 3])


@hostile
def a_number(folder, released):
    write(folder, "one.ipynb", "NaN")


@hostile
def no_cells(folder, released):
    write(folder, "one.ipynb", {"nbformat": 4, "nbformat_minor": 5, "metadata": {}})


@hostile
def cells_that_are_text(folder, released):
    write(folder, "one.ipynb", {"nbformat": 4, "cells": "all of them"})


@hostile
def cut_off(folder, released):
    write(folder, "one.ipynb", text(released["one"])[:900])


@hostile
def an_open_merge(folder, released):
    half = text(released["one"])
    write(folder, "one.ipynb", f"<<<<<<< HEAD\n{half}\n=======\n{half}\n>>>>>>> theirs\n")


@hostile
def a_format_of_the_future(folder, released):
    write(folder, "one.ipynb", as_json(released["one"]) | {"nbformat": 7})


@hostile
def a_format_that_is_text(folder, released):
    write(folder, "one.ipynb", as_json(released["one"]) | {"nbformat": "4"})


@hostile
def an_old_format_in_ruins(folder, released):
    write(folder, "one.ipynb", {"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "code"}, 5]}]})


@hostile
def nested_without_end(folder, released):
    write(folder, "one.ipynb", "[" * 200_000 + "]" * 200_000)


@hostile
def a_number_without_end(folder, released):
    write(folder, "one.ipynb", '{"nbformat": ' + "9" * 100_000 + "}")


@hostile
def halves_of_letters(folder, released):
    nb = as_json(released["one"])
    nb["cells"][0]["source"] = "\ud800\udfff\ud800"
    write(folder, "one.ipynb", nb)


# --- too much ---------------------------------------------------------------------------------------------


@hostile
def larger_than_any_notebook(folder, released):
    write(folder, "one.ipynb", as_json(released["one"]) | {"padding": "x" * 21_000_000})


@hostile
def a_file_of_holes(folder, released):
    with (folder / "one.ipynb").open("wb") as file:
        file.truncate(50_000_000_000)


@hostile
def a_hundred_thousand_cells(folder, released):
    nb = as_json(released["one"])
    nb["cells"] = [{"cell_type": "code", "source": "1", "metadata": {}}] * 100_000
    write(folder, "one.ipynb", nb)


@hostile
def thousands_of_files(folder, released):
    for number in range(MAX_FILES + 100):
        write(folder, f"data/{number}.txt", "x")


@hostile
def a_bomb_that_unpacks(folder, released):
    bomb = zipped({"zeros.bin": b"\0" * 300_000_000}, compression=zipfile.ZIP_DEFLATED)
    write(folder, "submission.zip", bomb)


@hostile
def bombs_within_bombs(folder, released):
    inner = zipped({"zeros.bin": b"\0" * 90_000_000}, compression=zipfile.ZIP_DEFLATED)
    write(folder, "submission.zip", zipped({f"{n}.zip": inner for n in range(30)}))


@hostile
def archives_all_the_way_down(folder, released):
    made = zipped({"one.ipynb": text(released["one"])})
    for _ in range(20):
        made = zipped({"inner.zip": made})
    write(folder, "submission.zip", made)


# --- what an archive can do -------------------------------------------------------------------------------


@hostile
def an_archive_in_ruins(folder, released):
    write(folder, "submission.zip", zipped({"one.ipynb": text(released["one"])})[:-60])


@hostile
def an_archive_with_a_password(folder, released):
    made = bytearray(zipped({"one.ipynb": text(released["one"])}))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        made[made.index(mark) + at] |= 1
    write(folder, "submission.zip", bytes(made))


@hostile
def an_unknown_archive(folder, released):
    write(folder, "submission.rar", b"Rar!\x1a\x07\x00")


@hostile
def an_archive_that_leads_out(folder, released):
    write(folder, "submission.zip", zipped({f"../../../../{ESCAPED}": "{}", f"/{ESCAPED}": "{}"}))


@hostile_link
def an_archive_with_a_link(folder, released):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        entry = zipfile.ZipInfo("one.ipynb")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, str(solution_of(folder, "one.ipynb")))
    write(folder, "submission.zip", made.getvalue())


@hostile_link
def a_tape_with_a_link(folder, released):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, kind in (("one.ipynb", tarfile.SYMTYPE), ("two.ipynb", tarfile.LNKTYPE)):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, str(solution_of(folder, name))
            archive.addfile(entry)
    write(folder, "submission.tar.gz", made.getvalue())


# --- what a file system can do ----------------------------------------------------------------------------


@hostile_link
def a_link_to_the_solution(folder, released):
    os.symlink(solution_of(folder, "one.ipynb"), folder / "one.ipynb")


@hostile_link
def a_folder_that_is_a_link(folder, released):
    os.symlink(solution_of(folder, "one.ipynb").parent, folder / "mine")


@hostile
def a_pipe(folder, released):
    os.mkfifo(folder / "one.ipynb")


@hostile
def a_device(folder, released):
    os.symlink("/dev/zero", folder / "one.ipynb")


@hostile
def a_folder_called_like_a_notebook(folder, released):
    write(folder, "one.ipynb/one.ipynb/readme", "x")


@hostile
def a_folder_of_predictions(folder, released):
    write(folder, "predictions.json/x", "x")
    write(folder, "one.ipynb", text(released["one"]))


@hostile
def names_that_are_no_text(folder, released):
    for name in (b"\xff\xfe.ipynb", b"\xe9t\xe9.txt", b"new\nline.txt", b"`rm`.txt"):
        (folder / os.fsdecode(name)).write_text("{}")
    write(folder, "two.ipynb", text(released["two"]))


@hostile
def another_stamp(folder, released):
    write(folder, "timestamp.txt", "the day before yesterday")
    write(folder, "one.ipynb", text(released["one"]))


# --- forged notebooks -------------------------------------------------------------------------------------


@honest("")
def more_points(folder, solved):
    for name, released in solved.items():
        nb = as_json(released)
        for cell in nb["cells"]:
            if "points" in cell["metadata"].get("nbgrader", {}):
                cell["metadata"]["nbgrader"]["points"] = 1000
        write(folder, f"{name}.ipynb", nb)


@hostile
def points_that_are_text(folder, released):
    nb = as_json(released["one"])
    for cell in cells(nb, "double-test", "halve-test"):
        cell["metadata"]["nbgrader"] |= {"points": "NaN", "schema_version": "three", "checksum": [1]}
    write(folder, "one.ipynb", nb)


@hostile
def tests_that_are_answers(folder, released):
    nb = as_json(released["one"])
    for cell in cells(nb, "double-test", "halve-test"):
        cell["metadata"]["nbgrader"] |= {"solution": True, "locked": False}
        cell["source"] = "1000"
    write(folder, "one.ipynb", nb)


@hostile
def tests_that_are_gone(folder, released):
    nb = as_json(released["one"])
    nb["cells"] = [cell for cell in nb["cells"] if not cell["id"].endswith("-test")]
    write(folder, "one.ipynb", nb)


@hostile
def tests_that_are_empty(folder, released):
    nb = as_json(released["one"])
    for cell in cells(nb, "double-test", "halve-test"):
        cell["source"] = ""
    write(folder, "one.ipynb", nb)


@hostile
def tests_that_are_text(folder, released):
    nb = as_json(released["one"])
    for cell in cells(nb, "double-test", "halve-test"):
        cell |= {"cell_type": "markdown"}
        del cell["outputs"], cell["execution_count"]
    write(folder, "one.ipynb", nb)


@hostile
def tests_twice(folder, released):
    nb = as_json(released["one"])
    for cell in cells(nb, "double-test", "halve-test"):
        nb["cells"].append(cell | {"id": f"{cell['id']}-2", "source": "1000"})
    write(folder, "one.ipynb", nb)


@hostile
def tests_under_other_names(folder, released):
    nb = as_json(released["one"])
    for cell in cells(nb, "double-test", "halve-test"):
        cell["metadata"]["nbgrader"]["grade_id"] = "mine-" + cell["id"]
        cell["source"] = "1000"
    write(folder, "one.ipynb", nb)


@hostile
def names_that_are_lists(folder, released):
    nb = as_json(released["one"])
    for cell in nb["cells"]:
        cell["metadata"]["nbgrader"] = {"grade_id": ["double-test"], "grade": "yes"}
        cell["id"] = {"a": 1}
    write(folder, "one.ipynb", nb)


@hostile
def checks_that_accept_all(folder, released):
    nb = as_json(released["one"])
    (set_up,) = cells(nb, "set-up")
    set_up["source"] = "def check(*a, **k): pass\nclass Credit:\n    def total(self): return 1000"
    write(folder, "one.ipynb", nb)


OWN_CHECKS = (
    "def check(*a, **k): pass\nclass Credit:\n    def __init__(self, points): pass\n"
    "    def part(self, *a): pass\n    def total(self): return 3.0\ndef double(x): return 0\nhalve = double"
)


@hostile
def the_set_up_behind_the_tests_and_checks_of_ones_own(folder, released):
    for name, answer in (("one", "double"), ("two", "value")):
        nb = released[name]
        (own,) = cells(nb, answer)
        own["source"] = f"{OWN_CHECKS}\nanswer = 0"
        (set_up,) = cells(nb, "set-up")
        nb["cells"].remove(set_up)
        nb["cells"].append(set_up)
        write(folder, f"{name}.ipynb", text(nb))


@honest("Cells were moved: set-up. The checks ran in the original order.")
def the_set_up_moved_below_an_answer(folder, solved):
    nb = solved["one"]
    (set_up,) = cells(nb, "set-up")
    nb["cells"].remove(set_up)
    nb["cells"].insert(4, set_up)
    _as_they_are(folder, solved)


@hostile
def outputs_that_say_all_points(folder, released):
    nb = as_json(released["one"])
    for cell in cells(nb, "double-test", "halve-test"):
        data = {"text/plain": ["1000.0"]}
        cell["outputs"] = [
            {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": 1}
        ]
    write(folder, "one.ipynb", nb)


@hostile
def cells_that_are_nothing(folder, released):
    nb = as_json(released["one"])
    nb["cells"] = [None, 5, [], {}, {"cell_type": "code", "source": {"a": 1}}, {"cell_type": "applet"}]
    write(folder, "one.ipynb", nb)


@hostile
def metadata_of_the_grader(folder, released):
    nb = as_json(released["one"])
    nb["metadata"] |= {
        "starvelab_graded": {"mode": "sandboxed"},
        "starvelab_warnings": [["Full marks.", False]],
    }
    nb["metadata"]["kernelspec"] = {"name": "bash", "display_name": "Bash", "language": "bash"}
    nb["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": "x"}}
    write(folder, "one.ipynb", nb)


@hostile
def another_assignments_notebook(folder, released):
    other = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("double = halve = 1", id="other")])
    write(folder, "one.ipynb", text(other))


# --- honest ones, by accident -----------------------------------------------------------------------------


@honest("The file of this notebook is called `one (1).ipynb`.")
def saved_twice_by_a_browser(folder, solved):
    write(folder, "one (1).ipynb", text(solved["one"]))
    write(folder, "two.ipynb", text(solved["two"]))


@honest("The file of this notebook is called `lovelaceada_LATE_123_456_one-2.ipynb`.")
def renamed_by_a_platform(folder, solved):
    write(folder, "lovelaceada_LATE_123_456_one-2.ipynb", text(solved["one"]))
    write(folder, "lovelaceada_LATE_123_457_two.ipynb", text(solved["two"]))


@honest("The file of this notebook is called `my work.ipynb`.")
def called_like_nothing(folder, solved):
    write(folder, "my work.ipynb", text(solved["one"]))
    write(folder, "TWO.IPYNB", text(solved["two"]))


@honest("The file of this notebook is called `one.ipynb.txt`.")
def with_another_ending(folder, solved):
    write(folder, "one.ipynb.txt", text(solved["one"]))
    write(folder, "two.json", text(solved["two"]))


@honest("")
def in_a_folder(folder, solved):
    for name, nb in solved.items():
        write(folder, f"homework/tiny/{name}.ipynb", text(nb))


@honest("Hidden files and folders, and those that tools make, were left out: `__MACOSX`.")
def in_an_archive(folder, solved):
    files = {f"homework/{name}.ipynb": text(nb) for name, nb in solved.items()}
    write(folder, "submission.zip", zipped(files | {"__MACOSX/homework/._one.ipynb": b"\0\0"}))


@honest("")
def in_an_archive_of_windows(folder, solved):
    write(
        folder, "submission.zip", zipped({f"homework\\{name}.ipynb": text(nb) for name, nb in solved.items()})
    )


@honest("")
def on_a_tape(folder, solved):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, nb in solved.items():
            entry = tarfile.TarInfo(f"{name}.ipynb")
            content = text(nb).encode()
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    write(folder, "submission.tar.gz", made.getvalue())


@honest("")
def with_a_mark_of_order(folder, solved):
    for name, nb in solved.items():
        write(folder, f"{name}.ipynb", b"\xef\xbb\xbf" + text(nb).encode())


@honest("")
def in_two_bytes_a_letter(folder, solved):
    for name, nb in solved.items():
        write(folder, f"{name}.ipynb", text(nb).encode("utf-16"))


@honest("Its text was not in UTF-8")
def in_the_letters_of_windows(folder, solved):
    for name, nb in solved.items():
        nb["cells"][0]["source"] += "\n# grüße"
        write(folder, f"{name}.ipynb", json.dumps(nb, ensure_ascii=False).encode("cp1252"))


@honest("It was in an old format, and was converted.")
def in_the_old_format(folder, solved):
    for name, nb in solved.items():
        old = nbformat.convert(nb, 3)
        write(folder, f"{name}.ipynb", nbformat.writes(old, version=3))


@honest("Cell double was in the notebook 2 times")
def an_answer_copied_below(folder, solved):
    at = next(number for number, cell in enumerate(solved["one"]["cells"]) if cell["id"] == "double")
    solved["one"]["cells"].insert(at + 1, dict(solved["one"]["cells"][at]) | {"id": "copy"})
    _as_they_are(folder, solved)


@honest("Cell halve-test was in the notebook 2 times")
def a_test_copied_below(folder, solved):
    (test,) = cells(solved["one"], "halve-test")
    solved["one"]["cells"].append(dict(test) | {"id": "copy"})
    _as_they_are(folder, solved)


@honest("Cells were missing, and have been put back: set-up, double-test, why.")
def cells_deleted(folder, solved):
    gone = {"set-up", "double-test", "why"}
    solved["one"]["cells"] = [cell for cell in solved["one"]["cells"] if cell["id"] not in gone]
    _as_they_are(folder, solved)


@honest("Cells that students must not change were changed, and have been restored: set-up, double-test.")
def locked_cells_edited(folder, solved):
    for cell in cells(solved["one"], "set-up", "double-test"):
        cell["source"] = cell["source"].replace("np", "pn").replace("twice 3", "three")
    _as_they_are(folder, solved)


@honest("")
def metadata_lost(folder, solved):
    for nb in solved.values():
        for cell in nb["cells"]:
            cell["metadata"] = {}
    _as_they_are(folder, solved)


@honest("Cells had lost their names, and were found by their places: why.")
def names_and_ids_lost(folder, solved):
    for nb in solved.values():
        for number, cell in enumerate(nb["cells"]):
            cell["metadata"], cell["id"] = {}, f"n{number}"
    _as_they_are(folder, solved)


@honest("")
def written_in_a_cell_of_their_own(folder, solved):
    nb = solved["one"]
    at = next(number for number, cell in enumerate(nb["cells"]) if cell["id"] == "double")
    nb["cells"][at] = {"cell_type": "code", "id": "mine", "metadata": {}, "source": nb["cells"][at]["source"]}
    _as_they_are(folder, solved)


@honest("1 of its cells were damaged and could not be read.")
def one_cell_damaged(folder, solved):
    made = {name: as_json(nb) for name, nb in solved.items()}
    made["one"]["cells"].insert(1, {"cell_type": "code", "source": 5})
    _as_they_are(folder, made)


@honest("")
def ids_that_are_the_same(folder, solved):
    made = {name: as_json(nb) for name, nb in solved.items()}
    for nb in made.values():
        for cell in nb["cells"]:
            cell["id"] = "same"
    _as_they_are(folder, made)


@honest("There are several files of this notebook: `one.ipynb` counts, and `one (1).ipynb` does not.")
def an_older_version_beside_it(folder, solved):
    older = as_json(solved["one"])
    older["cells"] = older["cells"][:2]
    write(folder, "one (1).ipynb", older)
    _as_they_are(folder, solved)


@honest("`two.zip` could not be unpacked: it is damaged.")
def a_damaged_archive_beside_it(folder, solved):
    write(folder, "two.zip", b"PK\x03\x04 and nothing more")
    _as_they_are(folder, solved)


def _as_they_are(folder: Path, notebooks: Released) -> None:
    for name, nb in notebooks.items():
        write(folder, f"{name}.ipynb", dict(nb))
