"""Whose a file of a download is, by the names that Canvas and Moodle give.

Canvas puts the files of a class side by side: `lovelaceada_LATE_123_456_one.ipynb` is file 456 of student
123. Moodle gives each student a folder, `Ada Lovelace_789_assignsubmission_file_`, or the same before each
file's name. Whatever else is packed as one folder for each student is taken as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath

_NAME = r"(?:(?P<name>.+?)_)??(?P<late>LATE_)?"
_UPLOAD = r"_(?:(?P<upload>[0-9]+)_(?P<file>.+)|(?P<page>text\.html|link\.html))"
CANVAS = re.compile(rf"{_NAME}(?P<student>[0-9]+){_UPLOAD}", re.DOTALL)
CANVAS_ANONYMOUS = re.compile(rf"{_NAME}(?P<student>anon_[A-Za-z0-9]+){_UPLOAD}", re.DOTALL)
_OF_MOODLE = r"_(?P<student>[0-9]+)_assignsubmission_(?:file|onlinetext)"
MOODLE_FOLDER = re.compile(rf"(?P<name>.+?){_OF_MOODLE}_?", re.DOTALL)
MOODLE_FILE = re.compile(rf"(?P<name>.+?){_OF_MOODLE}_(?P<file>.+)", re.DOTALL)
EARLIER = "earlier-uploads"


@dataclass(frozen=True)
class SubmittedFile:
    """A file of a download.

    Attributes
    ----------
    student : str or None
        How the platform numbers who submitted it; None where that cannot be told.
    path : PurePosixPath
        Where it belongs in the student's folder.
    name : str
        The student's, as the platform writes it; empty where it does not.
    late : bool
        Whether the platform says that it came after the due date.
    upload : int
        A number that is higher the later the file was uploaded; 0 where there is none.
    """

    student: str | None
    path: PurePosixPath
    name: str = ""
    late: bool = False
    upload: int = 0


def whose(paths: Iterable[PurePosixPath]) -> dict[PurePosixPath, SubmittedFile]:
    """What the path of each file of a download says.

    Which platform it comes from is told by the outermost level of the download as a whole: what a student
    called a file or a folder may look like a name of any platform.
    """
    paths = list(paths)
    read = _reader(paths)
    files = {path: read(path) for path in paths}
    called: dict[str, set[str]] = {}
    for file in files.values():
        if file.student and file.name:
            called.setdefault(file.student, set()).add(file.name)
    # Canvas keeps a number at the end of a student's name: `eve_1` becomes `eve_1_3_22_one`.
    unclear = {student for student, names in called.items() if len(names) > 1}
    files = {
        path: SubmittedFile(None, path) if file.student in unclear else file for path, file in files.items()
    }
    if len(called) > 1 and len(set().union(*called.values())) == 1:
        # Moodle calls everybody "Participant" where graders are not to know the names.
        files = {path: replace(file, name="") for path, file in files.items()}
    return files


def _reader(paths: Sequence[PurePosixPath]) -> Callable[[PurePosixPath], SubmittedFile]:
    outermost = {path.parts[0] for path in paths}
    if read := _layout(paths):
        return read
    # The whole download may stand in one folder. Or that is the only student's, who chose all names in it.
    inner = [PurePosixPath(*path.parts[1:]) for path in paths if len(path.parts) > 1]
    if len(outermost) == 1 and len(inner) == len(paths) and (read := _layout(inner)):
        files = [read(path) for path in inner]
        if len({file.student for file in files} - {None}) > 1 and all(file.student for file in files):
            return lambda path: read(PurePosixPath(*path.parts[1:]))
    return _in_a_folder


def _layout(paths: Sequence[PurePosixPath]) -> Callable[[PurePosixPath], SubmittedFile] | None:
    """How to read names of a platform, if most names of the outermost level are its; None if not."""
    folders = {path.parts[0] for path in paths if len(path.parts) > 1}
    side_by_side = {path.name for path in paths if len(path.parts) == 1}
    best, most, of_folders = None, 0, False
    for pattern, names in (
        (MOODLE_FOLDER, folders),
        (MOODLE_FILE, side_by_side),
        (CANVAS_ANONYMOUS, side_by_side),
        (CANVAS, side_by_side),
    ):
        count = sum(pattern.fullmatch(name) is not None for name in names)
        if count > most:
            best, most, of_folders = pattern, count, names is folders
    others = len(folders) - (most if of_folders else 0)
    if best is None or others >= most:
        return None
    return partial(_in_moodles_folder if of_folders else _named, best)


def _in_moodles_folder(pattern: re.Pattern[str], path: PurePosixPath) -> SubmittedFile:
    match = pattern.fullmatch(path.parts[0])
    if not match or len(path.parts) == 1:
        return SubmittedFile(None, path)
    return SubmittedFile(match["student"], PurePosixPath(*path.parts[1:]), match["name"])


def _named(pattern: re.Pattern[str], path: PurePosixPath) -> SubmittedFile:
    """A file that stands beside those of all others, and whose name says whose it is."""
    match = pattern.fullmatch(path.name)
    if not match or len(path.parts) > 1:
        return SubmittedFile(None, path)
    if pattern is MOODLE_FILE:
        # Both the student's name and that of the file may hold the number of somebody else.
        if len(set(re.findall(f"{_OF_MOODLE}_", path.name))) > 1:
            return SubmittedFile(None, path)
        return SubmittedFile(match["student"], PurePosixPath(match["file"]), match["name"])
    inner, upload = PurePosixPath(match["file"] or match["page"]), int((match["upload"] or "0")[:30])
    return SubmittedFile(match["student"], inner, match["name"] or "", bool(match["late"]), upload)


def _in_a_folder(path: PurePosixPath) -> SubmittedFile:
    student = unicodedata.normalize("NFC", path.parts[0])  # as no Mac writes it
    if len(path.parts) == 1 or student.startswith("."):
        return SubmittedFile(None, path)
    return SubmittedFile(student, PurePosixPath(*path.parts[1:]))


# --- several uploads of one file --------------------------------------------------------------------------


def latest_uploads(
    files: Iterable[SubmittedFile], notebooks: Iterable[str] = ()
) -> tuple[dict[SubmittedFile, PurePosixPath], list[str]]:
    """Where each file of one student goes, if of several uploads of one file the latest is to count.

    Canvas calls a file that is uploaded again `one-1.ipynb`, and where both are in a submission, their
    numbers say which came later.

    Parameters
    ----------
    files : iterable of SubmittedFile
    notebooks : iterable of str
        Names of the notebooks that are asked for: `lab-1` is then not a second `lab`.

    Returns
    -------
    places : dict of SubmittedFile to PurePosixPath
    chosen : list of str
        What counts and what does not, in words, for each file that was there more than once.
    """
    asked = set(notebooks)
    by_name: dict[PurePosixPath, list[SubmittedFile]] = {}
    files = list(files)
    names = {file.path for file in files}
    for file in files:
        stem = re.sub(r"-\d+$", "", file.path.stem)
        plain = file.path.with_name(stem + file.path.suffix) if stem else file.path
        again = file.upload and file.path.stem not in asked and (plain in names or stem in asked)
        by_name.setdefault(plain if again else file.path, []).append(file)
    places, chosen = {}, []
    for plain, uploads in by_name.items():
        *earlier, last = sorted(uploads, key=lambda file: file.upload)
        if not earlier:
            places[last] = last.path
            continue
        places[last] = plain
        for number, file in enumerate(earlier, start=1):
            places[file] = PurePosixPath(EARLIER, str(number), file.path)
        chosen.append(f"{last.path} counts, and {', '.join(str(file.path) for file in earlier)} does not")
    return places, chosen
