"""Whether a live pipeline leaves a worker, a thread or a file behind."""

import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest


def _workers() -> list[psutil.Process]:
    """Processes below this one, but for Python's own that tracks shared locks until the end."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "resource_tracker" not in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:  # it ended meanwhile
            continue
    return found


def _threads() -> list[str]:
    # A grader that ran earlier in this process keeps its sandbox, and a thread that watches it.
    names = (thread.name for thread in threading.enumerate())
    return [name for name in names if name.startswith("starvelab") and "-watch-" not in name]


@pytest.fixture
def nothing_stays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for temporary files; afterwards neither a file of ours nor a worker of any kind is left."""
    home = tmp_path_factory.mktemp("shared")
    before = set(_workers())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(home))
        yield home
    _, alive = psutil.wait_procs(set(_workers()) - before, timeout=10)
    deadline = time.monotonic() + 10
    while _threads() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive == []
    assert _threads() == []
    assert [path.name for path in home.iterdir() if path.name.startswith("starvelab")] == []
