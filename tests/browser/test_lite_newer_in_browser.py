"""A page of the lab in a browser that has a learner's copy of a notebook, and a newer one on the site."""

import pytest
from playwright.sync_api import Page, Route, expect

from tests.assignments import REPOSITORY

ADDRESS = "http://lite.example/"
PATH = "tiny/01_tiny.ipynb"
# As JupyterLite keeps files: a database that is named after the address, and entries under their paths.
KEEP = """(files) => new Promise((done) => {
  const asked = indexedDB.open("JupyterLite Storage - /");
  asked.onupgradeneeded = () => asked.result.createObjectStore("files");
  asked.onsuccess = () => {
    const change = asked.result.transaction("files", "readwrite");
    for (const [path, content] of Object.entries(files))
      change.objectStore("files").put({ path, name: path.split("/").pop(), type: "notebook", content }, path);
    change.oncomplete = () => { asked.result.close(); done(); };
  };
})"""
READ = """(path) => new Promise((done) => {
  const asked = indexedDB.open("JupyterLite Storage - /");
  asked.onsuccess = () => {
    asked.result.transaction("files").objectStore("files").get(path).onsuccess = (event) => {
      asked.result.close(); done(event.target.result);
    };
  };
})"""


def notebook(checksum: str, source: str = "") -> dict:
    graded = {"nbgrader": {"grade_id": "double", "checksum": checksum}}
    text = {"cell_type": "markdown", "source": "", "metadata": {}}
    return {"cells": [text, {"cell_type": "code", "source": source, "metadata": graded}]}


@pytest.fixture
def page(browser):
    def serve(route: Route) -> None:
        name = route.request.url.removeprefix(ADDRESS).partition("?")[0]
        if name == f"files/{PATH}":
            route.fulfill(json=notebook("new"))
        elif name == "newer.mjs":
            route.fulfill(path=REPOSITORY / "lite" / name, content_type="text/javascript")
        elif name == "empty.html":
            route.fulfill(body="<!doctype html>", content_type="text/html")
        else:
            script = '<script type="module" src="../newer.mjs"></script>'
            route.fulfill(body=f"<!doctype html><body>{script}</body>", content_type="text/html")

    context = browser.browser.new_context()
    try:
        context.route(f"{ADDRESS}**", serve)
        yield context.new_page()
    finally:
        context.close()


def visit(page: Page, files: dict) -> None:
    page.goto(f"{ADDRESS}empty.html")
    if files:
        page.evaluate(KEEP, files)
    page.goto(f"{ADDRESS}notebooks/index.html?path={PATH}", wait_until="networkidle")


def test_newer_exercises_open_beside_the_learners_own_copy(page):
    mine = notebook("old", "def double(n): return 2 * n")
    visit(page, {PATH: mine})
    expect(page.get_by_role("status")).to_contain_text("Exercises of this notebook have changed since")
    page.get_by_role("button", name="Open the new one beside it").click()
    page.wait_for_url("**new**")
    beside = page.evaluate(READ, "tiny/01_tiny (new).ipynb")
    assert (beside["name"], beside["content"]) == ("01_tiny (new).ipynb", notebook("new"))
    assert page.evaluate(READ, PATH)["content"] == mine


@pytest.mark.parametrize(
    ("there", "name"), [("new", "01_tiny (new).ipynb"), ("older", "01_tiny (new 2).ipynb")]
)
def test_what_stands_beside_already_is_never_overwritten(page, there, name):
    answered = notebook(there, "return 7")
    visit(page, {PATH: notebook("old"), "tiny/01_tiny (new).ipynb": answered})
    page.get_by_role("button", name="Open the new one beside it").click()
    page.wait_for_url("**new**")
    assert page.evaluate("new URLSearchParams(location.search).get('path')") == f"tiny/{name}"
    assert page.evaluate(READ, "tiny/01_tiny (new).ipynb")["content"] == answered


@pytest.mark.parametrize("files", [{}, {PATH: notebook("new", "2 * n")}, {"other.ipynb": notebook("old")}])
def test_nothing_is_said_where_the_exercises_are_the_same_or_nothing_was_saved(page, files):
    visit(page, files)
    assert page.get_by_role("status").count() == 0
