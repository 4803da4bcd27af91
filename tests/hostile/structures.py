"""Submissions with an unusual structure: what is in their folders, made of what was given out.

Each is a function of the folder to fill and of the released notebooks. Those that deserve nothing hold no
right answer; those that are honest hold all of them, and are odd by accident.
"""

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
from tests.archives import zipped

Released = dict[str, Any]
Fill = Callable[[Path, Released], None]
# By name, what fills the folder, and a part of what the student is told.
HOSTILE: dict[str, tuple[Fill, str]] = {}
ESCAPED = "starvelab-escaped.ipynb"  # in the folder of temporary files, if an archive could lead there


def hostile(function: Fill, said: str = "") -> Fill:
    HOSTILE[function.__name__.replace("_", "-")] = function, said
    return function


def hostile_link(function: Fill) -> Fill:
    """One with a link in it: who followed it would find the solution."""
    return hostile(function, "is a link, and was left out")


def text(nb: Any) -> str:
    return nbformat.writes(nb)


def as_json(nb: Any) -> dict[str, Any]:
    return json.loads(text(nb))


def cells(nb: Any, *names: str) -> list[Any]:
    return [cell for cell in nb["cells"] if cell["id"] in names]


def tests(nb: Any) -> list[Any]:
    return cells(nb, "double-test", "halve-test")


def every_cell(solved: Released) -> list[dict[str, Any]]:
    return [cell for nb in solved.values() for cell in nb["cells"]]


def update(some: list[Any], **values: Any) -> list[Any]:
    for cell in some:
        cell |= values
    return some


def flags(some: list[Any], **values: Any) -> list[Any]:
    for cell in some:
        cell["metadata"]["nbgrader"] |= values
    return some


def at(nb: Any, name: str) -> int:
    return next(number for number, cell in enumerate(nb["cells"]) if cell["id"] == name)


def write(folder: Path, name: str, content: Any) -> None:
    """A file of text, of bytes, or of JSON."""
    if not isinstance(content, str | bytes):
        content = json.dumps(content)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


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
    entry = zipfile.ZipInfo("one.ipynb")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    write(folder, "submission.zip", zipped({entry: str(solution_of(folder, "one.ipynb"))}))


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

SHOWN = {"output_type": "execute_result", "data": {"text/plain": ["1000.0"]}, "metadata": {}}
BASH = {"name": "bash", "display_name": "Bash", "language": "bash"}
# The first notebook, changed.
FORGED: dict[str, Callable[[Any], object]] = {
    "halves-of-letters": lambda nb: update(nb["cells"][:1], source="\ud800\udfff\ud800"),
    "a-hundred-thousand-cells": lambda nb: nb.update(
        cells=[{"cell_type": "code", "source": "1", "metadata": {}}] * 100_000
    ),
    "points-that-are-text": lambda nb: flags(tests(nb), points="NaN", schema_version="three", checksum=[1]),
    "tests-that-are-answers": lambda nb: update(flags(tests(nb), solution=True, locked=False), source="1000"),
    "tests-that-are-gone": lambda nb: nb.update(
        cells=[cell for cell in nb["cells"] if not cell["id"].endswith("-test")]
    ),
    "tests-that-are-empty": lambda nb: update(tests(nb), source=""),
    "tests-that-are-text": lambda nb: [
        (cell.pop("outputs"), cell.pop("execution_count")) for cell in update(tests(nb), cell_type="markdown")
    ],
    "tests-twice": lambda nb: nb["cells"].extend(
        [cell | {"id": f"{cell['id']}-2", "source": "1000"} for cell in tests(nb)]
    ),
    "tests-under-other-names": lambda nb: [
        update(flags([cell], grade_id=f"mine-{cell['id']}"), source="1000") for cell in tests(nb)
    ],
    "names-that-are-lists": lambda nb: update(
        nb["cells"], id={"a": 1}, metadata={"nbgrader": {"grade_id": ["double-test"], "grade": "yes"}}
    ),
    "checks-that-accept-all": lambda nb: update(
        cells(nb, "set-up"),
        source="def check(*a, **k): pass\nclass Credit:\n    def total(self): return 1000",
    ),
    "outputs-that-say-all-points": lambda nb: update(tests(nb), outputs=[SHOWN | {"execution_count": 1}]),
    "cells-that-are-nothing": lambda nb: nb.update(
        cells=[None, 5, [], {}, {"cell_type": "code", "source": {"a": 1}}, {"cell_type": "applet"}]
    ),
    "metadata-of-the-grader": lambda nb: nb["metadata"].update(
        starvelab_graded={"mode": "sandboxed"},
        starvelab_warnings=[["Full marks.", False]],
        kernelspec=BASH,
        widgets={"application/vnd.jupyter.widget-state+json": {"state": "x"}},
    ),
}


