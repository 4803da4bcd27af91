"""Byte code takes the place of the sources in pure wheels and in the standard library.

Else a browser compiles each module from its source whenever a page is opened. Only Pyodide's own Python
writes byte code that Pyodide reads, so `compile.mjs` runs this in node, with Pyodide's folder at `FOLDER`.
Files that no page reads are left out on the way.
"""

from __future__ import annotations

import py_compile
import sys
import zipfile
from fnmatch import fnmatchcase
from importlib.util import cache_from_source
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path("/site")
LIBRARY = "python_stdlib.zip"
# For tracebacks, and for whoever reads them. Of all packages this would be megabytes more to fetch.
BOTH = ("starvelab/", "starvelab_doctor/")
# Hardly ever imported in a browser, and byte code takes twice the room of a source.
ONLY_SOURCES = ("pygments/styles/",)
LEFT_OUT = (
    # Parts of JupyterLab and of its server, which the site has elsewhere.
    "*.data/data/*",
    "anywidget/labextension/*",
    # The notebooks, which the site has as files.
    "starvelab/lab_files/*",
    # Tests, and what is for other programs than a notebook.
    "pint/testsuite/*",
    "IPython/sphinxext/*",
    "IPython/testing/plugin/*",
    "prompt_toolkit/contrib/*",
    # No notebook asks for a time zone by its name.
    "dateutil/zoneinfo/*.tar.gz",
    # What completion knows of Django, of Python 2, and of packages that are not there.
    "jedi/third_party/django-stubs/*",
    "jedi/third_party/typeshed/stdlib/2/*",
    "jedi/third_party/typeshed/third_party/2*",
)
# Of 250 files on as many languages, those that IPython imports to color an error.
LEXERS = "pygments/lexers/"
KEPT_LEXERS = (
    "__init__", "_css_builtins", "_lilypond_builtins", "_mapping", "_scheme_builtins", "css", "data", "html",
    "javascript", "jvm", "lilypond", "lisp", "markup", "perl", "python", "ruby", "shell",
)  # fmt: skip


def compile_modules(archive: Path, place: str) -> None:
    """Compile the modules in a .zip file.

    Parameters
    ----------
    archive : Path
        A wheel or another .zip file. It is written anew.
    place : str
        Where its files will stand, as tracebacks name it.
    """
    with zipfile.ZipFile(archive) as old:
        files = {name: old.read(name) for name in old.namelist() if not is_left_out(name)}
    for name, source in list(files.items()):
        if not name.endswith(".py") or name.startswith(ONLY_SOURCES):
            continue
        try:
            compiled = byte_code(source, f"{place}/{name}")
        except py_compile.PyCompileError:  # templates, and tests of what does not compile
            continue
        if name.startswith(BOTH):
            files[cache_from_source(name)] = compiled
        else:
            del files[name]
            files[name + "c"] = compiled
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for name, content in files.items():
            new.writestr(name, content)


def is_left_out(name: str) -> bool:
    """Whether no page reads this file of a wheel."""
    if name.startswith(LEXERS):
        return name.removeprefix(LEXERS).removesuffix(".py") not in KEPT_LEXERS
    return any(fnmatchcase(name, pattern) for pattern in LEFT_OUT)


def byte_code(source: bytes, name: str) -> bytes:
    """The byte code of a module. It is never compared with its source, which nobody changes in a browser."""
    with TemporaryDirectory() as folder:
        path, target = Path(folder, "source.py"), Path(folder, "target.pyc")
        path.write_bytes(source)
        never = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(path), str(target), name, doraise=True, invalidation_mode=never)
        return target.read_bytes()


if __name__ == "__main__":
    major, minor = sys.version_info[:2]
    for wheel in sorted(FOLDER.glob("*-none-any.whl")):
        compile_modules(wheel, f"/lib/python{major}.{minor}/site-packages")
    compile_modules(FOLDER / LIBRARY, f"/lib/python{major}{minor}.zip")
