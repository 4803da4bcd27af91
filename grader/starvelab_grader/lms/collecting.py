"""A download from a learning platform, sorted into the folders where nbgrader looks for submissions.

Canvas puts the files of a class side by side: `lovelaceada_LATE_123_456_one.ipynb` is file 456 of student
123. Moodle gives each student a folder, `Ada Lovelace_789_assignsubmission_file_`, or the same before each
file's name. Whatever else is packed as one folder for each student is taken as it is.
"""

import json
import os
import re
import shutil
import time
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeAlias

from ..batch.one_student import READ_TIMEOUT, one_student
from ..errors import InputError
from ..files import read_files, whole_folder, write_files, write_whole
from ..submissions.archives import MAX_TOTAL, name_in, within
from ..submissions.submission import TIMESTAMP
from ..text import storable

MACOS = "__MACOSX"
OCCUPIED = "another file has its place"
TOO_LARGE = f"a submission may have {MAX_TOTAL / 1e6:g} MB"
EARLIER = "earlier-uploads"
CANVAS, MOODLE = "canvas", "moodle"


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
    download: Path, submitted: Path, assignment: str, *,
    notebooks: Iterable[str] = (), due: datetime | None = None,
) -> Collected:  # fmt: skip
    """Sort a download, a .zip or the folder that it was unpacked into, into `submitted/STUDENT/ASSIGNMENT`.

    What a student's folder held before, if it was something else, is kept in `replaced/` beside `submitted/`,
    and what the platform calls the files is written into `collected/`, so that feedback can go back to it.
    `notebooks` are those that are expected, and `due` is in UTC. Of a late submission Canvas does not say
    how late it was: it counts as one second late. Raises InputError where there is nothing of a student.
    """
    collected, origins = Collected(), dict[str, Origin]()
    by_student = defaultdict[str, list[SubmittedFile]](list)
    with _opened(download, collected.left_out) as source:
        for file in files_of(source):
            if file.student is None:
                collected.left_out[str(file.source)] = "its name does not tell the student"
            elif source[file.source].size > MAX_TOTAL:
                collected.left_out[str(file.source)] = TOO_LARGE
            elif file in by_student[file.student]:
                collected.left_out[str(file.source)] = OCCUPIED
            else:
                by_student[file.student].append(file)
        if not any(by_student.values()):
            raise InputError(
                f"In {download} there is nothing that belongs to a student. It should hold one folder for "
                "each student, or files as Canvas names them (name_123_456_file.ipynb)."
            )
        in_one_case: dict[str, str] = {}
        for student, files in sorted(by_student.items()):
            first = in_one_case.setdefault(student.casefold(), student)
            if first != student:  # on many disks their folders would be one
                text = f"Its name differs from {first} in case alone: give one of them another name."
                collected.failed[student] = text
                continue
            with one_student(student, collected.failed, "The files could not be sorted", READ_TIMEOUT):
                places, chosen = last_uploads(files, notebooks)
                content = _content(source, places, collected.left_out)
                if chosen:
                    collected.chosen[student] = chosen
                name = storable(next((file.name for file in files if file.name), ""))
                collected.names[student] = name
                if platform := files[0].platform:
                    endings = {str(file.upload): file.path.suffix.lower() for file in files if file.upload}
                    origins[student] = Origin(platform, name, endings)
                if any(file.late for file in files):
                    collected.late.append(student)
                    if due is not None:
                        late = f"{due + timedelta(seconds=1):%Y-%m-%d %H:%M:%S} UTC"
                        content[TIMESTAMP] = late.encode()
                before = _put(submitted / student / assignment, content)
                same = collected.unchanged if before == content else collected.changed
                (same if before else collected.new).append(student)
    if origins:
        record = submitted.parent / "collected" / f"{assignment}.json"
        every = load_origins(record) | origins
        write_whole(record, json.dumps({student: asdict(one) for student, one in every.items()}, indent=1))
    return collected


@dataclass(frozen=True)
class Origin:
    """What the platform calls a student's files, so that feedback finds its way back."""

    platform: str  # CANVAS or MOODLE
    name: str = ""  # of the student, or of the group
    files: dict[str, str] = field(default_factory=dict)  # by the number that Canvas gave each, its ending


