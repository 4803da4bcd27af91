"""Fails every test that leaves something behind: a variable, a thread, a process or a file.

Fixtures of a wider scope, such as a server for all tests of a file, may keep what they start: a fixture that
pytest sets up before all others of a test takes the snapshot after them, and what one sets up later, by
`request.getfixturevalue`, is added to it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

# A test may have told its threads and processes to end without waiting for them.
END_TIMEOUT = 10.0  # seconds

# pytest's own, of the test that runs; and what torch sets when it is first asked to count operations.
IGNORED_VARIABLES = {"PYTEST_CURRENT_TEST", "TORCHINDUCTOR_CACHE_DIR"}
IGNORED_THREADS = {
    # name's beginning: why it may stay
    "tqdm_monitor": "tqdm keeps one for all bars of a process",
    "asyncio_": "an event loop keeps its threads as long as it lasts: that of the browser, for all its tests",
    "IO loop": "Dask keeps one for all clients of a process",
    "QueueFeederThread": "PyTorch keeps one for each worker until a loader that broke is collected",
    "MainThread - runner": "jupyter_core keeps one for all that it waits for, once it has waited",
}
IGNORED_PROCESSES = {
    # part of the command: why it may stay
    "resource_tracker": "Python and loky each keep one, which removes shared memory when the process ends"
}
# Written by Python, and by whoever uses the checkout at the same time; git ignores them. Files of
# other tools begin with a dot.
IGNORED_FILES = {"__pycache__", "dist", "starvelab-lab"}


def _watched_folders() -> set[str]:
    """Return the folders in which a test leaves files: the current one, and the home of the run."""
    home = Path.home()
    own = (home, home / ".cache" / "starvelab", home / "starvelab-course")
    return {os.getcwd(), *map(str, own)}


# What stands in a folder, by its name and the time it was last changed: looked up once, not for each test.
_listings: dict[tuple[str, int], frozenset[str]] = {}


@dataclass
class Snapshot:
    """What there is at a moment: of processes the identifiers of children, of files the names by folder."""

    variables: dict[str, str] = field(default_factory=dict)
    threads: set[threading.Thread] = field(default_factory=set)
    processes: set[int] = field(default_factory=set)
    folder: str = ""
    umask: int = 0
    files: dict[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def take(cls) -> Snapshot:
        """Take one, within a fraction of a millisecond."""
        variables = {name: value for name, value in os.environ.items() if name not in IGNORED_VARIABLES}
        files = {folder: _names(folder) for folder in _watched_folders()}
        # The mode of new files can only be asked for by setting it.
        os.umask(umask := os.umask(0))
        return cls(variables, set(threading.enumerate()), _children(), os.getcwd(), umask, files)

    def names(self, folder: str) -> frozenset[str]:
        """The names in a folder, whether it was watched or not."""
        return self.files[folder] if folder in self.files else _names(folder)

    def left_behind(self) -> list[str]:
        """What there is more, less or otherwise now; of threads and processes, what does not end itself."""
        now = Snapshot.take()
        return [
            *_changed_variables(self.variables, now.variables),
            *_lasting_threads(now.threads - self.threads),
            *_lasting_processes(now.processes - self.processes),
            *([f"the current folder is {now.folder}"] if now.folder != self.folder else []),
            *([f"new files get the umask {now.umask:03o}"] if now.umask != self.umask else []),
            *(
                f"the file {Path(folder, name)}"
                for folder, names in sorted(self.files.items())
                for name in sorted(now.names(folder) - names - IGNORED_FILES)
                if not name.startswith(".")
            ),
        ]

    def allow_what_appeared_since(self, before: Snapshot) -> None:
        """Add what a fixture of a wider scope has changed since then."""
        now = Snapshot.take()
        for name in before.variables.keys() | now.variables.keys():
            if before.variables.get(name) != now.variables.get(name):
                self.variables.pop(name, None)
                self.variables.update({name: now.variables[name]} if name in now.variables else {})
        if before.umask != now.umask:
            self.umask = now.umask
        self.threads |= now.threads - before.threads
        self.processes |= now.processes - before.processes
        for folder, names in now.files.items():
            new = names - before.files.get(folder, frozenset())
            self.files[folder] = self.files.get(folder, frozenset()) | new


def _changed_variables(before: dict[str, str], now: dict[str, str]) -> list[str]:
    return [
        f"the variable {name}: it was {before.get(name)!r:.200} and is {now.get(name)!r:.200}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]


def _lasting_threads(new: set[threading.Thread]) -> list[str]:
    lasting = [thread for thread in new if not thread.name.startswith(tuple(IGNORED_THREADS))]
    deadline = time.monotonic() + END_TIMEOUT
    while any(map(_runs, lasting)) and time.monotonic() < deadline:
        time.sleep(0.005)
    return sorted(f"the thread {thread.name}" for thread in lasting if _runs(thread))


def _runs(thread: threading.Thread) -> bool:
    # Asked each time: the runner of a student may end while we wait.
    return thread.is_alive() and not any(thread.name == f"starvelab-watch-{pid}" for pid in _runners())


def _lasting_processes(new: set[int]) -> list[str]:
    """Children that go on running; they are ended, so that they disturb nothing after this test."""
    lasting = []
    for pid in new:
        with suppress(psutil.Error):  # it has ended
            lasting.append(psutil.Process(pid))
    deadline = time.monotonic() + END_TIMEOUT
    while (lasting := list(filter(_has_to_end, lasting))) and time.monotonic() < deadline:
        time.sleep(0.005)
    found = []
    for process in lasting:
        with suppress(psutil.Error):
            found.append(f"the process {process.pid}: {' '.join(process.cmdline()):.200}")
            process.kill()
    return sorted(found)


def _has_to_end(process: psutil.Process) -> bool:
    try:
        # One that ended is an entry until its parent reads it.
        if process.status() == psutil.STATUS_ZOMBIE or process.pid in _runners():
            return False
        # Asked each time: at first a process has the command of its parent.
        return not any(part in " ".join(process.cmdline()) for part in IGNORED_PROCESSES)
    except psutil.Error:
        return False


def _runners() -> set[int]:
    """The grader's two processes: nbgrader makes its steps anew for each notebook, so these are kept."""
    shared = sys.modules.get("grader.tests.shared_runners")
    kept = (shared.RUNNERS.checks, shared.RUNNERS.student) if shared else ()
    return {runner.process.pid for runner in kept if runner is not None}


