"""The lock file of the lab in a browser: what is beside the page, what is downloaded, what is elsewhere."""

import hashlib
import json
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

SERVER = "https://example.org/full/"


@pytest.fixture
def lock(module_of_lite) -> ModuleType:
    return module_of_lite("lock")


def entry(name, kind, *depends):
    return {"name": name, "version": "1.0", "file_name": f"{name}-1.0-{kind}.whl", "depends": list(depends)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A lock file of Pyodide, and beside it the wheel of a package that it does not know."""
    packages = [
        entry("numpy", "cp314-cp314-wasm32"),
        entry("six", "py3-none-any"),
        entry("dateutil", "py3-none-any", "six"),
        entry("unused", "py3-none-any"),
    ]
    known = {"info": {"python": "3.14.2"}, "packages": {each["name"]: each for each in packages}}
    (tmp_path / "pyodide-lock.json").write_text(json.dumps(known), encoding="utf-8")
    metadata = """Name: Our.Lab
Version: 0.1.0
Requires-Dist: numpy>=2
Requires-Dist: dateutil
Requires-Dist: tabulate
Requires-Dist: psutil; sys_platform != 'emscripten'
Requires-Dist: tzdata; sys_platform == 'emscripten' and python_version >= '3.14'
Requires-Dist: jupyterlab; extra == 'lab'
Requires-Dist: ipywidgets>=8; extra == 'notebooks'
"""
    with zipfile.ZipFile(tmp_path / "our_lab-0.1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("our_lab/__init__.py", "")
        wheel.writestr("our_lab-0.1.0.dist-info/METADATA", metadata)
    return tmp_path


def test_a_wheel_becomes_an_entry_with_what_it_needs_in_a_browser(lock, folder):
    known = lock.Lock(folder, SERVER)
    known.add_wheels()
    wheel = folder / "our_lab-0.1.0-py3-none-any.whl"
    found = known.packages["our-lab"]
    assert found["depends"] == ["dateutil", "numpy", "tabulate", "tzdata"]
    assert (found["file_name"], found["imports"], found["version"]) == (wheel.name, ["our_lab"], "0.1.0")
    assert found["sha256"] == hashlib.sha256(wheel.read_bytes()).hexdigest()
    # Pure wheels are asked for in our version, or in that of Pyodide.
    wanted = known.missing({"our-lab"}, pins={"tabulate": "0.10.0"})
    assert wanted == {"tabulate": "0.10.0", "tzdata": "", "dateutil": "1.0", "six": "1.0"}
    known = lock.Lock(folder, SERVER, {"our-lab": "notebooks"})
    known.add_wheels()
    assert known.packages["our-lab"]["depends"] == ["dateutil", "ipywidgets", "numpy", "tabulate", "tzdata"]


def test_what_is_not_beside_the_page_is_on_pyodides_server(lock, folder):
    known = lock.Lock(folder, SERVER)
    known.add_wheels()
    known.write()
    written = json.loads((folder / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"]
    assert written["numpy"]["file_name"] == f"{SERVER}numpy-1.0-cp314-cp314-wasm32.whl"
    assert written["our-lab"]["file_name"] == "our_lab-0.1.0-py3-none-any.whl"
    assert written["our-lab"]["depends"] == ["dateutil", "numpy"]  # nobody has the others


def test_what_a_package_asks_for_without_need_is_not_fetched(lock, folder):
    known = lock.Lock(folder, SERVER)
    needs = ("numpy", "fonttools", "pytz")
    known.packages["matplotlib"] = entry("matplotlib", "cp314-cp314-wasm32", *needs) | {"version": "3.10.8"}
    known.add_wheels()
    assert known.packages["matplotlib"]["depends"] == ["numpy"]
    # The next version imports fontTools.
    known.packages["matplotlib"] = entry("matplotlib", "cp314-cp314-wasm32", *needs) | {"version": "3.11.0"}
    known.add_wheels()
    assert known.packages["matplotlib"]["depends"] == ["numpy", "fonttools"]
