"""Whose a file of a download is, by the names that Canvas and Moodle give.

Canvas puts the files of a class side by side: `lovelaceada_LATE_123_456_one.ipynb` is file 456 of student
123. Moodle gives each student a folder, `Ada Lovelace_789_assignsubmission_file_`, or the same before each
file's name. Whatever else is packed as one folder for each student is taken as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

CANVAS = re.compile(
    r"(?:(?P<name>.+?)_)??(?P<late>LATE_)?(?:(?P<student>\d+)|(?P<anonymous>anon_[A-Za-z0-9]+))_"
    r"(?:(?P<upload>\d+)_(?P<file>.+)|(?P<page>text\.html|link\.html))",
    re.DOTALL,
)
_MOODLE = r"(?P<name>.+?)_(?P<student>\d+)_assignsubmission_(?:file|onlinetext)"
MOODLE_FOLDER = re.compile(rf"{_MOODLE}_?", re.DOTALL)
MOODLE_FILE = re.compile(rf"{_MOODLE}_(?P<file>.+)", re.DOTALL)
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

    Which platform it comes from is told by the download as a whole: a student's own file may be called like
    one of Canvas.
    """
    paths = list(paths)
    read = _reader(paths)
    files = {path: read(path) for path in paths}
    names = {file.student: file.name for file in files.values() if file.student}
    if len(names) > 1 and len(set(names.values())) == 1:
        # Moodle calls everybody "Participant" where graders are not to know the names.
        files = {path: replace(file, name="") for path, file in files.items()}
    return files


def _reader(paths: Sequence[PurePosixPath]) -> Callable[[PurePosixPath], SubmittedFile]:
    if any(MOODLE_FOLDER.fullmatch(part) for path in paths for part in path.parts[:-1]):
        return _in_moodles_folder
    for pattern, reader in ((MOODLE_FILE, _named_by_moodle), (CANVAS, _named_by_canvas)):
        if _side_by_side(paths, pattern):
            return reader
    return _in_a_folder


def _side_by_side(paths: Sequence[PurePosixPath], pattern: re.Pattern[str]) -> bool:
    """Whether the files of several students lie in one folder, each under a name that says whose it is."""
    if any(len(path.parts) == 1 and pattern.fullmatch(path.name) for path in paths):
        return True
    matches = [match for path in paths if (match := pattern.fullmatch(path.name))]
    together = len({path.parent for path in paths}) == 1
    return together and len(matches) == len(paths) and len({_student(match) for match in matches}) > 1


def _student(match: re.Match[str]) -> str:
    return match["student"] or match["anonymous"]


def _in_moodles_folder(path: PurePosixPath) -> SubmittedFile:
    for at, part in enumerate(path.parts[:-1]):
        if match := MOODLE_FOLDER.fullmatch(part):
            inner = PurePosixPath(*path.parts[at + 1 :])
            return SubmittedFile(match["student"], inner, match["name"])
    return SubmittedFile(None, path)


def _named_by_moodle(path: PurePosixPath) -> SubmittedFile:
    match = MOODLE_FILE.fullmatch(path.name)
    if not match:
        return SubmittedFile(None, path)
    return SubmittedFile(match["student"], PurePosixPath(match["file"]), match["name"])


def _named_by_canvas(path: PurePosixPath) -> SubmittedFile:
    match = CANVAS.fullmatch(path.name)
    if not match:
        return SubmittedFile(None, path)
    inner = PurePosixPath(match["file"] or match["page"])
    return SubmittedFile(
        _student(match), inner, match["name"] or "", bool(match["late"]), int((match["upload"] or "0")[:30])
    )


def _in_a_folder(path: PurePosixPath) -> SubmittedFile:
    if len(path.parts) == 1:
        return SubmittedFile(None, path)
    return SubmittedFile(path.parts[0], PurePosixPath(*path.parts[1:]))


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