def _children() -> set[int]:
    """Identifiers of this process's children."""
    try:
        # Linux keeps a list; to find them otherwise means to look at every process of the machine.
        lists = [Path(f"/proc/self/task/{thread}/children") for thread in os.listdir("/proc/self/task")]
        return {int(pid) for path in lists for pid in path.read_text().split()}
    except (FileNotFoundError, ProcessLookupError):  # no such list here, or a thread has ended
        return {process.pid for process in psutil.Process().children()}


def _names(folder: str) -> frozenset[str]:
    try:
        changed = os.stat(folder).st_mtime_ns
        if (folder, changed) not in _listings:
            _listings[folder, changed] = frozenset(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    return _listings[folder, changed]


_baseline = pytest.StashKey[Snapshot]()


@pytest.fixture(autouse=True)
def every_test_leaves_things_as_they_were(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compare what there is before a test and its own fixtures, and after them."""
    before = Snapshot.take()
    request.node.stash[_baseline] = before
    yield
    left = before.left_behind()
    del request.node.stash[_baseline]
    os.chdir(before.folder)
    for name in os.environ.keys() - before.variables.keys() - IGNORED_VARIABLES:
        del os.environ[name]
    os.environ.update(before.variables)
    if left:
        pytest.fail(f"This test leaves behind {'; '.join(left)}.", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Iterator[object | None]:
    """What a fixture of a wider scope sets up in the middle of a test may stay."""
    running = getattr(request, "_pyfuncitem", None)
    baseline = running.stash.get(_baseline, None) if running is not None else None
    if fixturedef.scope == "function" or baseline is None:
        return (yield)
    before = Snapshot.take()
    try:
        return (yield)
    finally:
        baseline.allow_what_appeared_since(before)
