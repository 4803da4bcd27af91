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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat

from starvelab_grader.submissions.archives import MAX_FILES

Released = dict[str, Any]
Fill = Callable[[Path, Released], None]
# By name, what fills the folder, and a part of what the student is told.
HOSTILE: dict[str, tuple[Fill, str]] = {}
HONEST: dict[str, tuple[Fill, str]] = {}
ESCAPED = "starvelab-escaped.ipynb"  # in the folder of temporary files, if an archive could lead there


def hostile(function: Fill, said: str = "") -> Fill:
    HOSTILE[function.__name__.replace("_", "-")] = function, said
    return function


def hostile_link(function: Fill) -> Fill:
    """One with a link in it: who followed it would find the solution."""
    return hostile(function, "is a link, and was left out")


def forged(change: Callable[[dict[str, Any]], object]) -> None:
    """The first notebook, changed."""

    def fill(folder: Path, released: Released) -> None:
        nb = as_json(released["one"])
        change(nb)
        write(folder, "one.ipynb", nb)

    HOSTILE[change.__name__.replace("_", "-")] = fill, ""


def honest(said: str) -> Callable[[Callable[[Released], object]], None]:
    """The solved notebooks, changed, and what their student is told."""

    def remember(change: Callable[[Released], object]) -> None:
        def fill(folder: Path, solved: Released) -> None:
            notebooks = {name: as_json(nb) for name, nb in solved.items()}
            for name, content in (change(notebooks) or {}).items():
                write(folder, name, content)
            for name, nb in notebooks.items():
                write(folder, f"{name}.ipynb", nb)

        HONEST[change.__name__.replace("_", "-")] = fill, said

    return remember


def text(nb: Any) -> str:
    return nbformat.writes(nb)


def as_json(nb: Any) -> dict[str, Any]:
    return json.loads(text(nb))


def cells(nb: Any, *names: str) -> list[Any]:
    return [cell for cell in nb["cells"] if cell["id"] in names]


def tests(nb: Any) -> list[Any]:
    return cells(nb, "double-test", "halve-test")


def at(nb: Any, name: str) -> int:
    return next(number for number, cell in enumerate(nb["cells"]) if cell["id"] == name)


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


def tape(files: dict[str, str], **more: Any) -> bytes:
    """Files, or links to what stands in their place."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = more.get(name, tarfile.REGTYPE), content if name in more else ""
            entry.size = 0 if name in more else len(content.encode())
            archive.addfile(entry, io.BytesIO(content.encode()))
    return made.getvalue()


def solution_of(folder: Path, name: str) -> Path:
    """The instructor's notebook."""
    path = folder.parents[3] / "source" / "tiny" / name
    assert path.is_file()
    return path


# --- no notebook, or too much of one, or an archive -------------------------------------------------------


def archives_all_the_way_down(nb: str) -> bytes:
    made = zipped({"one.ipynb": nb})
    for _ in range(20):
        made = zipped({"inner.zip": made})
    return made


def with_a_password(nb: str) -> bytes:
    made = bytearray(zipped({"one.ipynb": nb}))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        made[made.index(mark) + place] |= 1
    return bytes(made)


def bomb(size: int) -> bytes:
    return zipped({"zeros.bin": b"\0" * size}, compression=zipfile.ZIP_DEFLATED)


