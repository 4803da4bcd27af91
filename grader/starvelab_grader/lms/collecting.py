"""A download from a learning platform, sorted into the folders where nbgrader looks for submissions.

Canvas puts the files of a class side by side: `lovelaceada_LATE_123_456_one.ipynb` is file 456 of student
123. Moodle gives each student a folder, `Ada Lovelace_789_assignsubmission_file_`, or the same before each
file's name. Whatever else is packed as one folder for each student is taken as it is.
"""

from __future__ import annotations

import os
import re
import shutil
import time
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path, PurePosixPath

from ..batch.one_student import READ_TIMEOUT, one_student
from ..errors import InputError
from ..files import whole_folder
from ..submissions.archives import MAX_TOTAL, within
from ..submissions.submission import TIMESTAMP
from ..text import storable

MACOS = "__MACOSX"
OCCUPIED = "another file has its place"
TOO_LARGE = f"a submission may have {MAX_TOTAL / 1e6:g} MB"
EARLIER = "earlier-uploads"


@dataclass
class Collected:
    """The result of sorting a download."""

    # Students, by what their folders held before.
    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    # Files that were not taken, and students whose files could not be sorted, and why.
    left_out: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    # By student, the name that the platform wrote into the download; and who was late, as it says.
    names: dict[str, str] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)
    # By student, which of several uploads of one file counts.
    chosen: dict[str, list[str]] = field(default_factory=dict)


def collect_download(
    download: Path,
    submitted: Path,
    assignment: str,
    *,
    notebooks: Iterable[str] = (),
    due: datetime | None = None,
) -> Collected:
    """Sort a download, a .zip or the folder that it was unpacked into, into `submitted/STUDENT/ASSIGNMENT`.

    What a student's folder held before, if it was something else, is kept in `replaced/` beside `submitted/`.
    `notebooks` are those that are asked for, and `due` is in UTC. Of a late submission Canvas does not say
    how late it was: it counts as one second late. Raises InputError where there is nothing of a student.
    """
    collected = Collected()
    files: dict[str, dict[SubmittedFile, PurePosixPath]] = {}
    with _opened(download, collected.left_out) as source:
        for path, file in whose(source).items():
            if file.student is None:
                collected.left_out[str(path)] = "its name does not tell the student"
            elif source[path].size > MAX_TOTAL:
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
                before = _put(submitted / student / assignment, content)
                if before == content:
                    collected.unchanged.append(student)
                else:
                    (collected.changed if before else collected.new).append(student)
    return collected


def _content(
    source: _Files, places: dict[PurePosixPath, PurePosixPath], collected: Collected
) -> dict[PurePosixPath, bytes]:
    """A student's files that fit beside each other, without their own `timestamp.txt`."""
    content: dict[PurePosixPath, bytes] = {}
    left = MAX_TOTAL
    # Earlier uploads come last, so that they take no place from what counts.
    for path, inner in sorted(places.items(), key=lambda one: (one[1].parts[0] == EARLIER, one[1], one[0])):
        left -= source[path].size
        if inner == PurePosixPath(TIMESTAMP):
            collected.left_out[str(path)] = "only the platform says when something was submitted"
        elif left < 0:
            collected.left_out[str(path)] = TOO_LARGE
        elif inner in content:
            collected.left_out[str(path)] = OCCUPIED
        elif any(parent in content for parent in inner.parents):  # `data` is a file, and there is data/a
            collected.left_out[str(path)] = "a file has the name of its folder"
        else:
            content[inner] = source[path].read()
    return content


def _put(place: Path, files: dict[PurePosixPath, bytes]) -> dict[PurePosixPath, bytes]:
    """Write the files of `submitted/STUDENT/ASSIGNMENT`, and give those that stood there before."""
    before = {
        PurePosixPath(path.relative_to(place).as_posix()): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file()
    }
    if before == files:
        return before
    with whole_folder(place) as new:
        for inner, content in files.items():
            (new / inner).parent.mkdir(parents=True, exist_ok=True)
            (new / inner).write_bytes(content)
        if place.exists():
            stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime())
            student, assignment = place.parts[-2:]
            kept = place.parents[2] / "replaced" / assignment / f"{student}-{stamp}"
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(place, kept)
    return before


