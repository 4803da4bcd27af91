// Stands in the site as pyodide.mjs, which the kernel imports; Pyodide's own module is core.mjs beside it.
//
// What a notebook needs is imported while Python starts. Later, when the kernel has made the notebook's folder
// the working directory, Python asks the page for that folder at each import: 115 messages, half a second.

import { loadPyodide as load } from "./core.mjs";

export * from "./core.mjs";

const MODULES = ["pyodide_kernel", "piplite.piplite", "starvelab.widgets", "starvelab.show"];

export async function loadPyodide(options) {
  const python = await load(options);
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