MERGE = "<<<<<<< HEAD\n{0}\n=======\n{0}\n>>>>>>> theirs\n"
# The name of a file, and its content, made of the first notebook as text.
FILES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "an-empty-file": ("one.ipynb", lambda _: ""),
    "zeros": ("one.ipynb", lambda _: b"\0" * 5000),
    "words": ("one.ipynb", lambda _: "I could not do it, sorry."),
    "a-web-page": ("one.ipynb", lambda _: "<!DOCTYPE html><html><body>Log in to download</body></html>"),
    "a-pdf": ("one.ipynb", lambda _: b"%PDF-1.7\n\xff\xfe\x00binary"),
    "a-list": ("one.ipynb", lambda _: [1, 2, 3]),
    "a-number": ("one.ipynb", lambda _: "NaN"),
    "no-cells": ("one.ipynb", lambda _: {"nbformat": 4, "nbformat_minor": 5, "metadata": {}}),
    "cells-that-are-text": ("one.ipynb", lambda _: {"nbformat": 4, "cells": "all of them"}),
    "cut-off": ("one.ipynb", lambda nb: nb[:900]),
    "an-open-merge": ("one.ipynb", MERGE.format),
    "a-format-of-the-future": ("one.ipynb", lambda nb: json.loads(nb) | {"nbformat": 7}),
    "a-format-that-is-text": ("one.ipynb", lambda nb: json.loads(nb) | {"nbformat": "4"}),
    "an-old-format-in-ruins": (
        "one.ipynb",
        lambda _: {"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "code"}, 5]}]},
    ),
    "nested-without-end": ("one.ipynb", lambda _: "[" * 200_000 + "]" * 200_000),
    "a-number-without-end": ("one.ipynb", lambda _: '{"nbformat": ' + "9" * 100_000 + "}"),
    "larger-than-any-notebook": ("one.ipynb", lambda nb: json.loads(nb) | {"padding": "x" * 21_000_000}),
    "a-folder-called-like-a-notebook": ("one.ipynb/one.ipynb/readme", lambda _: "x"),
    "another-assignments-notebook": (
        "one.ipynb",
        lambda _: text(
            nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("double = halve = 1", id="other")])
        ),
    ),
    "a-bomb-that-unpacks": ("submission.zip", lambda _: bomb(300_000_000)),
    "bombs-within-bombs": (
        "submission.zip",
        lambda _: zipped(dict.fromkeys((f"{n}.zip" for n in range(30)), bomb(90_000_000))),
    ),
    "archives-all-the-way-down": ("submission.zip", archives_all_the_way_down),
    "an-archive-in-ruins": ("submission.zip", lambda nb: zipped({"one.ipynb": nb})[:-60]),
    "an-archive-with-a-password": ("submission.zip", with_a_password),
    "an-unknown-archive": ("submission.rar", lambda _: b"Rar!\x1a\x07\x00"),
    "an-archive-that-leads-out": (
        "submission.zip",
        lambda _: zipped({f"../../../../{ESCAPED}": "{}", f"/{ESCAPED}": "{}"}),
    ),
}


def _only(name: str, content: Callable[[str], Any]) -> Fill:
    return lambda folder, released: write(folder, name, content(text(released["one"])))


HOSTILE |= {name: (_only(*file), "") for name, file in FILES.items()}


@hostile
def nothing_at_all(folder, released):
    pass


@hostile
def a_file_of_holes(folder, released):
    with (folder / "one.ipynb").open("wb") as file:
        file.truncate(50_000_000_000)


@hostile
def thousands_of_files(folder, released):
    for number in range(MAX_FILES + 100):
        write(folder, f"data/{number}.txt", "x")


# --- links, and what else a file system can do ------------------------------------------------------------


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
    kinds = {"one.ipynb": tarfile.SYMTYPE, "two.ipynb": tarfile.LNKTYPE}
    write(
        folder, "submission.tar.gz", tape({name: str(solution_of(folder, name)) for name in kinds}, **kinds)
    )


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


@forged
def halves_of_letters(nb):
    nb["cells"][0]["source"] = "\ud800\udfff\ud800"


@forged
def a_hundred_thousand_cells(nb):
    nb["cells"] = [{"cell_type": "code", "source": "1", "metadata": {}}] * 100_000


@forged
def points_that_are_text(nb):
    for cell in tests(nb):
        cell["metadata"]["nbgrader"] |= {"points": "NaN", "schema_version": "three", "checksum": [1]}


