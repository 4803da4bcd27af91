// A browser keeps the notebook that a learner has changed, and shows it ever after. Where the site has newer
// exercises, this says so on the page, and opens the new notebook beside the learner's own.

const STORE = "files"; // JupyterLite's own, in the database that it names after the address of the site

// The exercises of `latest` that `mine` does not have as they are: nbgrader leaves a sum in each of their cells.
export function changed(mine, latest) {
  const sums = (notebook) => notebook.cells.map((cell) => cell.metadata?.nbgrader).filter((cell) => cell?.checksum);
  const had = new Map(sums(mine).map((cell) => [cell.grade_id, cell.checksum]));
  return sums(latest).filter((cell) => had.get(cell.grade_id) !== cell.checksum).map((cell) => cell.grade_id);
}

// Where the new notebook goes: a name that is free, or under which these exercises stand already.
export async function place(path, latest, saved) {
  for (let number = 1; ; number += 1) {
    const other = path.replace(/\.ipynb$/, ` (new${number > 1 ? ` ${number}` : ""}).ipynb`);
    const there = await saved(other);
    if (!there || !changed(there.content, latest).length) return { other, there };
  }
}

const finished = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

async function opened(base) {
  const name = `JupyterLite Storage - ${base}`;
  const known = await indexedDB.databases();
  if (!known.some((database) => database.name === name)) return null; // nothing was ever saved
  const database = await finished(indexedDB.open(name));
  return database.objectStoreNames.contains(STORE) ? database : null;
}

async function look() {
  const path = new URLSearchParams(location.search).get("path");
  const base = new URL("../", location.href);
  const database = path?.endsWith(".ipynb") && (await opened(base.pathname));
  if (!database) return;
  const files = (mode) => database.transaction(STORE, mode).objectStore(STORE);
  const saved = (name) => finished(files("readonly").get(name));
  const mine = await saved(path);
  const answer = mine && (await fetch(new URL(`files/${path}`, base), { cache: "no-cache" }));
  if (!answer?.ok) return;
  const latest = await answer.json();
  if (!changed(mine.content, latest).length) return;
  const { other, there } = await place(path, latest, saved);
  notice(async () => {
    const now = new Date().toISOString();
    const entry = { ...mine, path: other, name: other.split("/").pop(), content: latest, created: now, last_modified: now };
    if (!there) await finished(files("readwrite").put(entry, other));
    location.search = `?path=${encodeURIComponent(other)}`;
  });
}

function notice(open) {
  const bar = document.createElement("div");
  bar.setAttribute("role", "status");
  bar.style.cssText = "position:fixed;bottom:0;left:0;right:0;z-index:1000;padding:8px 12px;display:flex;flex-wrap:wrap;gap:8px;"
    + "justify-content:center;font:14px sans-serif;color:#000;background:#ffe9a8;border-top:1px solid #8a6d00";
  bar.append("Exercises of this notebook have changed since you began it. This is your own copy, which stays.");
  for (const [label, act] of [["Open the new one beside it", open], ["Close", () => bar.remove()]]) {
    const button = document.createElement("button");
    button.textContent = label;
    button.onclick = act;
    bar.append(button);
  }
  document.body.append(bar);
}

if (globalThis.document) look();
