"""What a learning platform lets download, sorted into the folders that nbgrader looks for.

Canvas puts the files of a class side by side, each under the name and the number of its student; Moodle gives
each student a folder. Whatever else is packed as one folder for each student is taken as it is.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
import zipfile
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import InputError
from .handin import LONGEST_IN_ALL, STAMP, within
from .one_student import READ_TIMEOUT, one_student

CANVAS = re.compile(r"(?P<name>[^_]+)_(?P<late>LATE_)?(?P<student>\d+)_\d+_(?P<file>.+)", re.DOTALL)
MOODLE = re.compile(r"(?P<name>.+)_(?P<student>\d+)_assignsubmission_(file|onlinetext)_?", re.DOTALL)
NO_STUDENT = {"__MACOSX"}


@dataclass
class Collected:
    """What became of a download.

    Attributes
    ----------
    new, changed, unchanged : list of str
        Students, by what their folders held before.
    left_out : list of str
        Files that belong to nobody, are larger than any hand-in may be, or cannot stand beside the others.
    failed : dict of str to str
        Students whose files could not be sorted, and why.
    """

    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def collect_download(download: Path, submitted: Path, assignment: str) -> Collected:
    """Sort a download into `submitted/STUDENT/ASSIGNMENT`.

    What a student's folder held before, if it was something else, is kept in `replaced/` beside `submitted/`.

    Parameters
    ----------
    download : Path
        A .zip, or the folder that it was unpacked into.

    Raises
    ------
    InputError
    """
    collected = Collected()
    files: dict[str, dict[PurePosixPath, PurePosixPath]] = {}
    with closing(_Download(download)) as given:
        for path, (student, inner) in whose(given.paths).items():
            if student is None or given.size(path) > LONGEST_IN_ALL:
                collected.left_out.append(str(path))
            else:
                files.setdefault(student, {})[inner] = path
        if not files:
            raise InputError(
                f"In {download} there is nothing that belongs to a student. It should hold one folder for "
                "each student, or files as Canvas names them (name_123_456_file.ipynb)."
            )
        for student, each in sorted(files.items()):
            with one_student(student, collected.failed, "The files could not be sorted", READ_TIMEOUT):
                content = _content(given, each, collected)
                _put(submitted / student / assignment, content, student, assignment, collected)
    return collected


def _content(
    given: _Download, files: dict[PurePosixPath, PurePosixPath], collected: Collected
) -> dict[PurePosixPath, bytes]:
    """A student's files: as many as can stand beside each other, and as large as a hand-in may be.

    The time of a submission is for the platform to say: a `timestamp.txt` that a student packed is left out.
    """
    content: dict[PurePosixPath, bytes] = {}
    left = LONGEST_IN_ALL
    for inner, path in sorted(files.items()):
        blocked = any(parent in content for parent in inner.parents)  # `data` is a file, and there is data/a
        left -= given.size(path)
        if blocked or left < 0 or inner == PurePosixPath(STAMP):
            collected.left_out.append(str(path))
        else:
            content[inner] = given.read(path)
    return content


def whose(paths: Iterable[PurePosixPath]) -> dict[PurePosixPath, tuple[str | None, PurePosixPath]]:
    """For each file of a download its student, or None, and its path in the student's folder.

    Which platform it comes from is told by the download as a whole: a student's own file may be called like
    one of Canvas.
    """
    paths = list(paths)
    if any(MOODLE.fullmatch(part) for path in paths for part in path.parts[:-1]):
        return {path: _of_moodle(path) for path in paths}
    flat = [found for path in paths if len(path.parts) == 1 and (found := CANVAS.fullmatch(path.name))]
    together = len({path.parent for path in paths}) == 1
    named = [CANVAS.fullmatch(path.name) for path in paths]
    if flat or (together and all(named) and len({found["student"] for found in named}) > 1):
        return {path: _of_canvas(path) for path in paths}
    return {path: _of_a_folder(path) for path in paths}


def _of_moodle(path: PurePosixPath) -> tuple[str | None, PurePosixPath]:
    for at, part in enumerate(path.parts[:-1]):
        if found := MOODLE.fullmatch(part):
            return found["student"], PurePosixPath(*path.parts[at + 1 :])
    return None, path


def _of_canvas(path: PurePosixPath) -> tuple[str | None, PurePosixPath]:
    found = CANVAS.fullmatch(path.name)
    return (found["student"], PurePosixPath(found["file"])) if found else (None, path)


def _of_a_folder(path: PurePosixPath) -> tuple[str | None, PurePosixPath]:
    return (path.parts[0], PurePosixPath(*path.parts[1:])) if len(path.parts) > 1 else (None, path)


class _Download:
    """The files of an archive, or of a folder; read one student at a time."""

    def __init__(self, place: Path) -> None:
        self.place, self.archive = place, None
        if place.is_dir():
            found = {path.relative_to(place).as_posix(): path for path in sorted(place.rglob("*"))}
            kept = {name: path for name, path in found.items() if path.is_file() and not path.is_symlink()}
            self.entries: dict[PurePosixPath, Any] = {
                PurePosixPath(name): path for name, path in kept.items()
            }
            return
        if not zipfile.is_zipfile(place):
            raise InputError(
                f"{place} is no .zip and no folder. Pass what Canvas or Moodle let you download, or a folder "
                "with one folder for each student."
            )
        self.archive = zipfile.ZipFile(place)
        files = {within(entry.filename): entry for entry in self.archive.infolist() if not entry.is_dir()}
        self.entries = {
            path: entry for path, entry in files.items() if path.parts and not NO_STUDENT & set(path.parts)
        }

    def close(self) -> None:
        if self.archive is not None:
            self.archive.close()

    @property
    def paths(self) -> list[PurePosixPath]:
        return list(self.entries)

    def size(self, path: PurePosixPath) -> int:
        entry = self.entries[path]
        return entry.stat().st_size if self.archive is None else entry.file_size

    def read(self, path: PurePosixPath) -> bytes:
        if self.archive is None:
            return self.entries[path].read_bytes()
        with self.archive.open(self.entries[path]) as file:
            return file.read(LONGEST_IN_ALL)


def _put(
    place: Path, files: dict[PurePosixPath, bytes], student: str, assignment: str, collected: Collected
) -> None:
    before = {
        PurePosixPath(path.relative_to(place).as_posix()): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file()
    }
    if before == files:
        collected.unchanged.append(student)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".part-") as made:
        new = Path(made) / "new"
        for inner, content in files.items():
            (new / inner).parent.mkdir(parents=True, exist_ok=True)
            (new / inner).write_bytes(content)
        if place.exists():
            stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime())
            kept = place.parent.parent.parent / "replaced" / assignment / f"{student}-{stamp}"
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(place, kept)
        new.rename(place)
    (collected.changed if before else collected.new).append(student)
