"""Builds the lab as a site that needs no server: JupyterLite, with Python compiled to WebAssembly (Pyodide).

    python lite/build.py [FOLDER]     into docs/_build/html/lite unless given

Pyodide's core comes from the npm registry and pure Python wheels from the package index; both are put beside
the page. Where STARVELAB_PYODIDE_WHEELS names a folder, so is what is compiled (numpy, matplotlib, Pillow):
what the folder lacks is fetched into it. Otherwise a browser asks Pyodide's own server for it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from fetch import FetchError, fetch
from lock import Lock

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent
SETTINGS = REPOSITORY / "binder/jupyter/labconfig/default_setting_overrides.json"
PINS, OTHER_PINS = (REPOSITORY / "binder" / name for name in ("requirements.txt", "constraints.txt"))
SERVER = "https://cdn.jsdelivr.net/pyodide/v{version}/full/"
# What is loaded when Python starts, all at once: what the kernel would load one after the other, and the lab.
AT_START = (
    *("ipython", "comm", "ipykernel", "jedi", "micropip", "piplite", "pyodide-kernel", "starvelab"),
    "starvelab-doctor",  # of one notebook
)
EXTRAS = {"starvelab": "notebooks"}
EXTENSIONS = ("@jupyter-widgets/jupyterlab-manager", "@jupyterlite/pyodide-kernel-extension", "anywidget")
KERNEL = f"{EXTENSIONS[1]}/static/pypi"
# Of the wheels that come with the kernel, those of ipywidgets 7 are not for us.
CORE = ("pyodide.", "pyodide-lock", "python_stdlib")
NOT_OURS = "widgetsnbextension-3*"
# One notebook takes the whole page, also on a phone; a link to the next one goes through the tree of files.
APPS = ("notebooks", "tree", "lab")
NEWER = '<script type="module" src="../newer.mjs"></script>'
FIRST = "notebooks/index.html?path=starving-the-gpu/01_compute_baseline.ipynb"


def main() -> None:
    """Build the site."""
    parser = argparse.ArgumentParser(description="Build the lab as a site that needs no server.")
    parser.add_argument("folder", nargs="?", type=Path, default=REPOSITORY / "docs/_build/html/lite")
    target = parser.parse_args().folder.resolve()
    shutil.rmtree(target, ignore_errors=True)
    with TemporaryDirectory() as folder:
        work = Path(folder)
        pyodide = work / "static/pyodide"
        _unpack_core(pyodide)
        try:
            lock_pyodide(pyodide)
        except FetchError as error:
            sys.exit(str(error))
        _build(work, target)
    print(f"The lab stands in {target}. Serve that folder, and open {FIRST}")


def lock_pyodide(pyodide: Path) -> None:
    """Put every pure wheel that the lab needs beside Pyodide's core, and write its lock file anew."""
    lock = Lock(pyodide, SERVER.format(version=_kernel_constant("PYODIDE_VERSION")), EXTRAS)
    _build_wheels(pyodide)
    for wheel in sorted(_labextension(KERNEL).glob("*.whl")):
        if not wheel.match(NOT_OURS):
            shutil.copy(wheel, pyodide)
    lock.add_wheels()
    _add_pure(lock, pyodide)
    if given := os.environ.get("STARVELAB_PYODIDE_WHEELS"):
        add_compiled(lock, AT_START, Path(given))
        _add_pure(lock, pyodide)
    subprocess.run(["node", HERE / "compile.mjs", pyodide], check=True)
    lock.add_wheels()
    lock.write()
    (pyodide / "pyodide.mjs").rename(pyodide / "core.mjs")
    shutil.copy(HERE / "start.mjs", pyodide / "pyodide.mjs")
    shutil.copy(HERE / "missing.py", pyodide)


def add_compiled(lock: Lock, roots: Iterable[str], folder: Path) -> None:
    """Put every compiled wheel that the roots need beside the page, and fetch what the folder lacks."""
    for package in lock.compiled(roots):
        shutil.copy(fetch(package, lock.server, folder), lock.path.parent)
    lock.add_wheels()


