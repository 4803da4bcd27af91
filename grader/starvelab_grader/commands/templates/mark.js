"use strict";
// The page on which a person marks. What it shows comes from the server, which has cleaned it; what is typed is
// saved when one goes on, whichever way: by Enter, an arrow, the list, another essay, or by closing the page.

const part = (id) => document.getElementById(id);
const [points, comment, names, filter] = ["points", "comment", "names", "filter"].map(part);
const RETRY = 3000, PAUSE = 1000; // ms: until a failed save is tried again, and after which a comment is saved

// The token stands behind the #, and leaves the address so that nobody reads it there.
const given = location.hash.slice(1);
if (given) {
  sessionStorage.setItem("token", given);
  history.replaceState(null, "", location.pathname);
}
const token = sessionStorage.getItem("token") || "";

let essays = [], essay = 0; // all, and the place of the one that is shown
let answers = [], at = 0; // all to that essay, and the place of the one that is shown
let version = ""; // of the answer that is shown
let saved = { points: "", comment: "" }; // what the gradebook holds of it
let failed = false, saving = Promise.resolve(true), retry = 0, pause = 0, shown = 0;

const asked = (path, more) => fetch(path, { ...more, headers: { "X-Starvelab-Token": token } });

async function get(path) {
  const response = await asked(path);
  const body = await response.json();
  if (!response.ok) throw new Error(body.message);
  return body;
}

function say(text, kind = "") {
  part("status").textContent = text;
  part("status").dataset.kind = kind;
}

// --- showing ----------------------------------------------------------------------------------------------

const text = (number) => (number === null ? "" : String(number));
const called = (one) =>
  `Answer ${one.number}` + (names.checked ? ` · ${one.name ? `${one.name} (${one.student})` : one.student}` : "");

function state(one) {
  if (one.waits) return one.points === null ? "not marked" : `to be marked again (${one.points} points)`;
  return one.blank ? `left as it was given out: ${one.by_test ?? 0} points` : `${one.points} points`;
}

function showEssays() {
  part("essays").replaceChildren(
    ...essays.map((one, number) => {
      const option = new Option(`${one.title} (${one.marked} of ${one.answers} marked)`, number);
      option.selected = number === essay;
      return option;
    }),
  );
  const one = essays[essay];
  part("progress").max = Math.max(1, one.answers);
  part("progress").value = one.marked;
  part("progress-text").textContent = `${one.marked} of ${one.answers} marked`;
}

const isListed = (one) => `${called(one)}: ${state(one)} ${one.comment}`.toLowerCase().includes(filter.value.toLowerCase());

function showList() {
  part("all").replaceChildren(
    ...answers.map((one, number) => {
      if (!isListed(one)) return "";
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `${called(one)}: ${state(one)}`;
      if (number === at) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => go(number));
      const item = document.createElement("li");
      item.append(button);
      return item;
    }),
  );
}

function showTitle() {
  const one = answers[at];
  part("answer-title").textContent = called(one);
  part("answer-state").textContent = `${at + 1} of ${answers.length} · ${state(one)}`;
}

async function openEssay(number) {
  essay = number;
  sessionStorage.setItem("essay", essays[essay].notebook + "/" + essays[essay].cell);
  answers = (await get(`api/answers?essay=${essay}`)).answers;
  const one = essays[essay];
  for (const name of ["question", "scheme", "solution"]) {
    part(name).innerHTML = one[name];
    part(name).parentElement.hidden = !one[name];
  }
  part("most").textContent = `of ${one.points}`;
  showEssays();
  if (answers.length) await openAnswer(0);
  else {
    part("answer-title").textContent = "Nobody has an answer to this essay";
    part("answer-state").textContent = part("answer").innerHTML = "";
    part("mark").hidden = true;
  }
}

async function openAnswer(number, message = "") {
  const one = answers[number], mine = ++shown;
  const reply = await get(`api/answer?essay=${essay}&student=${encodeURIComponent(one.student)}`);
  if (mine !== shown) return;
  at = number; // not before: what is typed meanwhile belongs to the answer that is still shown
  part("mark").hidden = false;
  version = reply.version;
  part("answer").innerHTML = reply.html;
  saved = { points: text(one.points), comment: one.comment };
  points.value = saved.points;
  comment.value = saved.comment;
  points.setAttribute("aria-invalid", "false");
  say(message && `${message} ${called(one)} is shown.`, "good");
  showTitle();
  showList();
  showRubric();
  window.scrollTo(0, 0);
  points.focus();
  points.select();
}

