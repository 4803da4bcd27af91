"""Files and folders written whole or not at all: an error leaves what was there before."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path


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
