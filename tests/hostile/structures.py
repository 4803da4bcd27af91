"""Submissions with an unusual structure: what is in their folders, made of what was given out.

What the reading and the repairing of one notebook or archive says of it is in tests/grader/submissions.

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


def with_a_password(nb: str) -> bytes:
    made = bytearray(zipped({"one.ipynb": nb}))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        made[made.index(mark) + place] |= 1
    return bytes(made)


def bomb(size: int) -> bytes:
    return zipped({"zeros.bin": b"\0" * size}, compression=zipfile.ZIP_DEFLATED)


# The name of a file, and its content, made of the first notebook as text.
FILES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "a-web-page": ("one.ipynb", lambda _: "<!DOCTYPE html><html><body>Log in to download</body></html>"),
    "a-number-without-end": ("one.ipynb", lambda _: '{"nbformat": ' + "9" * 100_000 + "}"),
    "a-folder-called-like-a-notebook": ("one.ipynb/one.ipynb/readme", lambda _: "x"),
    "a-bomb-that-unpacks": ("submission.zip", lambda _: bomb(300_000_000)),
    "an-archive-with-a-password": ("submission.zip", with_a_password),
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
def a_folder_that_is_a_link(folder, released):
    os.symlink(solution_of(folder, "one.ipynb").parent, folder / "mine")


@hostile
def a_pipe(folder, released):
    os.mkfifo(folder / "one.ipynb")


@hostile
def a_folder_of_predictions(folder, released):
    write(folder, "predictions.json/x", "x")
    write(folder, "one.ipynb", text(released["one"]))


@hostile
def names_that_are_no_text(folder, released):
    for name in (b"\xff\xfe.ipynb", b"\xe9t\xe9.txt", b"new\nline.txt", b"`rm`.txt"):
        (folder / os.fsdecode(name)).write_text("{}")
    write(folder, "two.ipynb", text(released["two"]))


# --- forged notebooks -------------------------------------------------------------------------------------

BASH = {"name": "bash", "display_name": "Bash", "language": "bash"}
# The first notebook, changed.
FORGED: dict[str, Callable[[Any], object]] = {
    "halves-of-letters": lambda nb: update(nb["cells"][:1], source="\ud800\udfff\ud800"),
    "points-that-are-text": lambda nb: flags(tests(nb), points="NaN", schema_version="three", checksum=[1]),
    "names-that-are-lists": lambda nb: update(
        nb["cells"], id={"a": 1}, metadata={"nbgrader": {"grade_id": ["double-test"], "grade": "yes"}}
    ),
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


# --- honest ones, by accident -----------------------------------------------------------------------------


def in_the_old_format(solved: Released) -> dict[str, str]:
    files = {f"{name}.ipynb": json.dumps(solved.pop(name)) for name in list(solved)}
    notebooks = {name: nbformat.reads(content, as_version=4) for name, content in files.items()}
    return {name: nbformat.writes(nbformat.convert(nb, 3), version=3) for name, nb in notebooks.items()}


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
    "called-like-nothing": (
        "The file of this notebook is called `my work.ipynb`.",
        lambda solved: {"my work.ipynb": solved.pop("one"), "TWO.IPYNB": solved.pop("two")},
    ),
    "in-the-old-format": ("It was in an old format, and was converted.", in_the_old_format),
    "ids-that-are-the-same": ("", lambda solved: update(every_cell(solved), id="same")),
    "written-in-a-cell-of-their-own": (
        "",
        lambda solved: update(cells(solved["one"], "double"), id="mine", metadata={}),
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
