"""What a student handed in: the notebooks that were asked for, found whatever they are called and packed in.

Nothing is written and nothing is run here, no link is followed, and nothing is read without a limit.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import stat
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from nbgrader.utils import parse_utc

from ...prediction_file import FILE_NAME as PREDICTIONS
from ...prediction_file import parse as parse_predictions
from .fingerprint import fingerprint
from .notebooks import Remark

LONGEST_NOTEBOOK = 20_000_000  # bytes
LONGEST_IN_ALL = 100_000_000
MAX_FILES = 2000
MAX_ENTRIES = 20_000  # files, folders and links, also those that are left out
MAX_HEADERS = 2_000_000  # bytes that a tape may say of its files: names and times
MAX_NAME = 200  # bytes of one part of a path; file systems take 255
MAX_PATH = 1000  # bytes of a path in the folder of a submission
DEEPEST_ARCHIVE = 2
MAX_SAID = 10  # files that a remark names, and remarks on files that were there more than once
STAMP = "timestamp.txt"
LEFT_BEHIND = {"__MACOSX", "__pycache__", "node_modules"}
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
CENTRAL_ENTRY = b"PK\x01\x02"
HEADERS = {tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, b"X"}
UNKNOWN_ARCHIVES = (".rar", ".7z", ".gz", ".xz", ".bz2")


@dataclass
class HandIn:
    """A submission, read.

    Attributes
    ----------
    student, assignment : str
    notebooks : dict of str to bytes
        By the name of the notebook that was asked for.
    refused : dict of str to Remark
        Notebooks that are not there or cannot be read, and why, in words for the student.
    remarks : dict of str to list of Remark
        By notebook; those of the hand-in as a whole stand under the first.
    files : dict of str to bytes
        What was handed in beside the notebooks.
    timestamp : str or None
        When, as whoever collected it wrote beside it.
    to_grade : frozenset of str or None
        The notebooks to grade; all of them by default. Those that were graded before stay as they are.
    said : frozenset of str
        Remarks that stand in notebooks which stay as they are.
    """

    student: str
    assignment: str
    notebooks: dict[str, bytes] = field(default_factory=dict)
    refused: dict[str, Remark] = field(default_factory=dict)
    remarks: dict[str, list[Remark]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    timestamp: str | None = None
    to_grade: frozenset[str] | None = None
    said: frozenset[str] = frozenset()

    def fingerprints(self) -> dict[str, str]:
        """By notebook that was asked for, the same for the same content, and for no other.

        The files beside the notebooks count for each of them: any may read them.
        """
        beside = fingerprint(self.files, self.student, self.assignment)
        found = {}
        for name in sorted({*self.notebooks, *self.refused}):
            notebook = {"": self.notebooks[name]} if name in self.notebooks else {}
            remarks = [*self.remarks.get(name, []), *filter(None, [self.refused.get(name)])]
            found[name] = fingerprint(notebook, name, beside, [(one.text, one.person) for one in remarks])
        return found


@dataclass(frozen=True)
class _Found:
    """A file of the hand-in."""

    path: PurePosixPath
    content: bytes
    depth: int  # how many archives it was packed in


def collect(folder: Path, student: str, assignment: str, asked: Mapping[str, set[str]]) -> HandIn:
    """Read a hand-in.

    Parameters
    ----------
    folder : Path
        Where it lies.
    asked : mapping of str to set of str
        The notebooks that are asked for, each with the names of its cells.
    """
    reader = _Reader()
    found = list(reader.files(folder))
    handed = HandIn(student, assignment)
    general = reader.remarks
    by_notebook = _sorted_out(found, asked)
    for name in asked:
        candidates = by_notebook[name]
        if not candidates:
            handed.refused[name] = _why_missing(name, reader, found, set().union(*asked.values()))
            continue
        chosen, *others = candidates
        remarks = handed.remarks.setdefault(name, [])
        if chosen.path.name != f"{name}.ipynb":
            remarks.append(Remark(f"It was called `{shown(chosen.path.name)}`."))
        if others := [one for one in others if one.content != chosen.content]:
            remarks.append(_there_more_than_once("It", chosen, others))
        if _is_of_another_assignment(chosen.content, asked[name]):
            text = "holds no cell of this notebook: it may be of another assignment."
            remarks.append(Remark(f"`{shown(chosen.path.name)}` {text}", person=True))
        if len(chosen.content) > LONGEST_NOTEBOOK:
            text = (
                f"`{shown(chosen.path.name)}` is larger than {LONGEST_NOTEBOOK / 1e6:g} MB. "
                "Clear its outputs, save it and hand it in again."
            )
            handed.refused[name] = Remark(text, person=True)
            continue
        handed.notebooks[name] = chosen.content
    handed.files, more = _beside(found, [each[0] for each in by_notebook.values() if each])
    general += more
    if PREDICTIONS in handed.files:
        general += _about_predictions(handed.files[PREDICTIONS])
    if STAMP in handed.files:
        handed.timestamp, more = _when(handed.files.pop(STAMP))
        general += more
    if general:
        first = next(iter(asked))
        handed.remarks[first] = [*general, *handed.remarks.get(first, [])]
    return handed


def _when(content: bytes) -> tuple[str | None, list[Remark]]:
    text = content[:100].decode("utf-8", "replace").strip()
    if not text:
        return None, []
    try:
        return parse_utc(text).isoformat(), []
    # A year that no calendar has, or a time zone of a thousand hours: each fails in its own way.
    except Exception:
        return None, [Remark(f"`{STAMP}` holds no time: `{shown(text)}`.", person=True)]


def _is_of_another_assignment(content: bytes, cells: set[str]) -> bool:
    """Whether a notebook of nbgrader's has none of the cells that are asked for."""
    named = _cells_named_in(content[:LONGEST_NOTEBOOK])
    return bool(named) and not named & cells


