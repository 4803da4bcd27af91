"""Submissions with an unusual structure: what is in their folders, made of what was given out.

They hold no right answer. What the reading and the repairing of one notebook or archive says of it, also of
honest ones that are odd by accident, is in grader/tests/submissions and grader/tests/test_honest.py.
"""

import json
import os
import stat
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import nbformat

from tests.archives import zipped

Released = dict[str, Any]
ESCAPED = "starvelab-escaped.ipynb"  # in the folder of temporary files, if an archive could lead there
LINK = "is a link, and was left out"


def named(nb: Any, *names: str) -> list[Any]:
    return [cell for cell in nb["cells"] if cell["id"] in names]


def flags(some: Iterable[Any], **values: Any) -> None:
    for cell in some:
        cell["metadata"]["nbgrader"] |= values


def update(some: Iterable[Any], **values: Any) -> None:
    for cell in some:
        cell |= values


def with_a_password(nb: str) -> bytes:
    made = bytearray(zipped({"one.ipynb": nb}))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        made[made.index(mark) + place] |= 1
    return bytes(made)


def bomb(size: int) -> bytes:
    return zipped({"zeros.bin": b"\0" * size}, compression=zipfile.ZIP_DEFLATED)


FORGED_CHECK = "def check(*args, **more): print('Right')\nCredit = print\n"
ANYTHING = """class Anything(float):
    __eq__ = __le__ = __ge__ = lambda *_: True
    __hash__, __call__ = float.__hash__, lambda self, *_: self
double = halve = Anything(2)
"""


def own(source: str) -> dict[str, Any]:
    """A cell that a student adds."""
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None}


def moved_last(nb: Any, *names: str) -> None:
    """Move cells to the end, from where they are sorted into the order in which they run."""
    cells = named(nb, *names)
    nb["cells"] = [cell for cell in nb["cells"] if cell not in cells] + cells


BASH = {"name": "bash", "display_name": "Bash", "language": "bash"}
# The first notebook, changed.
FORGED: dict[str, Callable[[Any], object]] = {
    "points-that-are-text": lambda nb: flags(
        named(nb, "double-test", "halve-test"), points="NaN", schema_version="three", checksum=[1]
    ),
    "names-that-are-lists": lambda nb: update(
        nb["cells"], id={"a": 1}, metadata={"nbgrader": {"grade_id": ["double-test"], "grade": "yes"}}
    ),
    "cells-that-are-nothing": lambda nb: nb.update(
        cells=[None, 5, [], {}, {"cell_type": "code", "source": {"a": 1}}, {"cell_type": "applet"}]
    ),
    "a-set-up-of-its-own-that-is-last": lambda nb: (
        update(named(nb, "set-up"), source=FORGED_CHECK),
        moved_last(nb, "set-up"),
    ),
    "two-set-ups-around-the-answers": lambda nb: nb["cells"].extend(
        cell | {"source": FORGED_CHECK, "id": "again"} for cell in named(nb, "set-up")
    ),
    "checks-of-its-own-below-the-others": lambda nb: (
        update(named(nb, "double-test", "halve-test"), source="1000"),
        moved_last(nb, "double-test", "halve-test"),
    ),
    "an-answer-called-like-a-check": lambda nb: (
        flags(named(nb, "double"), grade_id="double-test", grade=True, points=2),
        update(named(nb, "double"), source="2"),
    ),
    "a-check-called-like-an-answer": lambda nb: (
        flags(named(nb, "double-test"), grade_id="double", solution=True),
        moved_last(nb, "double-test"),
    ),
    "a-forged-check-in-a-notebook-upside-down": lambda nb: nb.update(
        cells=[*nb["cells"][::-1], own(FORGED_CHECK)]
    ),
    "a-forged-check-between-a-check-and-its-answer": lambda nb: (
        moved_last(nb, "double", "halve"),
        nb["cells"].append(own(FORGED_CHECK + ANYTHING)),
    ),
    "a-merge-conflict-around-a-check": lambda nb: update(
        named(nb, "double-test"), source="<<<<<<< HEAD\n2\n=======\n1000\n>>>>>>> mine"
    ),
    "an-error-like-that-of-a-missing-package": lambda nb: nb["cells"].insert(
        0, own("import numpy\nraise ModuleNotFoundError(\"No module named 'numpy'\")")
    ),
    "forty-copies-of-each-cell-upside-down": lambda nb: nb.update(cells=(nb["cells"] * 40)[::-1]),
    "metadata-of-the-grader": lambda nb: nb["metadata"].update(
        starvelab_graded={"mode": "sandboxed"},
        starvelab_warnings=[["Full marks.", False]],
        kernelspec=BASH,
        widgets={"application/vnd.jupyter.widget-state+json": {"state": "x"}},
    ),
}
# Files by name, made of the first notebook as text.
FILES: dict[str, Callable[[str], dict[str, str | bytes]]] = {
    "nothing-at-all": lambda nb: {},
    "a-number-without-end": lambda nb: {"one.ipynb": '{"nbformat": ' + "9" * 100_000 + "}"},
    "a-folder-called-like-a-notebook": lambda nb: {"one.ipynb/one.ipynb/readme": "x"},
    "a-folder-of-predictions": lambda nb: {"predictions.json/x": "x", "one.ipynb": nb},
    "names-that-are-no-text": lambda nb: dict.fromkeys(
        map(os.fsdecode, (b"\xff\xfe.ipynb", b"\xe9t\xe9.txt", b"new\nline.txt", b"`rm`.txt")), "{}"
    ),
    "a-bomb-that-unpacks": lambda nb: {"submission.zip": bomb(300_000_000)},
    "an-archive-with-a-password": lambda nb: {"submission.zip": with_a_password(nb)},
    "an-archive-that-leads-out": lambda nb: {
        "submission.zip": zipped({f"../../../../{ESCAPED}": "{}", f"/{ESCAPED}": "{}"})
    },
}


def link_in_a_zip(folder: Path, solution: Path) -> None:
    entry = zipfile.ZipInfo("one.ipynb")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    (folder / "submission.zip").write_bytes(zipped({entry: str(solution / "one.ipynb")}))


def a_file_of_holes(folder: Path, solution: Path) -> None:
    with (folder / "one.ipynb").open("wb") as file:
        file.truncate(50_000_000_000)


# What else a file system can do, made of the folder of the instructor's notebooks: who followed a link would
# find the solution. And a part of what the student is told.
SYSTEM: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "an-archive-with-a-link": (link_in_a_zip, LINK),
    "a-folder-that-is-a-link": (lambda folder, solution: os.symlink(solution, folder / "mine"), LINK),
    "a-pipe": (lambda folder, _: os.mkfifo(folder / "one.ipynb"), ""),
    "a-file-of-holes": (a_file_of_holes, ""),
}
HOSTILE = [*FORGED, *FILES, *SYSTEM]


def write_hostile(name: str, folder: Path, released: Released) -> str:
    """Fill the folder, and return a part of what the student is told."""
    if name in SYSTEM:
        solution = folder.parents[3] / "source" / "tiny"
        assert (solution / "one.ipynb").is_file()
        make, told = SYSTEM[name]
        make(folder, solution)
        return told
    if name in FORGED:
        nb = json.loads(nbformat.writes(released["one"]))
        FORGED[name](nb)
        write(folder, {"one.ipynb": json.dumps(nb)})
    else:
        write(folder, FILES[name](nbformat.writes(released["one"])))
    return ""


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
