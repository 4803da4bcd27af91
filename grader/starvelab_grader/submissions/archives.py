"""The files of a submission, also from archives: no link is followed, and everything has a limit."""

import io
import os
import re
import stat
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, TypeAlias

from ..plugins import declared
from ..text import shown
from . import Warnings

MAX_TOTAL = 100_000_000  # bytes of a submission
MAX_FILES = 2000
MAX_ENTRIES = 20_000  # files, folders and links, also those that are left out
MAX_NAME = 500  # characters of a path that is normalized, which takes the square of the number of accents
MAX_ARCHIVE_DEPTH = 2
LEFT_BEHIND = {"__MACOSX", "__pycache__", "node_modules", "site-packages"}
ARCHIVE = ".zip"
UNKNOWN_ARCHIVES = (".rar", ".7z", ".tar", ".tgz", ".gz", ".xz", ".bz2")
CENTRAL_ENTRY = b"PK\x01\x02"
SAID_TO_BE_UTF8 = 0x800  # a flag of an entry
# Of an archive: its name, whether it is a file, a folder or a link, and what opens it.
Entry: TypeAlias = tuple[str, str, Callable[[], IO[bytes]]]


@dataclass(frozen=True)
class FoundFile:
    """A file of a submission."""

    path: PurePosixPath  # from the folder of the submission; an archive counts as a folder
    content: bytes
    depth: int  # archives that it was packed in


