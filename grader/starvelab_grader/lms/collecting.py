"""A download from a learning platform, sorted into the folders where nbgrader looks for submissions.

The name of a file says who submitted it; `platforms` reads it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath

from starvelab.errors import InputError

from ..batch.one_student import READ_TIMEOUT, one_student
from ..submissions.archives import MAX_TOTAL, within
from ..submissions.matching import TIMESTAMP
from ..text import storable
from .platforms import EARLIER, SubmittedFile, latest_uploads, whose

MACOS = "__MACOSX"
OCCUPIED = "another file has its place"
TOO_LARGE = f"a submission may have {MAX_TOTAL / 1e6:g} MB"


@dataclass
class Collected:
    """The result of sorting a download.

    Attributes
    ----------
    new, changed, unchanged : list of str
        Students, by what their folders held before.
    left_out : dict of str to str
        Files that were not taken, and why.
    failed : dict of str to str
        Students whose files could not be sorted, and why.
    names : dict of str to str
        By student, the name that the platform wrote into the download.
    late : list of str
        Students who submitted late, as the platform says.
    chosen : dict of str to list of str
        By student, which of several uploads of one file counts.
    """

    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)
    chosen: dict[str, list[str]] = field(default_factory=dict)


def collect_download(
    download: Path,
    submitted: Path,
    assignment: str,
    *,
    notebooks: Iterable[str] = (),
    due: datetime | None = None,
) -> Collected:
    """Sort a download into `submitted/STUDENT/ASSIGNMENT`.

    What a student's folder held before, if it was something else, is kept in `replaced/` beside `submitted/`.

    Parameters
    ----------
    download : Path
        A .zip, or the folder that it was unpacked into.
    notebooks : iterable of str
        The notebooks that are asked for.
    due : datetime, optional
        In UTC. Of a late submission Canvas does not say how late it was: it counts as one second late.

    Raises
    ------
    InputError
    """
    collected = Collected()
    files: dict[str, dict[SubmittedFile, PurePosixPath]] = {}
    with closing(_Download(download)) as source:
        collected.left_out |= source.left_out
        for path, file in whose(source.paths).items():
            if file.student is None:
                collected.left_out[str(path)] = "its name does not tell the student"
            elif source.size(path) > MAX_TOTAL:
                collected.left_out[str(path)] = TOO_LARGE
            elif file in files.get(file.student, {}):
                collected.left_out[str(path)] = OCCUPIED
            else:
                files.setdefault(file.student, {})[file] = path
        if not files:
            raise InputError(
                f"In {download} there is nothing that belongs to a student. It should hold one folder for "
                "each student, or files as Canvas names them (name_123_456_file.ipynb)."
            )
        in_one_case: dict[str, str] = {}
        for student, each in sorted(files.items()):
            first = in_one_case.setdefault(student.casefold(), student)
            if first != student:  # on many disks their folders would be one
                collected.failed[student] = (
                    f"Its name differs from {first} in case alone: give one of them another name."
                )
                continue
            with one_student(student, collected.failed, "The files could not be sorted", READ_TIMEOUT):
                places, chosen = latest_uploads(each, notebooks)
                content = _content(source, {each[file]: place for file, place in places.items()}, collected)
                if chosen:
                    collected.chosen[student] = chosen
                collected.names[student] = storable(next((file.name for file in each if file.name), ""))
                if any(file.late for file in each):
                    collected.late.append(student)
                    if due is not None:
                        late = (due + timedelta(seconds=1)).strftime("%Y-%m-%d %H:%M:%S UTC")
                        content[PurePosixPath(TIMESTAMP)] = late.encode()
                _put(submitted / student / assignment, content, student, assignment, collected)
    return collected


def _content(
    source: _Download, places: dict[PurePosixPath, PurePosixPath], collected: Collected
) -> dict[PurePosixPath, bytes]:
    """A student's files: as many as can stand beside each other, and within the size of a submission.

    The time of a submission is for the platform to say: a `timestamp.txt` that a student packed is left out.
    """
    content: dict[PurePosixPath, bytes] = {}
    left = MAX_TOTAL
    # Earlier uploads come last, so that they take no place from what counts.
    for path, inner in sorted(places.items(), key=lambda one: (one[1].parts[0] == EARLIER, one[1], one[0])):
        left -= source.size(path)
        if inner == PurePosixPath(TIMESTAMP):
            collected.left_out[str(path)] = "only the platform says when something was submitted"
        elif left < 0:
            collected.left_out[str(path)] = TOO_LARGE
        elif inner in content:
            collected.left_out[str(path)] = OCCUPIED
        elif any(parent in content for parent in inner.parents):  # `data` is a file, and there is data/a
            collected.left_out[str(path)] = "a file has the name of its folder"
        else:
            content[inner] = source.read(path)
    return content


class _Download:
    """The files of an archive, or of a folder, read for one student at a time."""

    def __init__(self, place: Path) -> None:
        self._archive: zipfile.ZipFile | None = None
        self._entries: dict[PurePosixPath, Path | zipfile.ZipInfo] = {}
        self.left_out: dict[str, str] = {}
        if place.is_dir():
            self._add_folder(place)
            return
        if not zipfile.is_zipfile(place):
            place.open("rb").close()  # what is not there, or cannot be read, is said as that
            raise InputError(
                f"{place} is no .zip and no folder. Pass what Canvas or Moodle let you download, or a folder "
                "with one folder for each student."
            )
        self._archive = zipfile.ZipFile(place)
        for entry in self._archive.infolist():
            inner = within(entry.filename)
            if entry.is_dir():
                continue
            if not inner.parts:
                self.left_out[entry.filename] = "it has no name"
            elif inner.parts[0] == MACOS:
                self.left_out[MACOS] = "macOS adds it to archives"
            elif inner in self._entries:
                self.left_out[entry.filename] = OCCUPIED
            else:
                self._entries[inner] = entry

    def _add_folder(self, place: Path) -> None:
        def unreadable(error: OSError) -> None:
            self.left_out[os.path.relpath(error.filename, place)] = error.strerror or str(error)

        for folder, folders, names in os.walk(place, onerror=unreadable):
            folders.sort()
            for path in (Path(folder) / name for name in sorted([*folders, *names])):
                inner = PurePosixPath(path.relative_to(place).as_posix())
                if path.is_symlink():
                    self.left_out[str(inner)] = "it is a link"
                elif path.is_file():
                    self._entries[inner] = path
                elif not path.is_dir():
                    self.left_out[str(inner)] = "it is no ordinary file"

    def close(self) -> None:
        if self._archive is not None:
            self._archive.close()

    @property
    def paths(self) -> list[PurePosixPath]:
        return list(self._entries)

    def size(self, path: PurePosixPath) -> int:
        entry = self._entries[path]
        return entry.stat().st_size if isinstance(entry, Path) else entry.file_size

    def read(self, path: PurePosixPath) -> bytes:
        entry = self._entries[path]
        if isinstance(entry, Path):
            return entry.read_bytes()
        assert self._archive is not None
        with self._archive.open(entry) as file:
            return file.read(MAX_TOTAL)


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
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".part-") as part:
        new = Path(part) / "new"
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