def _about_predictions(content: bytes) -> list[Remark]:
    problem = parse_predictions(content).problem
    if problem is None:
        return []
    return [Remark(f"Predictions cannot be read, or not all of them: {shown(problem)}", person=True)]


def _why_missing(name: str, reader: _Reader, found: list[_Found], known: set[str]) -> Remark:
    if name in reader.links:
        text = f"`{name}.ipynb` was handed in as a link, and not as a file: hand in the file itself."
        return Remark(text, person=True)
    why = f"`{name}.ipynb` was not handed in, so that its exercises count nothing."
    stem = _normalized(name)
    shows = [one.path.name for one in found if stem in _normalized(one.path.name)]
    if shows:
        why += f" `{shown(shows[0])}` only shows what came out of it: hand in the notebook itself, as .ipynb."
    elif other := [one.path.name for one in found if _cells_named_in(one.content) - known]:
        why += f" `{shown(other[0])}` is of another assignment."
    return Remark(why, person=True)


# --- reading files ----------------------------------------------------------------------------------------


class _TarEntry(tarfile.TarInfo):
    """An entry of a tape whose headers are of an honest size: tarfile takes minutes for many megabytes."""

    def _proc_member(self, archive: _Tape) -> tarfile.TarInfo:  # tarfile's own place to extend it
        if self.type in HEADERS:
            archive.header_bytes += self.size
        if archive.header_bytes > MAX_HEADERS:
            raise tarfile.ReadError(f"its headers have more than {MAX_HEADERS} bytes")
        return super()._proc_member(archive)


class _Tape(tarfile.TarFile):
    tarinfo = _TarEntry
    header_bytes = 0


def _decompressed(content: io.BytesIO) -> IO[bytes]:
    """What a file holds, unpacked as far as it is read."""
    start = content.getvalue()[:6]
    for magic, unpack in ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open)):
        if start.startswith(magic):
            return unpack(content)
    return content