// --- the rubric: lines with points, of the scheme or of a comment. Those that are clicked stand in the comment.

const ITEM = /^- (-?\d+(?:\.\d+)?) points?: .+$/;
const itemsIn = (text) => text.split("\n").filter((line) => ITEM.test(line));

function showRubric() {
  const has = itemsIn(comment.value);
  const lines = new Set([...essays[essay].rubric, ...answers.flatMap((one) => itemsIn(one.comment)), ...has]);
  part("rubric").replaceChildren(
    ...[...lines].map((line) => {
      const item = document.createElement("li"), click = document.createElement("button");
      click.type = "button";
      click.textContent = line.slice(2);
      click.setAttribute("aria-pressed", String(has.includes(line)));
      click.addEventListener("click", () => toggle(line));
      item.append(click);
      return item;
    }),
  );
}

function toggle(line) {
  const lines = comment.value.split("\n"), known = essays[essay].rubric;
  if (!known.includes(line)) known.push(line); // so that it can be clicked again
  if (lines.includes(line)) lines.splice(lines.indexOf(line), 1);
  else lines.push(line);
  comment.value = lines.join("\n").trim();
  const worth = itemsIn(comment.value).map((one) => Number(ITEM.exec(one)[1])), most = essays[essay].points;
  // Lines that only take points off begin with all.
  const begin = worth.length && Math.max(...worth) < 0 ? most : 0;
  const sum = Number(worth.reduce((all, one) => all + one, begin).toFixed(6)); // 0.1 and 0.2 are 0.3
  points.value = String(Math.min(Math.max(sum, 0), most));
  showRubric();
  points.focus();
}

// --- saving -----------------------------------------------------------------------------------------------

// What was typed and is not in the gradebook. Enter also confirms points that wait to be given again.
function changes(confirmed = false) {
  const changed = {};
  const again = confirmed && answers[at].waits && points.value.trim();
  if (points.value.trim() !== saved.points || again) changed.points = points.value;
  if (comment.value !== saved.comment) changed.comment = comment.value;
  return changed;
}

const isChanged = () => Object.keys(changes()).length > 0;

// The server decides what points are; this only keeps a page open in which something wrong is typed.
function isWrong() {
  const number = Number(points.value.replace(",", "."));
  return !(number >= 0 && number <= essays[essay].points);
}

// One save after the other: each needs the version that the one before it made.
function save({ only, confirmed } = {}) {
  saving = saving.catch(() => false).then(() => saveNow(only, confirmed));
  return saving;
}

async function saveNow(only, confirmed) {
  clearTimeout(retry);
  clearTimeout(pause);
  const changed = changes(confirmed);
  if (only) for (const name of Object.keys(changed)) if (!only.includes(name)) delete changed[name];
  if (!Object.keys(changed).length) return true;
  const one = answers[at];
  const typed = { points: points.value.trim(), comment: comment.value };
  const body = JSON.stringify({ essay, student: one.student, version, ...changed });
  let response, reply;
  try {
    response = await asked("api/mark", { method: "PUT", body });
    reply = await response.json();
  } catch {
    failed = true;
    retry = setTimeout(save, RETRY);
    say("Not saved: `starvelab-grader mark` does not answer. Start it again and open the address that it prints. " +
      "What you typed stays here meanwhile.", "bad");
    return false;
  }
  failed = !response.ok;
  points.setAttribute("aria-invalid", String(response.status === 400));
  if (response.status === 503) retry = setTimeout(save, RETRY);
  if (response.status === 409) await showChanged(one);
  if (!response.ok) {
    say(`Not saved: ${reply.message}`, "bad");
    return false;
  }
  version = reply.version;
  Object.assign(one, reply.answer);
  if ("points" in changed) {
    saved.points = text(one.points);
    if (points.value.trim() === typed.points) points.value = saved.points;
  }
  if ("comment" in changed) saved.comment = typed.comment;
  const each = essays[essay];
  each.marked = answers.filter((other) => !other.waits && !other.blank).length;
  each.answers = answers.filter((other) => !other.blank).length;
  showEssays();
  showTitle();
  showList();
  say("points" in changed ? "Saved." : "Comment saved.", "good");
  return true;
}

// Somebody else has marked the answer: it is shown as it is now, and what was typed here stays.
async function showChanged(one) {
  const path = `api/answer?essay=${essay}&student=${encodeURIComponent(one.student)}`;
  const [reply, all] = await Promise.all([get(path), get(`api/answers?essay=${essay}`)]);
  version = reply.version;
  part("answer").innerHTML = reply.html;
  Object.assign(one, all.answers.find((other) => other.student === one.student));
  saved = { points: text(one.points), comment: one.comment };
  showTitle();
  showList();
}