# --- the files of a download ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _File:
    size: int
    read: Callable[[], bytes]


_Files = dict[PurePosixPath, _File]


@contextmanager
def _opened(place: Path, left_out: dict[str, str]) -> Iterator[_Files]:
    """The files of an archive or a folder, and why others are left out."""
    if place.is_dir():
        yield _files_in_folder(place, left_out)
        return
    if not zipfile.is_zipfile(place):
        place.open("rb").close()  # what is not there, or cannot be read, is said as that
        raise InputError(
            f"{place} is no .zip and no folder. Pass what Canvas or Moodle let you download, or a folder "
            "with one folder for each student."
        )
    with zipfile.ZipFile(place) as archive:
        files: _Files = {}
        for entry in archive.infolist():
            inner = within(entry.filename)
            if entry.is_dir():
                continue
            if not inner.parts:
                left_out[entry.filename] = "it has no name"
            elif inner.parts[0] == MACOS:
                left_out[MACOS] = "macOS adds it to archives"
            elif inner in files:
                left_out[entry.filename] = OCCUPIED
            else:
                files[inner] = _File(entry.file_size, partial(_read, archive, entry))
        yield files


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    with archive.open(entry) as file:
        return file.read(MAX_TOTAL)  # whatever its header says


def _files_in_folder(place: Path, left_out: dict[str, str]) -> _Files:
    def unreadable(error: OSError) -> None:
        left_out[os.path.relpath(error.filename, place)] = error.strerror or str(error)

    files: _Files = {}
    for folder, folders, names in os.walk(place, onerror=unreadable):
        folders.sort()
        for path in (Path(folder) / name for name in sorted([*folders, *names])):
            inner = PurePosixPath(path.relative_to(place).as_posix())
            if path.is_symlink():
                left_out[str(inner)] = "it is a link"
            elif path.is_file():
                files[inner] = _File(path.stat().st_size, path.read_bytes)
            elif not path.is_dir():
                left_out[str(inner)] = "it is no ordinary file"
    return files


# --- whose a file is, by the names that Canvas and Moodle give ---------------------------------------------


@dataclass(frozen=True)
class SubmittedFile:
    """A file of a download, by what the platform says of it."""

    student: str | None  # how the platform numbers who submitted it; None where that cannot be told
    path: PurePosixPath  # where it belongs in the student's folder
    name: str = ""  # the student's, where the platform writes it
    late: bool = False
    upload: int = 0  # higher the later the file was uploaded


@dataclass(frozen=True)
class _Layout:
    """How a platform names the outermost level of a download: a folder for each student, or files."""

    pattern: re.Pattern[str]
    of_folders: bool = False

    def read(self, path: PurePosixPath) -> SubmittedFile:
        """Read the path of a file."""
        match = self.pattern.fullmatch(path.parts[0])
        # Both the student's name and that of the file may hold the number of somebody else.
        numbers = set() if self.of_folders else set(re.findall(f"{_OF_MOODLE}_", path.name))
        if match is None or self.of_folders == (len(path.parts) == 1) or len(numbers) > 1:
            return SubmittedFile(None, path)
        groups = match.groupdict()
        inner = path.parts[1:] if self.of_folders else [groups["file"] or groups["page"]]
        upload = int((groups.get("upload") or "0")[:30])
        return SubmittedFile(
            student=unicodedata.normalize("NFC", groups["student"]),  # as no Mac writes it
            path=PurePosixPath(*inner),
            name=groups.get("name") or "",
            late=bool(groups.get("late")),
            upload=upload,
        )


def _layout(pattern: str, of_folders: bool = False) -> _Layout:
    return _Layout(re.compile(pattern, re.DOTALL), of_folders)


