// node lite/compile.mjs FOLDER: runs byte_code.py in Pyodide's own Python, over the files in Pyodide's folder.

import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const folder = path.resolve(process.argv[2]);
const { loadPyodide } = await import(pathToFileURL(path.join(folder, "pyodide.mjs")));
const python = await loadPyodide();
python.FS.mkdir("/site");
python.FS.mount(python.FS.filesystems.NODEFS, { root: folder }, "/site");
python.runPython(readFileSync(new URL("byte_code.py", import.meta.url), "utf-8"));
process.exit(0);