// --- going on ---------------------------------------------------------------------------------------------

async function attempt(what) {
  try {
    await what();
  } catch (error) {
    say(error.message, "bad");
  }
}

const go = (number) =>
  attempt(async () => {
    if (number >= 0 && number < answers.length && (await save())) await openAnswer(number);
  });

// Between Enter and the next answer: points that are typed then belong to that one, and wait for its own Enter.
let goesOn = false, typedAhead = "";

async function goOn() {
  if (goesOn) return;
  goesOn = true;
  typedAhead = "";
  const before = answers[at];
  try {
    await saveAndGoOn();
  } finally {
    goesOn = false;
    if (typedAhead && answers[at] !== before) points.value = typedAhead;
  }
}

function typeAhead(event) {
  if (/^[\d.,]$/.test(event.key)) typedAhead += event.key;
  else if (event.key === "Backspace") typedAhead = typedAhead.slice(0, -1);
  else if (event.key !== "Enter") return;
  event.preventDefault();
}

async function saveAndGoOn() {
  const saves = Object.keys(changes(true)).length > 0;
  if (!(await save({ confirmed: true }))) return;
  const message = saves ? `${called(answers[at])}: saved.` : "";
  const order = answers.map((_, step) => (at + 1 + step) % answers.length);
  const next = order.find((number) => answers[number].waits);
  if (next !== undefined) {
    await openAnswer(next, message);
    return;
  }
  const other = essays.findIndex((one) => one.marked < one.answers);
  say(other < 0 ? "All answers to all essays are marked." :
    `All answers to this essay are marked. The next one to mark is: ${essays[other].title}.`, "good");
}

part("mark").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(goOn);
});
part("previous").addEventListener("click", () => go(at - 1));
part("next").addEventListener("click", () => go(at + 1));
part("essays").addEventListener("change", (event) => {
  const number = Number(event.target.value);
  attempt(async () => {
    if (await save()) await openEssay(number);
    else showEssays();
  });
});
filter.addEventListener("input", showList);
comment.addEventListener("input", showRubric);
names.addEventListener("change", () => {
  showTitle();
  showList();
});
comment.addEventListener("input", () => {
  clearTimeout(pause);
  pause = setTimeout(() => save({ only: ["comment"] }), PAUSE);
});

const ACTIONS = {
  ArrowLeft: () => go(at - 1),
  ArrowRight: () => go(at + 1),
  ArrowUp: () => window.scrollBy(0, -80),
  ArrowDown: () => window.scrollBy(0, 80),
  c: () => comment.focus(),
  n: () => names.click(),
};

document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.altKey || event.metaKey) return;
  if (event.target === comment) {
    if (event.key === "Escape") points.focus();
    else if (event.key === "Enter" && event.ctrlKey) attempt(goOn);
    return;
  }
  if (event.ctrlKey || event.shiftKey || ![points, document.body].includes(event.target)) return;
  if (goesOn) typeAhead(event);
  if (event.defaultPrevented) return;
  const action = ACTIONS[event.key] || ACTIONS[event.key.toLowerCase()];
  if (action) {
    event.preventDefault();
    action();
  } else if (event.target !== points && /^[\d.,]$/.test(event.key)) {
    points.focus();
    points.select();
  }
});

window.addEventListener("beforeunload", (event) => {
  if (isChanged() && (failed || isWrong())) event.preventDefault();
});
window.addEventListener("pagehide", () => {
  const changed = changes();
  if (!isChanged()) return;
  const body = JSON.stringify({ essay, student: answers[at].student, version, ...changed });
  asked("api/mark", { method: "PUT", body, keepalive: true });
});

attempt(async () => {
  const reply = await get("api/essays");
  essays = reply.essays;
  names.checked ||= reply.show_names; // whoever was faster than this answer keeps what was clicked
  part("assignment").textContent = document.title = `Marking ${reply.assignment}`;
  const before = sessionStorage.getItem("essay"), asked = sessionStorage.getItem("at");
  sessionStorage.removeItem("at");
  const same = essays.findIndex((one) => `${one.notebook}/${one.cell}` === before);
  const waiting = essays.findIndex((one) => one.marked < one.answers);
  await openEssay(asked ? Number(asked) : same >= 0 ? same : Math.max(0, waiting));
});