class SubmissionReader:
    """Reads the files of a folder and of archives in it, within limits."""

    def __init__(self) -> None:
        self.warnings = Warnings()
        self.links: set[str] = set()  # names of links that were left out, without their ending
        self.tools: dict[str, None] = {}  # hidden files and folders, and those that tools make, left out too
        self._bytes_left, self._files_left, self._entries_left = MAX_TOTAL, MAX_FILES, MAX_ENTRIES
        self._is_full = False

    def files(self, folder: Path) -> Iterator[FoundFile]:
        """Every file that counts, until a limit is reached."""
        found: list[PurePosixPath] = []
        for place, folders, names in os.walk(folder, onerror=self._warn_unreadable):
            inner = PurePosixPath(os.path.relpath(place, folder))
            folders[:] = sorted(name for name in folders if not self._is_ignored(name))
            for name in [each for each in folders if os.path.islink(os.path.join(place, each))]:
                self._warn_link(inner / name)
            found += [inner / name for name in sorted(names) if not self._is_ignored(name)]
            self._entries_left -= 1
            if len(found) > self._entries_left:
                break
        for path in sorted(found, key=lambda path: _comes_later(path.name)):
            if self._counted(path):
                yield from self._file(folder / path, path)

    def _file(self, path: Path, inner: PurePosixPath) -> Iterator[FoundFile]:
        if path.is_symlink():
            self._warn_link(inner)
            return
        try:
            # A pipe or a device in this place would block, or never end.
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    yield from self._kept(inner, file, 0)
                else:
                    self._left_out(inner, "no ordinary file")
        except OSError as error:
            self._warn_unreadable(error, str(inner))

    def _kept(self, path: PurePosixPath, file: IO[bytes], depth: int) -> Iterator[FoundFile]:
        """A file, or what an archive holds."""
        if self._is_full:
            return
        content, name, lower = file.read(self._bytes_left + 1), shown(path.name), path.name.lower()
        self._files_left -= 1
        if len(content) > self._bytes_left or self._files_left < 0:
            self._stop(path)
            return
        is_unpacked = lower.endswith(ARCHIVE) and depth < MAX_ARCHIVE_DEPTH
        # Of an archive that was submitted itself, what it holds counts; one inside another counts as well.
        if depth or not is_unpacked:
            self._bytes_left -= len(content)
        if is_unpacked:
            yield from self._unpacked(path, content, depth)
        elif lower.endswith(ARCHIVE):
            where = f"it is inside {depth} archives. Submit the files themselves."
            self._warn(f"`{name}` was not unpacked: {where}")
        elif lower.endswith(UNKNOWN_ARCHIVES):
            self._warn(f"`{name}` could not be unpacked: submit the files themselves, or a .zip.")
        else:
            yield FoundFile(path, content, depth)

    def _counted(self, path: PurePosixPath) -> bool:
        """Count an entry of any kind; False where there were too many."""
        self._entries_left -= 1
        if self._entries_left < 0:
            self._stop(path)
        return not self._is_full

    def _stop(self, path: PurePosixPath) -> None:
        """Read nothing more, and warn of it once."""
        if not self._is_full:
            limit, first = f"{MAX_FILES} files or {MAX_TOTAL / 1e6:g} MB", shown(str(path))
            self._warn(f"More than {limit} were submitted: from `{first}` on, files were left out.")
        self._is_full = True

    def _unpacked(self, path: PurePosixPath, content: bytes, depth: int) -> Iterator[FoundFile]:
        inside = path.parent / PurePosixPath(path.name).stem
        try:
            for name, kind, open_entry in self._entries(inside, io.BytesIO(content)):
                inner = within(name)
                if not self._counted(inside / inner):
                    return
                if kind == "folder" or any(map(self._is_ignored, inner.parts)):
                    continue
                if not inner.parts:
                    self._warn(f"A file in `{shown(str(inside))}` has no name, and was left out.")
                elif kind == "link":
                    self._warn_link(inner)
                else:
                    with open_entry() as file:
                        yield from self._kept(inside / inner, file, depth + 1)
        # A damaged archive fails in more ways than the library documents.
        except Exception as error:
            damage = "it is damaged" if content else "it is empty"
            reason = "it needs a password" if "password" in str(error) else damage
            self._warn(f"`{shown(path.name)}` could not be unpacked: {reason}.")

    def _entries(self, inside: PurePosixPath, content: io.BytesIO) -> Iterator[Entry]:
        # zipfile reads the whole table of contents at once. A mark that stands in a file by chance is rare.
        if content.getvalue().count(CENTRAL_ENTRY) > MAX_ENTRIES:
            self._stop(inside)
            return
        with zipfile.ZipFile(content) as archive:
            names = {entry: name_in(entry) for entry in archive.infolist()}
            for entry, name in sorted(names.items(), key=lambda each: _comes_later(each[1])):
                is_link = stat.S_ISLNK(entry.external_attr >> 16)
                kind = "folder" if name.endswith("/") else "link" if is_link else "file"
                yield name, kind, partial(archive.open, entry)

    def _warn_link(self, path: PurePosixPath) -> None:
        self.links.add(path.stem)
        self._left_out(path, "a link")

    def _left_out(self, path: PurePosixPath, what: str) -> None:
        self._warn(f"`{shown(str(path))}` is {what}, and was left out.")

    def _is_ignored(self, name: str) -> bool:
        ignored = name.startswith(".") or name in LEFT_BEHIND or name.endswith(".pyc")
        # The lock of such a file stays beside the notebooks.
        if ignored and name.removeprefix(".").removesuffix(".lock") not in declared("student_files"):
            self.tools[name] = None
        return ignored

    def _warn_unreadable(self, error: OSError, name: str = "") -> None:
        self._warn(f"`{shown(name or Path(error.filename).name)}` could not be read: {error.strerror}.")

    def _warn(self, text: str) -> None:
        self.warnings.add(text, person=True)


def _comes_later(name: str) -> bool:
    """False for notebooks and what the lab wrote: no other file, however large, takes their place."""
    return not name.lower().endswith((".ipynb", *declared("student_files")))


def name_in(entry: zipfile.ZipInfo) -> str:
    """The name of an entry of a .zip, of a folder with a slash at its end, from any system."""
    name = entry.filename
    if not entry.flag_bits & SAID_TO_BE_UTF8:  # on macOS it is that all the same
        with suppress(UnicodeError):
            name = name.encode("cp437").decode()
    return name.replace("\\", "/")


def within(name: str) -> PurePosixPath:
    """A path in an archive, without what would lead out of it, with accents as they are typed."""
    name = re.sub(r"^[A-Za-z]:/", "", name.replace("\\", "/").replace("\0", ""))
    if os.name == "nt":  # where a colon in a name leads elsewhere
        name = name.replace(":", "_")
    parts = PurePosixPath(unicodedata.normalize("NFC", name) if len(name) <= MAX_NAME else name).parts
    return PurePosixPath(*(part for part in parts if part not in ("/", "..", ".")))
