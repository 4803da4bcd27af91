"""The machine that this process runs on: what it starts, its cores, its memory, its cache folder."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# A wheel brings what a checkout has beside the package.
_BROUGHT = Path(__file__).with_name("lab_files")
NOTEBOOKS = (_BROUGHT if _BROUGHT.is_dir() else Path(__file__).resolve().parents[1]) / "labs"


def has_processes() -> bool:
    """True if this machine starts processes and threads: the Python of a browser starts neither."""
    return sys.platform != "emscripten"


def usable_cores(*, physical: bool = False) -> int:
    """Return how many cores the scheduler, the affinity mask and a container's quota leave to this process.

    `os.cpu_count` counts the cores of the host, also inside a container. It is asked only where loky is
    missing, as it is in a browser's Python. Busy cores count too.

    Parameters
    ----------
    physical : bool
        Count a core with two hardware threads once, where the system tells which these are.
    """
    if not has_processes():
        return os.cpu_count() or 1
    try:
        from loky import cpu_count
    except ImportError:
        return os.cpu_count() or 1
    with warnings.catch_warnings():  # where no system tells, it warns, and counts hardware threads
        warnings.simplefilter("ignore")
        return int(cpu_count(only_physical_cores=physical))


def free_shared_memory() -> int | None:
    """Bytes of shared memory that programs may still take here; None where the system does not tell."""
    try:
        return shutil.disk_usage("/dev/shm").free
    except OSError:
        return None


def has_display() -> bool:
    """True if there is a screen for a browser: without one, Python opens one for a terminal."""
    shown = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.platform in ("win32", "darwin") or bool(shown)


def cache_folder() -> Path:
    """The folder of generated images: the variable STARVELAB_CACHE, or the user's own cache folder."""
    import platformdirs

    chosen = os.environ.get("STARVELAB_CACHE")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("starvelab"))


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a path beside `path` to write to, which takes its place when the block ends without an error.

    Whoever reads `path` finds the old version or the new one, and never half of it.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