def load_origins(record: Path) -> dict[str, Origin]:
    """Return by student what `collect_download` has written down of an assignment."""
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
        return {student: Origin(**each) for student, each in content.items()}
    except (OSError, ValueError, TypeError, AttributeError):  # to collect again writes it anew
        return {}


def _content(source: "_Files", places: "Places", left_out: dict[str, str]) -> dict[str, bytes]:
    """Return a student's files that fit beside each other, without their own `timestamp.txt`."""
    content, left = dict[str, bytes](), MAX_TOTAL
    # Earlier uploads come last, so that they take no place from what counts.
    for file, inner in sorted(
        places.items(), key=lambda one: (one[1].parts[0] == EARLIER, one[1], one[0].source)
    ):
        left -= source[file.source].size
        if str(inner) == TIMESTAMP:
            left_out[str(file.source)] = "only the platform says when something was submitted"
        elif left < 0:
            left_out[str(file.source)] = TOO_LARGE
        elif str(inner) in content:
            left_out[str(file.source)] = OCCUPIED
        elif any(str(parent) in content for parent in inner.parents):  # `data` is a file: there is data/a
            left_out[str(file.source)] = "a file has the name of its folder"
        else:
            content[str(inner)] = source[file.source].read()
    return content


def _put(place: Path, files: dict[str, bytes]) -> dict[str, bytes]:
    """Write the files of `submitted/STUDENT/ASSIGNMENT`, and return those that stood there before."""
    before = read_files(place)
    if before == files:
        return before
    with whole_folder(place) as new:
        write_files(new, files)
        if place.exists():
            stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime())
            student, assignment = place.parts[-2:]
            kept = place.parents[2] / "replaced" / assignment / f"{student}-{stamp}"
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(place, kept)
    return before


class _File(NamedTuple):
    size: int
    read: Callable[[], bytes]


_Files = dict[PurePosixPath, _File]


@contextmanager
def _opened(place: Path, left_out: dict[str, str]) -> Iterator[_Files]:
    """Give the files of an archive or a folder, and write down why others are left out."""
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
            inner = within(name := name_in(entry))
            if name.endswith("/"):
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

    source: PurePosixPath = field(compare=False)  # in the download
    student: str | None = None  # how the platform numbers who submitted it; None where that cannot be told
    path: PurePosixPath = field(default_factory=PurePosixPath)  # where it belongs in the student's folder
    name: str = ""  # the student's, where the platform writes it
    late: bool = False
    upload: int = 0  # the number that Canvas gave the file: higher the later it was uploaded
    platform: str = ""


Places: TypeAlias = dict[SubmittedFile, PurePosixPath]  # in the student's folder
_NAME = r"(?:(?P<name>.+?)_)??(?P<late>LATE_)?"
_UPLOAD = r"_(?:(?P<upload>[0-9]+)_(?P<file>.+)|(?P<page>text\.html|link\.html))"
_OF_MOODLE = r"_(?P<student>[0-9]+)_assignsubmission_(?:file|onlinetext)"
_NUMBERED = re.compile(f"{_OF_MOODLE}_")
# How a platform names the outermost level of a download: folders, one for each student, or files.
FOLDERS = re.compile(rf"(?P<name>.+?){_OF_MOODLE}_?", re.DOTALL)
ANY_FOLDERS = re.compile(r"(?P<student>[^.].*)", re.DOTALL)
FILES = (
    re.compile(rf"(?P<name>.+?){_OF_MOODLE}_(?P<file>.+)", re.DOTALL),
    re.compile(rf"{_NAME}(?P<student>anon_[A-Za-z0-9]+){_UPLOAD}", re.DOTALL),
    re.compile(rf"{_NAME}(?P<student>[0-9]+){_UPLOAD}", re.DOTALL),
)