_NAME = r"(?:(?P<name>.+?)_)??(?P<late>LATE_)?"
_UPLOAD = r"_(?:(?P<upload>[0-9]+)_(?P<file>.+)|(?P<page>text\.html|link\.html))"
_OF_MOODLE = r"_(?P<student>[0-9]+)_assignsubmission_(?:file|onlinetext)"
LAYOUTS = (
    _layout(rf"(?P<name>.+?){_OF_MOODLE}_?", of_folders=True),
    _layout(rf"(?P<name>.+?){_OF_MOODLE}_(?P<file>.+)"),
    _layout(rf"{_NAME}(?P<student>anon_[A-Za-z0-9]+){_UPLOAD}"),
    _layout(rf"{_NAME}(?P<student>[0-9]+){_UPLOAD}"),
)
ANY_FOLDERS = _layout(r"(?P<student>[^.].*)", of_folders=True)


def whose(paths: Iterable[PurePosixPath]) -> dict[PurePosixPath, SubmittedFile]:
    """Read whose each file of a download is; its outermost level as a whole tells the platform."""
    paths = list(paths)
    read = _reader(paths)
    files = {path: read(path) for path in paths}
    called = defaultdict(set)
    for file in files.values():
        if file.student and file.name:
            called[file.student].add(file.name)
    # Canvas keeps a number at the end of a student's name: `eve_1` becomes `eve_1_3_22_one`.
    unclear = {student for student, names in called.items() if len(names) > 1}
    files = {
        path: SubmittedFile(None, path) if file.student in unclear else file for path, file in files.items()
    }
    if len(called) > 1 and len(set().union(*called.values())) == 1:
        # Moodle calls everybody "Participant" where graders are not to know the names.
        files = {path: replace(file, name="") for path, file in files.items()}
    return files


def _reader(paths: list[PurePosixPath]) -> Callable[[PurePosixPath], SubmittedFile]:
    if layout := _layout_of(paths):
        return layout.read
    # The whole download may stand in one folder. Or that is the only student's, who chose all names in it.
    inner = [PurePosixPath(*path.parts[1:]) for path in paths if len(path.parts) > 1]
    if (
        len({path.parts[0] for path in paths}) == 1
        and len(inner) == len(paths)
        and (layout := _layout_of(inner))
    ):
        students = {layout.read(path).student for path in inner}
        if len(students) > 1 and None not in students:
            return lambda path: layout.read(PurePosixPath(*path.parts[1:]))
    return ANY_FOLDERS.read


def _layout_of(paths: Iterable[PurePosixPath]) -> _Layout | None:
    """The layout whose names are most of those of the outermost level; None if there is none."""
    folders = {path.parts[0] for path in paths if len(path.parts) > 1}
    side_by_side = {path.name for path in paths if len(path.parts) == 1}
    counts = {
        layout: sum(map(bool, map(layout.pattern.fullmatch, folders if layout.of_folders else side_by_side)))
        for layout in LAYOUTS
    }
    best = max(LAYOUTS, key=counts.__getitem__)
    others = len(folders) - (counts[best] if best.of_folders else 0)
    return best if others < counts[best] else None


def latest_uploads(
    files: Iterable[SubmittedFile], notebooks: Iterable[str] = ()
) -> tuple[dict[SubmittedFile, PurePosixPath], list[str]]:
    """Where each file of a student goes if the latest of several uploads counts, and which does."""
    # Canvas calls a second upload `one-1.ipynb`. Where a `lab-1` is asked for, it is no second `lab`.
    asked, files = set(notebooks), list(files)
    names = {file.path for file in files}
    by_name = defaultdict(list)
    for file in files:
        stem = re.sub(r"-\d+$", "", file.path.stem)
        plain = file.path.with_name(stem + file.path.suffix) if stem else file.path
        again = file.upload and file.path.stem not in asked and (plain in names or stem in asked)
        by_name[plain if again else file.path].append(file)
    places, chosen = {}, []
    for plain, uploads in by_name.items():
        *earlier, last = sorted(uploads, key=lambda file: file.upload)
        places[last] = plain if earlier else last.path
        for number, file in enumerate(earlier, start=1):
            places[file] = PurePosixPath(EARLIER, str(number), file.path)
        if earlier:
            others = ", ".join(str(file.path) for file in earlier)
            chosen.append(f"{last.path} counts, and {others} does not")
    return places, chosen