@forged
def tests_that_are_answers(nb):
    for cell in tests(nb):
        cell["metadata"]["nbgrader"] |= {"solution": True, "locked": False}
        cell["source"] = "1000"


@forged
def tests_that_are_gone(nb):
    nb["cells"] = [cell for cell in nb["cells"] if not cell["id"].endswith("-test")]


@forged
def tests_that_are_empty(nb):
    for cell in tests(nb):
        cell["source"] = ""


@forged
def tests_that_are_text(nb):
    for cell in tests(nb):
        cell |= {"cell_type": "markdown"}
        del cell["outputs"], cell["execution_count"]


@forged
def tests_twice(nb):
    nb["cells"] += [cell | {"id": f"{cell['id']}-2", "source": "1000"} for cell in tests(nb)]


@forged
def tests_under_other_names(nb):
    for cell in tests(nb):
        cell["metadata"]["nbgrader"]["grade_id"] = "mine-" + cell["id"]
        cell["source"] = "1000"


@forged
def names_that_are_lists(nb):
    for cell in nb["cells"]:
        cell["metadata"]["nbgrader"] = {"grade_id": ["double-test"], "grade": "yes"}
        cell["id"] = {"a": 1}


@forged
def checks_that_accept_all(nb):
    (set_up,) = cells(nb, "set-up")
    set_up["source"] = "def check(*a, **k): pass\nclass Credit:\n    def total(self): return 1000"


@forged
def outputs_that_say_all_points(nb):
    for cell in tests(nb):
        data = {"text/plain": ["1000.0"]}
        cell["outputs"] = [
            {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": 1}
        ]


@forged
def cells_that_are_nothing(nb):
    nb["cells"] = [None, 5, [], {}, {"cell_type": "code", "source": {"a": 1}}, {"cell_type": "applet"}]


@forged
def metadata_of_the_grader(nb):
    nb["metadata"] |= {
        "starvelab_graded": {"mode": "sandboxed"},
        "starvelab_warnings": [["Full marks.", False]],
    }
    nb["metadata"]["kernelspec"] = {"name": "bash", "display_name": "Bash", "language": "bash"}
    nb["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": "x"}}


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
        nb["cells"].append(nb["cells"].pop(at(nb, "set-up")))
        write(folder, f"{name}.ipynb", text(nb))


# --- honest ones, by accident -----------------------------------------------------------------------------
# What one returns are files; notebooks that are left in what it is given are written as they are.


def packed(solved: Released, folder: str = "") -> dict[str, str]:
    return {f"{folder}{name}.ipynb": json.dumps(solved.pop(name)) for name in list(solved)}


@honest("")
def more_points(solved):
    for nb in solved.values():
        for cell in nb["cells"]:
            if "points" in cell["metadata"].get("nbgrader", {}):
                cell["metadata"]["nbgrader"]["points"] = 1000


@honest("Cells were moved: set-up. The checks ran in the original order.")
def the_set_up_moved_below_an_answer(solved):
    nb = solved["one"]
    nb["cells"].insert(4, nb["cells"].pop(at(nb, "set-up")))


@honest("The file of this notebook is called `one (1).ipynb`.")
def saved_twice_by_a_browser(solved):
    return {"one (1).ipynb": solved.pop("one")}


@honest("The file of this notebook is called `lovelaceada_LATE_123_456_one-2.ipynb`.")
def renamed_by_a_platform(solved):
    names = {"one": "lovelaceada_LATE_123_456_one-2.ipynb", "two": "lovelaceada_LATE_123_457_two.ipynb"}
    return {name: solved.pop(one) for one, name in names.items()}


@honest("The file of this notebook is called `my work.ipynb`.")
def called_like_nothing(solved):
    return {"my work.ipynb": solved.pop("one"), "TWO.IPYNB": solved.pop("two")}


@honest("The file of this notebook is called `one.ipynb.txt`.")
def with_another_ending(solved):
    return {"one.ipynb.txt": solved.pop("one"), "two.json": solved.pop("two")}