class _Reader:
    """Reads the files of a folder and of archives in it, within limits."""

    def __init__(self) -> None:
        self.remarks: list[Remark] = []
        self.links: set[str] = set()
        self.bytes_left, self.files_left, self.entries_left = LONGEST_IN_ALL, MAX_FILES, MAX_ENTRIES
        self.full = False

    def files(self, folder: Path) -> Iterator[_Found]:
        for where, folders, names in os.walk(folder, onerror=self._unreadable):
            inner = PurePosixPath(os.path.relpath(where, folder))
            folders[:] = sorted(name for name in folders if not _ignored(name))
            if not self._counted(inner):
                return
            for name in [one for one in folders if os.path.islink(os.path.join(where, one))]:
                self._link(inner / name)
            # No file beside them, however large, takes the place of notebooks and predictions.
            for name in sorted(names, key=lambda name: (not name.endswith((".ipynb", PREDICTIONS)), name)):
                if not _ignored(name) and self._counted(inner / name):
                    yield from self._file(Path(where) / name, inner / name)

    def _unreadable(self, error: OSError) -> None:
        self._say(f"`{shown(Path(error.filename).name)}` could not be read: {error.strerror}.")

    def _file(self, path: Path, inner: PurePosixPath) -> Iterator[_Found]:
        if path.is_symlink():
            self._link(inner)
            return
        try:
            # A pipe or a device that was put there would block, or never end.
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    yield from self._kept(inner, file, 0)
                else:
                    self._say(f"`{shown(str(inner))}` is no ordinary file, and was left out.")
        except OSError as error:
            self._say(f"`{shown(str(inner))}` could not be read: {error.strerror}.")

    def _kept(self, path: PurePosixPath, file: io.BufferedIOBase, depth: int) -> Iterator[_Found]:
        """A file, or what an archive holds."""
        if self.full:
            return
        content = file.read(self.bytes_left + 1)
        self.files_left -= 1
        if len(content) > self.bytes_left or self.files_left < 0:
            self._stop(path)
            return
        if path.name.lower().endswith(ARCHIVES) and depth < DEEPEST_ARCHIVE:
            yield from self._unpacked(path, content, depth)
            return
        if path.name.lower().endswith(UNKNOWN_ARCHIVES):
            self._say(f"`{shown(path.name)}` could not be unpacked: hand in the files themselves, or a .zip.")
            return
        self.bytes_left -= len(content)
        yield _Found(path, content, depth)

    def _counted(self, path: PurePosixPath) -> bool:
        """Count an entry, of whatever kind; False where there were too many."""
        self.entries_left -= 1
        if self.entries_left < 0:
            self._stop(path)
        return not self.full

    def _stop(self, path: PurePosixPath) -> None:
        """Read nothing more, and say so once."""
        if not self.full:
            most = f"{MAX_FILES} files or {LONGEST_IN_ALL / 1e6:g} MB"
            self._say(f"More than {most} were handed in: from `{shown(str(path))}` on, files were left out.")
        self.full = True

    def _unpacked(self, path: PurePosixPath, content: bytes, depth: int) -> Iterator[_Found]:
        inside = path.parent / PurePosixPath(path.name).stem
        unpack = self._zip if path.name.lower().endswith(".zip") else self._tar
        try:
            yield from unpack(inside, io.BytesIO(content), depth + 1)
        # A damaged archive fails in more ways than the two libraries document.
        except Exception as error:
            why = "it needs a password" if "password" in str(error) else "it is damaged"
            self._say(f"`{shown(path.name)}` could not be unpacked: {why}.")

    def _zip(self, inside: PurePosixPath, content: io.BytesIO, depth: int) -> Iterator[_Found]:
        # zipfile reads the whole table of contents at once. A mark that stands in a file by chance is rare.
        if content.getvalue().count(CENTRAL_ENTRY) > MAX_ENTRIES:
            self._stop(inside)
            return
        with zipfile.ZipFile(content) as archive:
            for entry in archive.infolist():
                path_inside = within(entry.filename)
                if not self._counted(inside / path_inside):
                    return
                if entry.is_dir() or not path_inside.parts or any(map(_ignored, path_inside.parts)):
                    continue
                if stat.S_ISLNK(entry.external_attr >> 16):
                    self._link(path_inside)
                    continue
                with archive.open(entry) as file:
                    yield from self._kept(inside / path_inside, file, depth)

    def _tar(self, inside: PurePosixPath, content: io.BytesIO, depth: int) -> Iterator[_Found]:
        # tarfile's own decompression unpacks as much at once as there is.
        with _Tape.open(fileobj=_decompressed(content), mode="r|") as archive:
            for entry in archive:
                path_inside = within(entry.name)
                if archive.offset > LONGEST_IN_ALL:
                    self._stop(inside / path_inside)
                if not self._counted(inside / path_inside):
                    return
                if entry.issym() or entry.islnk():
                    self._link(path_inside)
                elif entry.isfile() and path_inside.parts and not any(map(_ignored, path_inside.parts)):
                    yield from self._kept(inside / path_inside, archive.extractfile(entry), depth)

    def _link(self, path: PurePosixPath) -> None:
        self.links.add(path.stem)
        self._say(f"`{shown(str(path))}` is a link, and was left out.")

    def _say(self, text: str) -> None:
        self.remarks.append(Remark(text, person=True))


def _ignored(name: str) -> bool:
    return name.startswith(".") or name in LEFT_BEHIND or name.endswith((".pyc", ".py"))


def within(name: str) -> PurePosixPath:
    """A path in an archive, without what would lead out of it."""
    parts = PurePosixPath(name.replace("\\", "/").replace("\0", "")).parts
    return PurePosixPath(*(part for part in parts if part not in ("/", "..", ".") and ":" not in part))


def shown(name: str) -> str:
    """A name that can be printed, written down, and put in backticks."""
    return _printable(name)[:120]