def _forged(change: Callable[[Any], object]) -> Fill:
    def fill(folder: Path, released: Released) -> None:
        nb = as_json(released["one"])
        change(nb)
        write(folder, "one.ipynb", nb)

    return fill


HOSTILE |= {name: (_forged(change), "") for name, change in FORGED.items()}
OWN_CHECKS = (
    "def check(*a, **k): pass\nclass Credit:\n    def __init__(self, points): pass\n"
    "    def part(self, *a): pass\n    def total(self): return 3.0\ndef double(x): return 0\nhalve = double"
)


@hostile
def the_set_up_behind_the_tests_and_checks_of_ones_own(folder, released):
    for name, answer in (("one", "double"), ("two", "value")):
        nb = released[name]
        update(cells(nb, answer), source=f"{OWN_CHECKS}\nanswer = 0")
        nb["cells"].append(nb["cells"].pop(at(nb, "set-up")))
        write(folder, f"{name}.ipynb", text(nb))


# --- honest ones, by accident -----------------------------------------------------------------------------


def packed(solved: Released, folder: str = "") -> dict[str, str]:
    return {f"{folder}{name}.ipynb": json.dumps(solved.pop(name)) for name in list(solved)}


def in_the_letters_of_windows(solved: Released) -> dict[str, bytes]:
    for nb in solved.values():
        nb["cells"][0]["source"] = [*nb["cells"][0]["source"], "\n# grüße"]
    files = {name: json.dumps(nb, ensure_ascii=False).encode("cp1252") for name, nb in solved.items()}
    solved.clear()
    return {f"{name}.ipynb": content for name, content in files.items()}


def in_the_old_format(solved: Released) -> dict[str, str]:
    notebooks = {name: nbformat.reads(content, as_version=4) for name, content in packed(solved).items()}
    return {name: nbformat.writes(nbformat.convert(nb, 3), version=3) for name, nb in notebooks.items()}


def cells_deleted(solved: Released) -> None:
    gone = {"set-up", "double-test", "why"}
    solved["one"]["cells"] = [cell for cell in solved["one"]["cells"] if cell["id"] not in gone]


def locked_cells_edited(solved: Released) -> None:
    for cell in cells(solved["one"], "set-up", "double-test"):
        cell["source"] = "".join(cell["source"]).replace("np", "pn").replace("twice 3", "three")


