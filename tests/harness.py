"""What every test may rely on: the same examples each time, and that nothing reaches the user's own files.

Every test fails that leaves something behind: see tests/leaks.py.
"""

import gc
import importlib
import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.leaks import every_test_leaves_things_as_they_were, pytest_fixture_setup  # noqa: F401
from tests.selection import pytest_collection_modifyitems, pytest_xdist_make_scheduler  # noqa: F401

REPOSITORY = Path(__file__).resolve().parents[1]

# Hardly anything that tests import is garbage, and to look for some takes a seventh of the time.
gc.disable()

# What a shell runs in the background ignores Ctrl+C, and so does what that starts: tests that press it would
# wait in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# `make test` tries the same examples on every machine and at every time: a failure is a defect of what was
# changed. `make fuzz` looks for new ones, and its database brings what failed back in the next run. No test
# asserts a time, and on a busy machine one example may take long.
always = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", always, derandomize=True, database=None, max_examples=20)
settings.register_profile("fuzz", always, max_examples=500, print_blob=True)
# For tests that run others of these tests once more, in a copy.
settings.register_profile("one", settings.get_profile("same"), max_examples=1)
# Of each property `make check` tries a few.
settings.register_profile("few", settings.get_profile("same"), max_examples=5)
settings.load_profile("same")
# Hypothesis also tries the constants of the modules of this repository that are loaded by then, and these
# depend on what a process has run before. They are left out where the examples have to be the same.
_with_constants_of_modules = providers._get_local_constants


def _constants() -> providers.Constants:
    return providers.Constants() if settings.default.derandomize else _with_constants_of_modules()


providers._get_local_constants = _constants


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each process of a run import the tests from another place on.

    In a fresh checkout it takes longest to write what `assert` says into their bytecode, and whoever comes
    later finds it there. What fails here fails again when pytest collects, which then says so.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    folders = [Path(argument) for argument in session.config.args if Path(argument).is_dir()]
    files = sorted(path.resolve() for folder in folders for path in folder.rglob("test_*.py"))
    first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for path in files[first:] + files[:first]:
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.relative_to(REPOSITORY).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """What was imported stays: each collection of garbage would look at all of it again."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def repository() -> Path:
    """The folder that holds pyproject.toml."""
    return REPOSITORY


class Logged(logging.Handler):
    """Keeps what is logged, as one text."""

    text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += f"{record.getMessage()}\n"


@pytest.fixture
def logged() -> Iterator[Logged]:
    """The warnings that are logged during a test; pytest's own `caplog` costs every other test as well."""
    kept = Logged(logging.WARNING)
    logging.getLogger().addHandler(kept)
    yield kept
    logging.getLogger().removeHandler(kept)


@pytest.fixture(scope="session")
def shared_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this test run share, and no other run."""
    folder = tmp_path_factory.getbasetemp()
    # A run that a test starts inherits the variables of a worker, and is none.
    return folder.parent if hasattr(request.config, "workerinput") else folder


@pytest.fixture(scope="session")
def run_notebook(
    shared_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Any]]:  # Any: a `Run`
    """Run a notebook, or take what another test of this run has seen it show."""
    from tests.notebook_runs import kernel, run_once  # loaded here: the doctor's gate has no Jupyter

    with kernel(tmp_path_factory.mktemp("kernel")) as started:
        yield partial(run_once, folder=shared_folder / "executed", kernel=started)


@pytest.fixture(scope="session", autouse=True)
def _no_test_touches_the_files_of_a_user(
    shared_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Give tests, and the processes that they start, a home of their own, and figures without a window.

    What a package index and a font need stays where it can be written: to fetch it again would take minutes.
    """
    home, own_home = Path.home(), tmp_path_factory.mktemp("home")
    caches = Path(os.environ.get("XDG_CACHE_HOME", home / ".cache"))
    with suppress(OSError):
        caches.mkdir(parents=True, exist_ok=True)
    caches = caches if os.access(caches, os.W_OK) else shared_folder / "caches"
    variables = {
        "HOME": own_home,
        "XDG_CACHE_HOME": own_home / ".cache",
        "XDG_CONFIG_HOME": os.environ.get("XDG_CONFIG_HOME", home / ".config"),
        "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", caches / "pip"),
        "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", caches / "uv"),
        "MPLCONFIGDIR": os.environ.get("MPLCONFIGDIR", caches / "matplotlib"),
        "NPM_CONFIG_USERCONFIG": os.environ.get("NPM_CONFIG_USERCONFIG", home / ".npmrc"),
        "STARVELAB_COURSE": tmp_path_factory.mktemp("course"),
        "STARVELAB_CACHE": shared_folder / "cache",
        "MPLBACKEND": "agg",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, str(value))
        yield