def _add_pure(lock: Lock, pyodide: Path) -> None:
    # The lab's own versions, then Pyodide's, then those of this environment. Each download may ask for more.
    ours, others = (read_pins(path.read_text(encoding="utf-8")) for path in (PINS, OTHER_PINS))
    while wanted := lock.missing(AT_START, pins=ours):
        _download({name: version or others[name] for name, version in wanted.items()}, pyodide)
        lock.add_wheels()


def page_config() -> dict[str, object]:
    """What JupyterLite is told: packages come by the lock file, and none from the index."""
    kernel = {"disablePyPIFallback": True, "loadPyodideOptions": {"packages": list(AT_START)}}
    settings = {f"{EXTENSIONS[1]}:kernel": kernel}
    return {
        "jupyter-lite-schema-version": 0,
        "jupyter-config-data": {"appName": "starvelab", "litePluginSettings": settings},
    }


def read_pins(text: str) -> dict[str, str]:
    """The exact versions in a requirements file, by the name of the package."""
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)$", text, flags=re.MULTILINE))


def _kernel_constant(name: str) -> str:
    from jupyterlite_pyodide_kernel import constants

    return str(getattr(constants, name))


def _unpack_core(pyodide: Path) -> None:
    """Pyodide's core in the version that the kernel was made for, from the npm registry."""
    pyodide.mkdir(parents=True)
    version = _kernel_constant("PYODIDE_VERSION")
    done = subprocess.run(
        ["npm", "pack", "--silent", f"pyodide@{version}"], cwd=pyodide, check=True, stdout=subprocess.PIPE
    )
    archive = pyodide / done.stdout.decode().strip()
    with tarfile.open(archive) as packed:
        for member in packed:
            name = Path(member.name).name
            if name.startswith(CORE) and not name.endswith((".map", ".ts")):
                (pyodide / name).write_bytes(packed.extractfile(member).read())
    archive.unlink()


def _build_wheels(folder: Path) -> None:
    for house in (REPOSITORY, REPOSITORY / "doctor"):
        subprocess.run(
            [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, house],
            check=True, cwd=folder, stdout=subprocess.DEVNULL,
        )  # fmt: skip


def _download(wanted: dict[str, str], folder: Path) -> None:
    asked = [f"{name}=={version}" for name, version in sorted(wanted.items())]
    python = _kernel_constant("PYODIDE_PYTHON_VERSION")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"),
            *("--only-binary=:all:", "--implementation=py", "--abi=none", "--platform=any"),
            *(f"--python-version={python}", "--dest", folder, *asked),
        ],
        check=True,
    )  # fmt: skip


def _labextension(name: str) -> Path:
    return Path(sys.prefix, "share/jupyter/labextensions", name)


def _build(work: Path, target: Path) -> None:
    """Let JupyterLite build the site."""
    shutil.copy(SETTINGS, work / "overrides.json")
    (work / "jupyter-lite.json").write_text(json.dumps(page_config()), encoding="utf-8")
    options = {
        "output_dir": str(target),
        "contents": [str(REPOSITORY / "labs")],
        "apps": list(APPS),
        "no_sourcemaps": True,
        "no_libarchive": True,
        # Not all that this environment has: the tools of nbgrader ask for a server.
        "ignore_sys_prefix": ["federated_extensions"],
        "federated_extensions": [str(_labextension(name)) for name in EXTENSIONS],
    }
    config = json.dumps({"LiteBuildConfig": options})
    (work / "jupyter_lite_config.json").write_text(config, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "jupyterlite_core", "build"], check=True, cwd=work)
    shutil.copy(HERE / "newer.mjs", target)
    page = target / "notebooks/index.html"
    html = page.read_text(encoding="utf-8")
    page.write_text(html.replace("</body>", f"{NEWER}</body>"), encoding="utf-8")


if __name__ == "__main__":
    main()
