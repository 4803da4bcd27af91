"""What stands before Pyodide in the lab of a browser.

Modules are imported while Python starts, and a wheel that could not be fetched is explained.
"""

from playwright.sync_api import Route

from tests.assignments import REPOSITORY

ADDRESS = "http://lite.example/"
# In Pyodide's place: says what it was asked for, and lacks a package that starvelab needs.
CORE = """
export const version = "0";
export async function loadPyodide(options) {
  const asked = [], given = [];
  const runPython = (code, more) => {
    asked.push(code);
    if (more) given.push(more.globals);
    if (code.includes("starvelab")) throw new Error("No module named numpy");
  };
  const other = "https://other.example/";
  const one = (name, module, file_name, ...depends) => ({ name, imports: [module], file_name, depends });
  const packages = {
    starvelab: one("starvelab", "starvelab", "starvelab.whl", "numpy", "pint"),
    numpy: one("numpy", "numpy", other + "numpy.whl"),
    pint: one("pint", "pint", "pint.whl", "pillow", "numpy"),
    pillow: one("Pillow", "PIL", other + "pillow.whl"),
    pandas: one("pandas", "pandas", other + "pandas.whl", "numpy"), // nobody has asked for it
  };
  const loadedPackages = { starvelab: "default", [options.loaded]: "default" };
  return { options, asked, given, runPython, loadedPackages, lockfile: { packages }, toPy: (value) => value };
}
"""
START = """async () => {
  const warned = [];
  console.warn = (text) => warned.push(text);
  const { loadPyodide, version } = await import("./pyodide.mjs");
  const { options, asked, given } = await loadPyodide({ loaded: "Pillow", packages: ["starvelab"] });
  return { version, options, asked, given, warned };
}"""


def test_modules_are_imported_while_python_starts_and_what_was_not_fetched_is_explained_and_stops_nothing(
    browser,
):
    files = {
        "index.html": "<!doctype html>",
        "pyodide.mjs": (REPOSITORY / "lite/start.mjs").read_text(encoding="utf-8"),
        "core.mjs": CORE,
        "missing.py": "the script",
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
    assert seen["options"]["packages"] == ["starvelab"]
    assert seen["version"] == "0"  # all else of Pyodide's module is there as well
    assert seen["asked"][:2] == ["the script\nexplain(addresses)", "import pyodide_kernel"]
    assert seen["given"] == [
        {"addresses": {"numpy": "https://other.example/numpy.whl", "pint": f"{ADDRESS}pint.whl"}}
    ]
    assert seen["asked"][-1].startswith("import starvelab")
    assert seen["warned"][-1] == "starvelab.show is not imported yet: No module named numpy"
