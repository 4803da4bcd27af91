"""What stands before Pyodide in the lab of a browser: modules are imported while Python starts."""

from __future__ import annotations

from playwright.sync_api import Route

from tests.assignments import REPOSITORY

ADDRESS = "http://lite.example/"
# In Pyodide's place: says what it was asked for, and lacks a package that starvelab needs.
CORE = """
export const version = "0";
export async function loadPyodide(options) {
  const asked = [];
  const runPython = (code) => {
    asked.push(code);
    if (code.includes("starvelab")) throw new Error("No module named numpy");
  };
  return { options, asked, runPython };
}
"""
START = """async () => {
  const warned = [];
  console.warn = (text) => warned.push(text);
  const { loadPyodide, version } = await import("./pyodide.mjs");
  const { options, asked } = await loadPyodide({ indexURL: "here/" });
  return { version, options, asked, warned };
}"""


def test_modules_are_imported_while_python_starts_and_one_that_is_missing_stops_nothing(browser):
    files = {
        "index.html": "<!doctype html>",
        "pyodide.mjs": (REPOSITORY / "lite/start.mjs").read_text(encoding="utf-8"),
        "core.mjs": CORE,
    }

    def serve(route: Route) -> None:
        name = route.request.url.removeprefix(ADDRESS)
        kind = "text/javascript" if name.endswith(".mjs") else "text/html"
        route.fulfill(body=files[name], content_type=kind)

    context = browser.browser.new_context()
    try:
        context.route(f"{ADDRESS}**", serve)
        page = context.new_page()
        page.goto(f"{ADDRESS}index.html")
        seen = page.evaluate(START)
    finally:
        context.close()
    assert seen["options"] == {"indexURL": "here/"}
    assert seen["version"] == "0"  # all else of Pyodide's module is there as well
    assert seen["asked"][0] == "import pyodide_kernel"
    assert seen["asked"][-1].startswith("import starvelab")
    assert seen["warned"][-1] == "starvelab.show is not imported yet: No module named numpy"