@honest("")
def in_a_folder(solved):
    return packed(solved, "homework/tiny/")


@honest("Hidden files and folders, and those that tools make, were left out: `__MACOSX`.")
def in_an_archive(solved):
    return {
        "submission.zip": zipped(packed(solved, "homework/") | {"__MACOSX/homework/._one.ipynb": b"\0\0"})
    }


@honest("")
def in_an_archive_of_windows(solved):
    return {"submission.zip": zipped(packed(solved, "homework\\"))}


@honest("")
def on_a_tape(solved):
    return {"submission.tar.gz": tape(packed(solved))}


@honest("")
def with_a_mark_of_order(solved):
    return {name: content.encode("utf-8-sig") for name, content in packed(solved).items()}


@honest("")
def in_two_bytes_a_letter(solved):
    return {name: content.encode("utf-16") for name, content in packed(solved).items()}


@honest("Its text was not in UTF-8")
def in_the_letters_of_windows(solved):
    found = {}
    for name in list(solved):
        nb = solved.pop(name)
        nb["cells"][0]["source"] = [*nb["cells"][0]["source"], "\n# grüße"]
        found[f"{name}.ipynb"] = json.dumps(nb, ensure_ascii=False).encode("cp1252")
    return found


@honest("It was in an old format, and was converted.")
def in_the_old_format(solved):
    return {
        name: nbformat.writes(nbformat.convert(nbformat.reads(content, as_version=4), 3), version=3)
        for name, content in packed(solved).items()
    }


@honest("Cell double was in the notebook 2 times")
def an_answer_copied_below(solved):
    nb = solved["one"]
    nb["cells"].insert(at(nb, "double") + 1, nb["cells"][at(nb, "double")] | {"id": "copy"})


@honest("Cell halve-test was in the notebook 2 times")
def a_test_copied_below(solved):
    (test,) = cells(solved["one"], "halve-test")
    solved["one"]["cells"].append(test | {"id": "copy"})


@honest("Cells were missing, and have been put back: set-up, double-test, why.")
def cells_deleted(solved):
    gone = {"set-up", "double-test", "why"}
    solved["one"]["cells"] = [cell for cell in solved["one"]["cells"] if cell["id"] not in gone]


@honest("Cells that students must not change were changed, and have been restored: set-up, double-test.")
def locked_cells_edited(solved):
    for cell in cells(solved["one"], "set-up", "double-test"):
        cell["source"] = "".join(cell["source"]).replace("np", "pn").replace("twice 3", "three")


def every_cell(solved: Released) -> Iterator[tuple[int, dict[str, Any]]]:
    return (numbered for nb in solved.values() for numbered in enumerate(nb["cells"]))


@honest("")
def metadata_lost(solved):
    for _, cell in every_cell(solved):
        cell["metadata"] = {}


@honest("Cells had lost their names, and were found by their places: why.")
def names_and_ids_lost(solved):
    for number, cell in every_cell(solved):
        cell["metadata"], cell["id"] = {}, f"n{number}"


@honest("")
def ids_that_are_the_same(solved):
    for _, cell in every_cell(solved):
        cell["id"] = "same"


@honest("")
def written_in_a_cell_of_their_own(solved):
    cell = solved["one"]["cells"][at(solved["one"], "double")]
    cell["id"], cell["metadata"] = "mine", {}


@honest("1 of its cells were damaged and could not be read.")
def one_cell_damaged(solved):
    solved["one"]["cells"].insert(1, {"cell_type": "code", "source": 5})


@honest("There are several files of this notebook: `one.ipynb` counts, and `one (1).ipynb` does not.")
def an_older_version_beside_it(solved):
    return {"one (1).ipynb": solved["one"] | {"cells": solved["one"]["cells"][:2]}}


@honest("`two.zip` could not be unpacked: it is damaged.")
def a_damaged_archive_beside_it(solved):
    return {"two.zip": b"PK\x03\x04 and nothing more"}
