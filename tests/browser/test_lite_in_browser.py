"""The lab in a browser that has installed nothing: the built site is opened, and its first cells run.

A browser takes what is compiled from Pyodide's own server, and tests reach no network. So this runs only
where the variable STARVELAB_PYODIDE_WHEELS names a folder with numpy's wheel for Pyodide. `make lite` must
have made docs/_build/html/lite, with the same variable.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Route, expect

from tests.assignments import REPOSITORY

SITE = REPOSITORY / "docs/_build/html/lite"
FIRST = "notebooks/index.html?path=starving-the-gpu/01_compute_baseline.ipynb"
PHONE = {"width": 390, "height": 844}  # pixels
# Python starts in the page, and numpy and starvelab are loaded: on a busy machine this takes a while.
START_SECONDS = 180

WHEELS = Path(os.environ.get("STARVELAB_PYODIDE_WHEELS", "."))
pytestmark = pytest.mark.skipif(
    not list(WHEELS.glob("numpy-*wasm32.whl")),
    reason="untested: that the site's Python imports numpy and starvelab and runs the first notebook. "
    "Name a folder with numpy's wheel for Pyodide in STARVELAB_PYODIDE_WHEELS, and run make lite "
    "and this test again",
)


class Quiet(SimpleHTTPRequestHandler):
    """A file server that writes no log."""

    def log_message(self, *arguments: object) -> None:
        """Write nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    """Where a plain file server has the site."""
    assert SITE.is_dir(), "There is no docs/_build/html/lite. Run make lite first."
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def test_the_first_cells_of_the_first_notebook_run_in_a_page_of_a_phones_size(browser, address):
    refused: list[str] = []

    def only_the_site(route: Route) -> None:
        url = route.request.url
        if url.startswith((address, "blob:", "data:")):
            route.continue_()
        else:
            refused.append(url)
            route.abort()

    # A context of its own: nothing that a browser keeps of an earlier visit.
    context: BrowserContext = browser.browser.new_context(viewport=PHONE)
    try:
        context.route("**/*", only_the_site)
        page = context.new_page()
        page.goto(address + FIRST)
        cells = page.locator(".jp-Notebook .jp-CodeCell")
        expect(cells.first).to_be_visible()
        assert page.locator(".jp-Notebook").bounding_box()["width"] == PHONE["width"]
        # The set-up cell, and the picture of the pipeline. A page that still starts drops the first keys.
        for cell in (cells.first, cells.nth(1)):
            while cell.locator(".jp-InputPrompt").inner_text().strip() == "[ ]:":
                cell.locator(".cm-content").click()
                page.keyboard.press("Shift+Enter")
                page.wait_for_timeout(2000)
        # The set-up cell shows nothing but what went wrong.
        outputs = page.locator(".jp-Notebook .jp-OutputArea-output")
        expect(outputs.first).to_be_visible(timeout=START_SECONDS * 1000)
        assert cells.first.locator(".jp-OutputArea-output").all_inner_texts() == []
        assert cells.nth(1).locator(".jp-OutputArea-output").locator("figure, img, svg, table").count() > 0
        # Where matplotlib is not in the folder it is asked for in vain, and the lab runs without it.
        assert not [url for url in refused if "/numpy-" in url]
    finally:
        context.close()
