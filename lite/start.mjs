// Stands in the site as pyodide.mjs, which the kernel imports; Pyodide's own module is core.mjs beside it.
//
// What a notebook needs is imported while Python starts. Later, when the kernel has made the notebook's folder
// the working directory, Python asks the page for that folder at each import: 115 messages, half a second.

import { loadPyodide as load } from "./core.mjs";

export * from "./core.mjs";

const MODULES = ["pyodide_kernel", "piplite.piplite", "starvelab.widgets", "starvelab.show"];

export async function loadPyodide(options) {
  const python = await load(options);
  const addresses = notFetched(python, options.packages);
  if (Object.keys(addresses).length) {
    const answer = await fetch(new URL("missing.py", import.meta.url));
    python.runPython(`${await answer.text()}\nexplain(addresses)`, { globals: python.toPy({ addresses }) });
  }
  for (const module of MODULES) {
    try {
      python.runPython(`import ${module}`);
    } catch (error) {
      // A package could not be fetched. The cell that needs it says so.
      console.warn(`${module} is not imported yet: ${error.message}`);
    }
  }
  return python;
}

// The address of each module that was to be loaded at the start and is not there.
function notFetched(python, names) {
  const seen = new Set(names), addresses = {};
  for (const name of seen) { // what is added on the way is visited as well
    const one = python.lockfile.packages[name];
    if (!one) continue;
    for (const other of one.depends) seen.add(other);
    if (name in python.loadedPackages || one.name in python.loadedPackages) continue;
    for (const module of one.imports) addresses[module] = new URL(one.file_name, import.meta.url).href;
  }
  return addresses;
}