CANVAS = "lovelaceada_LATE_123"
# The solved notebooks, changed, and what their student is told. A dict that comes back has files; notebooks
# that are left in what a change is given are written as they are.
CHANGES: dict[str, tuple[str, Callable[[Released], object]]] = {
    "more-points": (
        "",
        lambda solved: flags(
            [each for each in every_cell(solved) if "points" in each["metadata"].get("nbgrader", {})],
            points=1000,
        ),
    ),
    "the-set-up-moved-below-an-answer": (
        "Cells were moved: set-up. The checks ran in the original order.",
        lambda solved: solved["one"]["cells"].insert(
            4, solved["one"]["cells"].pop(at(solved["one"], "set-up"))
        ),
    ),
    "saved-twice-by-a-browser": (
        "The file of this notebook is called `one (1).ipynb`.",
        lambda solved: {"one (1).ipynb": solved.pop("one")},
    ),
    "renamed-by-a-platform": (
        f"The file of this notebook is called `{CANVAS}_456_one-2.ipynb`.",
        lambda solved: {
            f"{CANVAS}_456_one-2.ipynb": solved.pop("one"),
            f"{CANVAS}_457_two.ipynb": solved.pop("two"),
        },
    ),
    "called-like-nothing": (
        "The file of this notebook is called `my work.ipynb`.",
        lambda solved: {"my work.ipynb": solved.pop("one"), "TWO.IPYNB": solved.pop("two")},
    ),
    "with-another-ending": (
        "The file of this notebook is called `one.ipynb.txt`.",
        lambda solved: {"one.ipynb.txt": solved.pop("one"), "two.json": solved.pop("two")},
    ),
    "in-a-folder": ("", lambda solved: packed(solved, "homework/tiny/")),
    "in-an-archive": (
        "Hidden files and folders, and those that tools make, were left out: `__MACOSX`.",
        lambda solved: {
            "submission.zip": zipped(packed(solved, "homework/") | {"__MACOSX/homework/._one.ipynb": b"\0\0"})
        },
    ),
    "in-an-archive-of-windows": ("", lambda solved: {"submission.zip": zipped(packed(solved, "homework\\"))}),
    "on-a-tape": ("", lambda solved: {"submission.tar.gz": tape(packed(solved))}),
    "with-a-mark-of-order": (
        "",
        lambda solved: {name: each.encode("utf-8-sig") for name, each in packed(solved).items()},
    ),
    "in-two-bytes-a-letter": (
        "",
        lambda solved: {name: each.encode("utf-16") for name, each in packed(solved).items()},
    ),
    "in-the-letters-of-windows": ("Its text was not in UTF-8", in_the_letters_of_windows),
    "in-the-old-format": ("It was in an old format, and was converted.", in_the_old_format),
    "an-answer-copied-below": (
        "Cell double was in the notebook 2 times",
        lambda solved: solved["one"]["cells"].insert(
            at(solved["one"], "double") + 1, cells(solved["one"], "double")[0] | {"id": "copy"}
        ),
    ),
    "a-test-copied-below": (
        "Cell halve-test was in the notebook 2 times",
        lambda solved: solved["one"]["cells"].append(cells(solved["one"], "halve-test")[0] | {"id": "copy"}),
    ),
    "cells-deleted": ("Cells were missing, and have been put back: set-up, double-test, why.", cells_deleted),
    "locked-cells-edited": (
        "Cells that students must not change were changed, and have been restored: set-up, double-test.",
        locked_cells_edited,
    ),
    "metadata-lost": ("", lambda solved: update(every_cell(solved), metadata={})),
    "names-and-ids-lost": (
        "Cells had lost their names, and were found by their places: why.",
        lambda solved: [
            cell.update(metadata={}, id=f"n{number}")
            for nb in solved.values()
            for number, cell in enumerate(nb["cells"])
        ],
    ),
    "ids-that-are-the-same": ("", lambda solved: update(every_cell(solved), id="same")),
    "written-in-a-cell-of-their-own": (
        "",
        lambda solved: update(cells(solved["one"], "double"), id="mine", metadata={}),
    ),
    "one-cell-damaged": (
        "1 of its cells were damaged and could not be read.",
        lambda solved: solved["one"]["cells"].insert(1, {"cell_type": "code", "source": 5}),
    ),
    "an-older-version-beside-it": (
        "There are several files of this notebook: `one.ipynb` counts, and `one (1).ipynb` does not.",
        lambda solved: {"one (1).ipynb": solved["one"] | {"cells": solved["one"]["cells"][:2]}},
    ),
    "a-damaged-archive-beside-it": (
        "`two.zip` could not be unpacked: it is damaged.",
        lambda solved: {"two.zip": b"PK\x03\x04 and nothing more"},
    ),
}


def _honest(change: Callable[[Released], object]) -> Fill:
    def fill(folder: Path, solved: Released) -> None:
        notebooks = {name: as_json(nb) for name, nb in solved.items()}
        files = change(notebooks)
        for name, content in files.items() if isinstance(files, dict) else ():
            write(folder, name, content)
        for name, nb in notebooks.items():
            write(folder, f"{name}.ipynb", nb)

    return fill


HONEST = {name: (_honest(change), told) for name, (told, change) in CHANGES.items()}
