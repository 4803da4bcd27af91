"""Files and folders written whole or not at all; their fingerprints, and what of them a grade depends on."""

import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from filelock import FileLock, Timeout

from .plugins import packages


def write_whole(path: Path, text: str, mode: int | None = None) -> None:
    """Put a text in the place of a file once it is on the disk; by default its mode follows the umask."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            part.chmod(mode)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def read_files(folder: Path, pattern: str = "*") -> dict[str, bytes]:
    """Return the files in a folder and in those below it, by their paths from there."""
    paths = (path for path in sorted(folder.rglob(pattern)) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder, by their paths from there."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Give a new folder to fill, which at the end takes the place of this one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".part-", ignore_cleanup_errors=True) as part:
        new = Path(part) / "new"
        new.mkdir()
        yield new
        with suppress(FileNotFoundError):
            os.rename(folder, Path(part) / "old")
        os.rename(new, folder)


SCRATCH = "starvelab-grader-"  # the beginning of the names of temporary folders
SCRATCH_AGE = 60.0  # seconds, after which a folder of nobody's is not one that somebody is making


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Give a temporary folder. Those that killed programs have left, with what students submitted, go."""
    _remove_abandoned(Path(tempfile.gettempdir()))
    # The system gives a lock back when the process ends, however it ends.
    with (
        tempfile.TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True) as outer,
        FileLock(Path(outer) / "lock"),
    ):
        folder = Path(outer) / "scratch"
        folder.mkdir()
        yield folder


@cache
def _remove_abandoned(temporary: Path) -> None:
    """Remove the folders of one's own that no living process has locked; once in a process."""
    for folder in temporary.glob(f"{SCRATCH}*"):
        with suppress(OSError, Timeout):
            status = folder.lstat()
            user = getattr(os, "geteuid", lambda: 0)()  # Windows has none, and a temporary folder by user
            is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == user
            if not is_own or status.st_mtime > time.time() - SCRATCH_AGE:
                continue
            with FileLock(folder / "lock", timeout=0):
                shutil.rmtree(folder, ignore_errors=True)


VERSION = version("starvelab-grader")
# Why a notebook is graded again, by the kind of what changed. Of several the first is named.
REASONS = {
    "submission": "the submission has changed",
    "assignment": "the assignment has changed",
    "packages": "the grader, or a package that extends it, has changed",
    "settings": "the settings of the course have changed",
}
PACKAGE = Path(__file__).parent
# What a submission is graded with; what collects, releases, reports or exports changes no grade.
GRADING = ("autograde/", "sandbox/", "submissions/", "files.py", "plugins.py", "text.py")
NOT_GRADING = ("autograde/feedback.py", "autograde/releasing.py")


def fingerprint(files: Mapping[str, bytes], *values: object) -> str:
    """Return the fingerprint of files, by their names, and of values that JSON can hold."""
    digest = hashlib.sha256(json.dumps(values).encode())
    for name, content in sorted(files.items()):
        # The length says where a file ends.
        digest.update(f"\0{name}\0{len(content)}\0".encode("utf-8", "replace"))
        digest.update(content)
    return digest.hexdigest()


def changed(before: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the notebooks that have to be graded, each with its key of `REASONS`.

    Before and now there are, by notebook, fingerprints of the kinds that `REASONS` has.

    Examples
    --------
    >>> changed({"one": {"submission": "a"}, "two": {"submission": "b"}}, {"one": {"submission": "c"}})
    {'one': 'submission'}
    """
    reasons = {}
    for notebook, parts in now.items():
        if notebook not in before:
            reasons[notebook] = "assignment"
        elif differing := [kind for kind in REASONS if before[notebook].get(kind) != parts.get(kind)]:
            reasons[notebook] = differing[0]
    return reasons


@cache
def package_fingerprint(package: Path = PACKAGE) -> str:
    """Return the fingerprint of what a grade is computed with: a checkout's version is not enough."""
    files = {}
    for name, (folder, only_shown) in {"grader": (package, NOT_GRADING), **packages()}.items():
        for path in folder.rglob("*"):
            inner = path.relative_to(folder).as_posix()
            counts = inner.endswith((".py", ".toml", ".txt")) and not inner.startswith(tuple(only_shown))
            if counts and (name != "grader" or inner.startswith(GRADING)):
                files[f"{name}/{inner}"] = path.read_bytes()
    return fingerprint(files)
