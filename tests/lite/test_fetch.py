"""Compiled wheels are fetched and compared with their sums, and the page says what is missing."""

import hashlib
import json
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

from tests.file_server import serve
from tests.rejected import message

KIND = "cp314-cp314-pyemscripten_2026_0_wasm32"


def wheel(folder: Path, name: str, *requires: str) -> dict:
    """A small compiled wheel, and its entry in Pyodide's lock file."""
    path = folder / f"{name}-1.0-{KIND}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/__init__.py", f"NAME = {name!r}\n")
        needs = "".join(f"Requires-Dist: {other}\n" for other in requires)
        archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Name: {name}\nVersion: 1.0\n{needs}")
    return {
        "name": name, "version": "1.0", "file_name": path.name, "imports": [name], "depends": list(requires),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }  # fmt: skip


@pytest.fixture
def stored(tmp_path):
    folder = tmp_path / "server"
    folder.mkdir()
    return folder


@pytest.fixture
def server(stored):
    """The address of a server that has what is in a folder."""
    with serve(stored) as address:
        yield address


@pytest.fixture
def fetching(module_of_lite):
    return module_of_lite("fetch")


def test_every_compiled_wheel_that_the_lab_needs_is_fetched_and_then_stands_beside_the_page(
    module_of_lite, server, stored, tmp_path
):
    entries = [wheel(stored, "numpy"), wheel(stored, "contourpy", "numpy"), wheel(stored, "pandas", "numpy")]
    lab = {"name": "starvelab", "version": "1", "depends": ["contourpy"], "file_name": "s-1-py3-none-any.whl"}
    page, kept = tmp_path / "page", tmp_path / "kept"
    page.mkdir()
    known = {"info": {"python": "3.14.2"}, "packages": {each["name"]: each for each in (*entries, lab)}}
    (page / "pyodide-lock.json").write_text(json.dumps(known), encoding="utf-8")
    lock = module_of_lite("lock").Lock(page, server)
    lock.local.add("starvelab")
    assert {package["name"] for package in lock.compiled(["starvelab"])} == {"numpy", "contourpy"}
    module_of_lite("build").add_compiled(lock, ["starvelab"], kept)
    assert lock.compiled(["starvelab"]) == []
    assert sorted(path.name for path in kept.iterdir()) == [
        f"contourpy-1.0-{KIND}.whl",
        f"numpy-1.0-{KIND}.whl",
    ]
    lock.write()
    written = json.loads((page / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"]
    for name in ("numpy", "contourpy"):
        beside = page / f"{name}-1.0-{KIND}.whl"
        assert written[name]["file_name"] == beside.name
        assert written[name]["sha256"] == hashlib.sha256(beside.read_bytes()).hexdigest()
    assert written["pandas"]["file_name"] == f"{server}pandas-1.0-{KIND}.whl", "no notebook asks for it"


def test_a_wheel_that_is_there_is_not_fetched_again(fetching, stored, tmp_path):
    package = wheel(stored, "numpy")
    assert fetching.fetch(package, "http://nowhere.invalid/", stored) == stored / package["file_name"]


def test_a_wheel_with_another_sum_is_not_kept(fetching, server, stored, tmp_path):
    package = wheel(stored, "numpy") | {"sha256": 64 * "0"}
    found = hashlib.sha256((stored / package["file_name"]).read_bytes()).hexdigest()
    address = server + package["file_name"]
    kept = tmp_path / "kept"
    for folder, origin in ((kept, address), (stored, str(stored / package["file_name"]))):
        assert message(fetching.FetchError, fetching.fetch, package, server, folder) == (
            f"A wheel must have the sum that Pyodide's lock file gives, {64 * '0'}, and {origin} has "
            f"{found}. Do not use that file: delete it where it was stored, and ask again later."
        )
    assert not kept.exists()


def test_a_wheel_that_the_server_does_not_give_is_named_with_its_address(fetching, server, tmp_path):
    package = {"file_name": "numpy.whl", "sha256": ""}
    assert message(fetching.FetchError, fetching.fetch, package, server, tmp_path) == (
        f"The lab in a browser needs {server}numpy.whl, and it could not be fetched: "
        f"HTTP Error 404: File not found. Check the network, or put the file into {tmp_path}."
    )


# ---- In the page -------------------------------------------------------------------------------------------


def test_a_module_that_was_not_fetched_says_so_in_one_sentence(module_of_lite, monkeypatch):
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    module_of_lite("missing").explain({"not_fetched": "https://example.org/not_fetched-1.0.whl"})
    with pytest.raises(ModuleNotFoundError) as caught:
        import_module("not_fetched")
    assert caught.value.name == "not_fetched"
    assert caught.value._render_traceback_() == [str(caught.value)] == [
        "The lab needs not_fetched, and this page could not fetch it from "
        "https://example.org/not_fetched-1.0.whl: the server may be blocked or the file missing, so allow "
        "that server or use another network, and then reload the page."
    ]  # fmt: skip
    with pytest.raises(ModuleNotFoundError, match="No module named 'neither_known'"):
        import_module("neither_known")
