"""One JupyterLab and one Chromium for all browser tests of a run, which share a process (tests/selection.py).

The browser ends after the last of them: its event loop would make tests fail that start their own.
"""

import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.lab_in_browser import (
    ACTION_SECONDS,
    REPOSITORY,
    OpenNotebook,
    Server,
    chromium,
    jupyterlab,
    open_notebook,
    window,
    write_notebook,
)

# The grader's pages are tried here too: all share one browser. Without the grader they are left out.
OF_THE_GRADER = ["test_feedback_in_browser.py", "test_marking_in_browser.py"]
collect_ignore = [] if find_spec("starvelab_grader") else OF_THE_GRADER
RAISED_AGAIN_SECONDS = 20  # more than what is left to do after a test has failed
# On a busy machine a page takes longer than Playwright's own 5 s.
expect.set_options(timeout=ACTION_SECONDS * 1000)


@pytest.fixture(autouse=True)
def _a_timeout_is_raised_again() -> None:
    """End a test that hangs.

    What pytest-timeout raises in a callback of Playwright's event loop is only logged there, and its alarm
    comes once: the test would go on for good.
    """
    left, _ = signal.getitimer(signal.ITIMER_REAL)
    if left:
        signal.setitimer(signal.ITIMER_REAL, left, RAISED_AGAIN_SECONDS)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A JupyterLab on a copy of the lab: nothing that a test does reaches the repository."""
    folder = tmp_path_factory.mktemp("lab")
    for name in ("labs", "solutions"):
        if (REPOSITORY / name).exists():
            shutil.copytree(
                REPOSITORY / name,
                folder / name,
                ignore=shutil.ignore_patterns("predictions.json*", ".ipynb_checkpoints", "__pycache__"),
            )
    with jupyterlab(folder) as running:
        yield running


@pytest.fixture(scope="package")
def browser() -> Iterator[BrowserContext]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="package")
def page(server: Server, browser: BrowserContext) -> Iterator[Page]:
    """JupyterLab in a window: a test opens its notebook there, and closes it."""
    with window(browser, server) as loaded:
        yield loaded


@pytest.fixture
def opened(
    server: Server, page: Page, request: pytest.FixtureRequest
) -> Iterator[Callable[..., OpenNotebook]]:
    """Open a notebook: one that stands in the server's folder, or one made of the cells that are given.

    A notebook that is made has a folder of its own, and so its own predictions.json.
    """
    with ExitStack() as stack:

        def open_one(*cells: str, path: Path | None = None) -> OpenNotebook:
            if path is None:
                path = write_notebook(server.folder / request.node.name / "notebook.ipynb", *cells)
            return stack.enter_context(open_notebook(page, server, path))

        yield open_one