def _printable(name: str) -> str:
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace").replace("`", "'")
    return "".join(character if character.isprintable() else "?" for character in text)


# --- which file is which ----------------------------------------------------------------------------------


def _sorted_out(found: list[_Found], asked: Mapping[str, set[str]]) -> dict[str, list[_Found]]:
    """For each notebook the files that may be it, the likeliest first."""
    claims: dict[str, list[tuple[tuple, _Found]]] = {name: [] for name in asked}
    for one in found:
        called = one.path.name.lower()
        if "predictions" in called or not (".ipynb" in called or called.endswith(".json")):
            continue
        stem = re.split(r"\.ipynb", one.path.name, flags=re.IGNORECASE)[0]
        if name := _by_name(stem, asked) or _by_content(one.content, asked):
            exact = one.path.name == f"{name}.ipynb"
            # Of several copies browsers and learning platforms give the newest the highest number.
            number = int((re.findall(r"\d+", stem.replace(name, "")) or ["0"])[-1][:9])
            claims[name].append(((not exact, one.depth, len(one.path.parts), -number, str(one.path)), one))
    return {name: [one for _, one in sorted(each, key=lambda pair: pair[0])] for name, each in claims.items()}


def _by_name(stem: str, asked: Mapping[str, set[str]]) -> str | None:
    """The notebook whose name is part of a file's name: `x (1)`, `x-Copy1`, `ada_123_x`, `X`."""
    names = [name for name in asked if _normalized(name) in _normalized(stem)]
    return max(names, key=len, default=None)


def _normalized(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower())


def _cells_named_in(content: bytes) -> set[str]:
    """The names of cells that a file speaks of."""
    if b"nbgrader" not in content:
        return set()
    named = re.findall(rb'"grade_id"\s*:\s*"([^"\\]{1,200})"', content)
    return {name.decode("utf-8", "replace") for name in named}


def _by_content(content: bytes, asked: Mapping[str, set[str]]) -> str | None:
    """The notebook most of whose cells a file names."""
    if len(content) > LONGEST_NOTEBOOK or b"nbgrader" not in content:
        return None
    named = _cells_named_in(content)
    shares = {name: len(named & cells) / len(cells) for name, cells in asked.items() if cells}
    best = max(shares, key=shares.__getitem__, default=None)
    return best if best is not None and shares[best] > 0.5 else None


def _beside(found: list[_Found], notebooks: list[_Found]) -> tuple[dict[str, bytes], list[Remark]]:
    """The other files, by their path from the folder that the notebooks are in.

    Of two that belong in one place, that counts which lies in the notebooks' folder, since the notebooks were
    run beside it. A file in a folder below keeps its place there.
    """
    parents = [one.path.parent for one in notebooks]
    base = max(parents, key=parents.count, default=PurePosixPath())
    places: dict[str, list[_Found]] = {}
    for one in sorted(found, key=lambda one: (not one.path.is_relative_to(base), one.depth, str(one.path))):
        if ".ipynb" in one.path.name.lower() or one in notebooks:
            continue
        path = one.path.relative_to(base) if one.path.is_relative_to(base) else one.path
        if one.path.name == STAMP and (one.depth or len(one.path.parts) > 1):
            continue  # when it was handed in is said by whoever collected it
        places.setdefault(_storable(path), []).append(one)
    files, remarks = {}, []
    for name, (first, *others) in places.items():
        files[name] = first.content
        if others := [one for one in others if one.content != first.content]:
            remarks.append(_there_more_than_once(f"`{shown(name)}`", first, others))
    if PREDICTIONS not in files:
        alike = [name for name in files if re.search(r"predictions\b.*\.json", name)]
        if alike:
            files[PREDICTIONS] = files.pop(min(alike, key=len))
    return files, remarks[:MAX_SAID]


def _there_more_than_once(what: str, chosen: _Found, others: list[_Found]) -> Remark:
    also = ", ".join(f"`{shown(str(one.path))}`" for one in others[:MAX_SAID])
    more = f" and {len(others) - MAX_SAID} more" if others[MAX_SAID:] else ""
    counts = f"`{shown(str(chosen.path))}` counts, and {also}{more} does not"
    return Remark(f"{what} was there more than once: {counts}.", person=True)


def _storable(path: PurePosixPath) -> str:
    """A path that can be written on any file system, in UTF-8."""
    parts = [_cut(_printable(part).replace("?", "_"), MAX_NAME) for part in path.parts]
    parts = [part for part in parts if part not in ("..", "/")]
    while len(parts) > 1 and len("/".join(parts).encode()) > MAX_PATH:
        del parts[-2]  # the name of the file stays
    return str(PurePosixPath(*parts))


def _cut(name: str, most: int) -> str:
    """A name of so many bytes at most; what stands behind the last dot stays."""
    if len(name.encode()) <= most:
        return name
    stem, dot, ending = name.rpartition(".")
    tail = (dot + ending).encode()[:20] if stem else b""
    return name.encode()[: most - len(tail)].decode("utf-8", "ignore") + tail.decode("utf-8", "ignore")
