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
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ..errors import InputError
from .handin import LONGEST_IN_ALL, within

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
        Files that belong to nobody, or are too large.
    """

    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


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
    files: dict[str, dict[PurePosixPath, bytes]] = {}
    for path, content in _files(download, collected):
        student, inner = whose(path)
        if student is None:
            collected.left_out.append(str(path))
        else:
            files.setdefault(student, {})[inner] = content
    if not files:
        raise InputError(
            f"In {download} there is nothing that belongs to a student. It should hold one folder for each "
            "student, or files as Canvas names them (name_123_456_file.ipynb)."
        )
    for student, each in sorted(files.items()):
        _put(submitted / student / assignment, each, student, assignment, collected)
    return collected


def whose(path: PurePosixPath) -> tuple[str | None, PurePosixPath]:
    """The student that a file belongs to, and the file's own path."""
    parts = path.parts
    for at, part in enumerate(parts[:-1]):
        if found := MOODLE.fullmatch(part):
            return found["student"], PurePosixPath(*parts[at + 1 :])
    if found := CANVAS.fullmatch(parts[-1]):
        return found["student"], PurePosixPath(found["file"])
    if len(parts) > 1:
        return parts[0], PurePosixPath(*parts[1:])
    return None, path


def _files(download: Path, collected: Collected) -> Iterator[tuple[PurePosixPath, bytes]]:
    if download.is_dir():
        for path in sorted(download.rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield PurePosixPath(path.relative_to(download).as_posix()), path.read_bytes()
        return
    if not zipfile.is_zipfile(download):
        raise InputError(
            f"{download} is no .zip and no folder. Pass what Canvas or Moodle let you download, or a folder "
            "with one folder for each student."
        )
    with zipfile.ZipFile(download) as archive:
        for entry in archive.infolist():
            path = within(entry.filename)
            if entry.is_dir() or not path.parts or NO_STUDENT & set(path.parts):
                continue
            if entry.file_size > LONGEST_IN_ALL:
                collected.left_out.append(f"{path} (larger than {LONGEST_IN_ALL / 1e6:g} MB)")
                continue
            with archive.open(entry) as file:
                yield path, file.read(LONGEST_IN_ALL)


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
