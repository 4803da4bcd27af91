"""The lab in a browser that has installed nothing: the built site is opened, and its first cells run.

Where the variable STARVELAB_PYODIDE_WHEELS is set, `make lite` puts what is compiled beside the page, from
that folder or from Pyodide's own server. It must have made docs/_build/html/lite so. Tests reach no network:
without the variable this does not run. The site is published only after it has (.github/workflows/docs.yml).
"""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Route, expect

from tests.assignments import REPOSITORY
from tests.file_server import serve

SITE = REPOSITORY / "docs/_build/html/lite"
FIRST = "notebooks/index.html?path=starving-the-gpu/01_compute_baseline.ipynb"
PHONE = {"width": 390, "height": 844}  # pixels
# Python starts in the page, and numpy and starvelab are loaded: on a busy machine this takes a while.
START_SECONDS = 180

pytestmark = pytest.mark.skipif(
    "STARVELAB_PYODIDE_WHEELS" not in os.environ,
    reason="untested: that the site's Python imports numpy and starvelab and runs the first notebook. "
    "Name a folder for Pyodide's compiled wheels in STARVELAB_PYODIDE_WHEELS, and run make lite "
    "and this test again",
)
COMPILED = {"numpy", "matplotlib", "pillow", "contourpy", "kiwisolver", "markupsafe"}


@pytest.fixture
def address() -> Iterator[str]:
    """Where a plain file server has the site."""
    assert SITE.is_dir(), "There is no docs/_build/html/lite. Run make lite first."
    with serve(SITE) as running:
        yield running


def test_the_first_cells_of_the_first_notebook_run_in_a_page_of_a_phones_size(browser, address):
    fetched: list[str] = []
    refused: list[str] = []

    def only_the_site(route: Route) -> None:
        url = route.request.url
        if url.startswith((address, "blob:", "data:")):
            fetched.append(url)
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
        names = [url.rpartition("/")[2] for url in fetched]
        assert {name.partition("-")[0] for name in names if name.endswith("wasm32.whl")} == COMPILED
        assert refused == []
    finally:
        context.close()
