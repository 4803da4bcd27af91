// node lite/compile.mjs FOLDER: adds byte code to the pure wheels and to the standard library in Pyodide's folder.
//
// Else a browser compiles each module from its source whenever a page is opened. Only Pyodide's own Python writes
// byte code that Pyodide reads, so it runs here, in node. Sources stay, for tracebacks and `inspect`.

import path from "node:path";
import { pathToFileURL } from "node:url";

const folder = path.resolve(process.argv[2]);
const { loadPyodide } = await import(pathToFileURL(path.join(folder, "pyodide.mjs")));
const python = await loadPyodide();
python.FS.mkdir("/site");
python.FS.mount(python.FS.filesystems.NODEFS, { root: folder }, "/site");
python.runPython(`
import sys
import zipfile
from importlib._bootstrap_external import _code_to_hash_pyc
from importlib.util import cache_from_source, source_hash
from pathlib import Path

major, minor = sys.version_info[:2]
PACKAGES = f"/lib/python{major}.{minor}/site-packages"
# Large, and hardly any of it is imported: byte code would only take longer to fetch.
LEFT_OUT = ("fontTools/", "jedi/", "pytz/", "pygments/lexers/", "pygments/styles/")
LIBRARY = f"/lib/python{major}{minor}.zip"


def add_byte_code(archive, place, name_of):
    with zipfile.ZipFile(archive) as old:
        files = {name: old.read(name) for name in old.namelist()}
    for name, source in list(files.items()):
        if name.endswith(".py") and not name.startswith(LEFT_OUT):
            try:
                code = compile(source, f"{place}/{name}", "exec", dont_inherit=True)
            except (SyntaxError, ValueError):  # templates, and tests of what does not compile
                continue
            # Never compared with its source, which nobody changes there.
            files[name_of(name)] = bytes(_code_to_hash_pyc(code, source_hash(source), False))
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in files.items():
            new.writestr(name, content)


for wheel in sorted(Path("/site").glob("*-none-any.whl")):
    add_byte_code(wheel, PACKAGES, cache_from_source)
add_byte_code(Path("/site/python_stdlib.zip"), LIBRARY, lambda name: name + "c")
`);
process.exit(0);