def files_of(paths: Iterable[PurePosixPath]) -> list[SubmittedFile]:
    """Read whose each file of a download is; its outermost level as a whole tells the platform."""
    paths = list(paths)
    pattern, files = _pattern_of(paths), list[SubmittedFile]()
    # The whole download may stand in one folder. Or that is the only student's, who chose all names in it.
    outermost = {path.parts[0] for path in paths}
    if pattern is None and len(outermost) == 1 and all(len(path.parts) > 1 for path in paths):
        inside = [PurePosixPath(*path.parts[1:]) for path in paths]
        inner = _pattern_of(inside)
        files = [_file(inner, *both) for both in zip(paths, inside, strict=True) if inner]
        students = {file.student for file in files}
        files = files if len(students) > 1 and None not in students else []
    files = files or [_file(pattern or ANY_FOLDERS, path, path) for path in paths]
    names = defaultdict[str | None, set[str]](set)
    for file in files:
        if file.student and file.name:
            names[file.student].add(file.name)
    # Canvas keeps a number at the end of a student's name: `eve_1` becomes `eve_1_3_22_one`.
    files = [SubmittedFile(file.source) if len(names[file.student]) > 1 else file for file in files]
    # Moodle calls everybody "Participant" where graders are not to know the names.
    if sum(map(bool, names.values())) > 1 and len(set().union(*names.values())) == 1:
        files = [replace(file, name="") for file in files]
    return files


def _file(pattern: re.Pattern[str], source: PurePosixPath, path: PurePosixPath) -> SubmittedFile:
    """Read the path of a file, from the outermost level on that the platform has named."""
    match, of_folders = pattern.fullmatch(path.parts[0]), pattern not in FILES
    # Both the student's name and that of the file may hold the number of somebody else.
    numbers = set() if of_folders else set(_NUMBERED.findall(path.name))
    if match is None or of_folders == (len(path.parts) == 1) or len(numbers) > 1:
        return SubmittedFile(source)
    groups = match.groupdict()
    return SubmittedFile(
        source,
        student=unicodedata.normalize("NFC", groups["student"]),  # as no Mac writes it
        path=PurePosixPath(*path.parts[1:])
        if of_folders
        else PurePosixPath(groups["file"] or groups["page"]),
        name=groups.get("name") or "",
        late=bool(groups.get("late")),
        upload=int((groups.get("upload") or "0")[:30]),
        platform=MOODLE if pattern in (FOLDERS, FILES[0]) else CANVAS if pattern in FILES else "",
    )


def _pattern_of(paths: Iterable[PurePosixPath]) -> re.Pattern[str] | None:
    """Return the pattern of most names of the outermost level; None if there is none."""
    folders = {path.parts[0] for path in paths if len(path.parts) > 1}
    side_by_side = {path.name for path in paths if len(path.parts) == 1}
    names = {FOLDERS: folders} | dict.fromkeys(FILES, side_by_side)
    counts = {pattern: sum(map(bool, map(pattern.fullmatch, each))) for pattern, each in names.items()}
    best = max(counts, key=counts.__getitem__)
    others = len(folders) - (counts[best] if best is FOLDERS else 0)
    return best if others < counts[best] else None


def last_uploads(files: Iterable[SubmittedFile], notebooks: Iterable[str] = ()) -> tuple[Places, list[str]]:
    """Return where each file of a student goes if the latest of several uploads counts, and which does."""
    # Canvas calls a second upload `one-1.ipynb`. Where a `lab-1` is expected, it is no second `lab`.
    expected, files = set(notebooks), list(files)
    names = {file.path for file in files}
    by_name = defaultdict(list)
    for file in files:
        stem = re.sub(r"-\d+$", "", file.path.stem)
        plain = file.path.with_name(stem + file.path.suffix) if stem else file.path
        again = file.upload and file.path.stem not in expected and (plain in names or stem in expected)
        by_name[plain if again else file.path].append(file)
    places, chosen = {}, []
    for plain, uploads in by_name.items():
        *earlier, last = sorted(uploads, key=lambda file: file.upload)
        places[last] = plain if earlier else last.path
        places |= {file: PurePosixPath(EARLIER, str(at), file.path) for at, file in enumerate(earlier, 1)}
        if earlier:
            others = ", ".join(str(file.path) for file in earlier)
            chosen.append(f"{last.path} counts, and {others} does not")
    return places, chosen
