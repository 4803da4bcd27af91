// A puzzle: what a GPU waits for is guessed before its picture moves, and its host is repaired in a few runs.
// The rule is that of the picture, and TABLES comes from the package: a test compares `answer` with it.

import { mount, solve } from "../moving.js";

const $ = (id) => document.getElementById(id);

// --- the rule, for what this page asks --------------------

// What a sample that memory does not serve takes of the drive; its worker waits for the latency.
const readTime = (size, { bandwidth, rate }) => Math.max(size / bandwidth, rate ? 1 / rate : 0);

// The numbers of the rule: a step that is launched by the host, workers on cores, and what each sample takes.
function ruleOf(scenario, { cores, memory, drive, decode }) {
  const decoder = scenario.decoders[decode], missed = 1 - scenario.cached[TABLES.values.memory.indexOf(memory)];
  const each = {
    storage: missed * readTime(scenario.size, TABLES.drives[drive]),
    link: decoder.sent / scenario.link,
    ...(decoder.decoder && { decoder: decoder.decoder }),
  };
  const work = [[0, scenario.sample]], launch = [scenario.launch, 0], { update } = scenario;
  return {
    stages: [
      { name: "model", resource: "accelerator", busy: true, pieces: [...work, launch].map(([fixed, each]) => [fixed + update, each]) },
      ...Object.entries(each).map(([resource, time]) => ({ resource, busy: true, pieces: [[0, time]] })),
    ],
    preparing: { cpu: decoder.cpu, handover: 0, wait: missed * TABLES.drives[drive].latency, law: TABLES.scaling, cores, count: 1 },
    launch: { wait: launch, work },
    way: 0, round_trips: [], in_flight: 2,
  };
}

// GiB of the batches that the workers keep ready.
const readyGiB = (scenario, { workers, batch, decode }) =>
  (TABLES.prefetch * workers * batch * scenario.decoders[decode].sent) / 2 ** 30;

// What the rule says of a setting, with the memory that a step needs, the dollars of an hour of the host, and those of
// an hour of training: as many samples as the GPU alone computes in it.
export function answer(scenario, setting) {
  const { cores, memory, drive, batch } = setting, held = scenario.held, rule = ruleOf(scenario, setting);
  const found = solve(rule, setting), needed = held ? held.fixed + held.per_sample * batch : 0;
  const dollars = scenario.price + cores * TABLES.prices.core + TABLES.drives[drive].price
    + (memory + readyGiB(scenario, setting)) * TABLES.prices.memory;
  const throughput = batch / found.step;
  return {
    ...found, rule, needed, throughput, dollars,
    busy: found.utilization,
    feasible: !held || needed <= held.capacity,
    cost: dollars / (throughput * scenario.sample),
  };
}

// --- the puzzle of a day --------------------

const today = () => new Date().toISOString().slice(0, 10);

// Drawn from the date, so that everybody has the same: a workload, and a host that starves it.
export function daily(date) {
  let seed = [...date].reduce((sum, sign) => Math.imul(sum ^ sign.charCodeAt(0), 16777619), 2166136261);
  const random = () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const draw = (all) => all[Math.floor(random() * all.length)];
  const { workers, cores, memory, batch } = TABLES.values;
  const wanted = draw(["CPU", "CPU", "storage", "accelerator"]);
  for (let tries = 0; ; tries++) {
    const work = draw(TABLES.workloads), start = {
      workers: draw(workers.slice(0, 15)), cores: draw(cores.slice(0, 18)), memory: draw(memory.slice(0, 4)),
      drive: draw(Object.keys(TABLES.drives)), decode: "cpu", batch: draw(batch),
    };
    const { feasible, busy, bottleneck } = answer(work, start);
    if (feasible && busy < 0.8 && (bottleneck === wanted || tries > 200)) {
      const story = `${work.model} learns ${work.dataset} on an ${work.gpu}. A day begins at 0:00 UTC.`;
      return { ...work, key: date, title: date === today() ? "Today" : date, story, theory: TABLES.theory[bottleneck], start };
    }
  }
}

const SCENARIOS = TABLES.scenarios.map((one) => ({ ...TABLES.workloads[one.workload], ...one }));
export const scenarioOf = (key) =>
  SCENARIOS.find((one) => one.key === key) ?? (/^20\d\d-[01]\d-[0-3]\d$/.test(key) && key <= today() ? daily(key) : undefined);

// --- words --------------------

const dollars = (amount) => `$${amount.toFixed(2)}`;
// Rounded down, so that what is short of the goal never reads as if it had reached it.
const percent = (share) => `${(Math.floor(share * 1000 + 1e-9) / 10).toFixed(1)} %`;
const number = (value) => Number(value.toPrecision(3)).toLocaleString("en-US");
const count = (n, noun) => `${n.toLocaleString("en-US")} ${n === 1 ? noun.replace(/s$/, "") : noun}`;

const SLIDERS = {
  workers: ["Workers", (n) => count(n, "workers")],
  cores: ["CPU cores", (n) => `${count(n, "cores")}, ${dollars(n * TABLES.prices.core)} an hour`],
  memory: ["Cache in memory", (n) => (n ? `${n} GiB serve ${percent(puzzle.cached[TABLES.values.memory.indexOf(n)])} of the reads, ${dollars(n * TABLES.prices.memory)} an hour` : "none")],
  batch: ["Batch size", (n) => `${count(n, puzzle.noun)} in a step; ready batches ${dollars(readyGiB(puzzle, setting) * TABLES.prices.memory)} an hour`],
};
const CHOICES = {
  drive: ["Drive", Object.entries(TABLES.drives).map(([key, one]) => [key, `${one.name}, ${dollars(one.price)} an hour`])],
  decode: ["Decode the samples", [["cpu", "on the CPU"], ["gpu", "on the GPU"]]],
};
const described = ({ workers, cores, memory, drive, decode, batch }) =>
  `${count(workers, "workers")} on ${count(cores, "cores")}, ${memory ? `${memory} GiB of cache` : "no cache"}, ${TABLES.drives[drive].name}, `
  + `${decode === "gpu" ? "decoding on the GPU, " : ""}batches of ${batch}`;

// What may be guessed, and which of it is so.
const WAITS = { storage: "storage (the drive)", CPU: "the workers on the CPU", link: "the link", accelerator: "its host, to launch the work", nothing: "nothing: it is fed" };
function guessOf(scenario) {
  const { busy, bottleneck } = answer(scenario, scenario.start);
  if (!scenario.before) return { question: "What does this GPU wait for?", choices: WAITS, truth: busy >= TABLES.goal ? "nothing" : bottleneck };
  const waited = 1 - scenario.before.busy, more = 1 - busy - waited;
  return {
    question: `The ${scenario.before.gpu} waited ${percent(waited)} of the time. The new GPU waits`,
    choices: { less: "less", same: "as long", more: "more" },
    truth: Math.abs(more) < 0.01 ? "same" : more > 0 ? "more" : "less",
  };
}

// --- results, which stay in this browser --------------------

// A square for each run: how busy the GPU was.
const SQUARES = [["🟥", 0.5, "starves"], ["🟧", 0.8, "hungry"], ["🟨", TABLES.goal, "nearly fed"], ["🟩", Infinity, "fed"]];
const STUCK = ["⬛", 0, "cannot run"];
const KEY = "feed-the-gpu-puzzles";
let results = {};
try {
  results = JSON.parse(localStorage.getItem(KEY)) || {};
} catch {
  // A browser that stores nothing forgets the results.
}
const result = () => (results[puzzle.key] ??= { guess: null, right: false, squares: [], best: null, done: false });

function keep() {
  try {
    localStorage.setItem(KEY, JSON.stringify(results));
  } catch {
    // So does this.
  }
}

const RIGHT = ["✅", 0, "right guess"], WRONG = ["❌", 0, "wrong guess"];
const medal = ({ best }, { cheapest }) =>
  best === null ? "" : TABLES.medals.find((one) => best <= cheapest.cost * (1 + one.above) + 1e-9).name;
// What a line is made of: the guess, and a square for each run.
const lineOf = ({ guess, right, squares }) => (guess === null ? [] : [right ? RIGHT : WRONG])
  .concat(squares.map((sign) => [STUCK, ...SQUARES].find(([square]) => square === sign)));

// --- the page --------------------

let puzzle, setting, guess, last, shown, moving = null;

function build() {
  document.querySelectorAll("[data-goal]").forEach((one) => { one.textContent = `${Math.round(100 * TABLES.goal)} %`; });
  const slider = ([name, [label]]) => `<div class="control"><label for="${name}">${label}</label><output id="${name}-value" for="${name}"></output>`
    + `<input type="range" id="${name}" name="${name}" min="0" max="${TABLES.values[name].length - 1}" step="1"></div>`;
  const choice = ([name, [label, options]]) => `<fieldset class="control" id="${name}"><legend>${label}</legend>`
    + options.map(([key, text]) => `<label><input type="radio" name="${name}" value="${key}"> <span>${text}</span></label>`).join("") + "</fieldset>";
  $("controls").innerHTML = [...Object.entries(SLIDERS).map(slider), ...Object.entries(CHOICES).map(choice)].join("");
  $("measured").textContent = `GPU decoding: ${TABLES.decodeSource}. CPU decoding: ${TABLES.prepareSource}. Workers on cores: ${TABLES.workersSource}.`;
  for (const { what, price } of TABLES.priced) {
    const row = $("priced").insertRow();
    for (const text of [what, price]) row.insertCell().textContent = text;
  }
}

// The name in the link, also where a bare % makes it one that cannot be decoded.
function linked() {
  const written = location.hash.slice(1);
  try {
    return decodeURIComponent(written);
  } catch {
    return written;
  }
}

// Open the puzzle of the link, or the first one.
function open() {
  const named = linked(), found = scenarioOf(named || SCENARIOS[0].key);
  $("message").hidden = Boolean(found);
  if (!found) $("message").textContent = `This link cannot be opened: “${named.slice(0, 40)}” is no puzzle of this page. Here is the first one.`;
  puzzle = found ?? SCENARIOS[0];
  setting = { ...puzzle.start };
  guess = guessOf(puzzle);
  moving?.end();
  moving = null;
  const days = [...new Set([today(), puzzle.key])].map(scenarioOf).filter((one) => !SCENARIOS.some(({ key }) => key === one.key));
  $("puzzles").innerHTML = [...SCENARIOS, ...days].map((one) =>
    `<label><input type="radio" name="puzzle" value="${one.key}"${one.key === puzzle.key ? " checked" : ""}><span>${one.title}<small id="result-${one.key}"></small></span></label>`).join("");
  $("story").textContent = puzzle.story;
  $("start").textContent = `The host: ${described(puzzle.start)}. The GPU costs ${dollars(puzzle.price)} an hour.`;
  $("given").textContent = `Speed of the ${puzzle.gpu}: ${puzzle.basis}.`
    + (puzzle.basis.startsWith("measured") ? "" : ` Nobody has published how fast it trains ${puzzle.model}.`);
  $("question").textContent = guess.question;
  $("choices").innerHTML = Object.entries(guess.choices).map(([key, text]) => `<label><input type="radio" name="guess" value="${key}"> <span>${text}</span></label>`).join("");
  $("lock").disabled = true;
  for (const [name, [, options]] of Object.entries(CHOICES)) $(name).hidden = name === "decode" && options.some(([key]) => !(key in puzzle.decoders));
  $("said").textContent = $("copied").textContent = "";
  play(puzzle.start, result().guess === null);
  drawControls();
  draw();
}

// Let the picture play a setting; while a guess is asked for, and where it cannot run, it shows nothing.
function play(host, locked = false) {
  const found = last = answer(puzzle, host);
  shown = JSON.stringify(host);
  const data = { rule: found.rule, setting: { batch: host.batch, workers: host.workers }, resources: TABLES.resources, locked: locked || !found.feasible };
  if (moving) moving.show(data, false);
  else moving = mount($("moving"), data);
  return found;
}

function drawControls() {
  const { dollars: price } = answer(puzzle, setting), { done, squares: runs } = result();
  for (const [name, [, text]] of Object.entries(SLIDERS)) {
    $(name).value = TABLES.values[name].indexOf(setting[name]);
    $(name).setAttribute("aria-valuetext", text(setting[name]));
    $(`${name}-value`).textContent = text(setting[name]);
  }
  for (const name of Object.keys(CHOICES)) for (const input of document.getElementsByName(name)) input.checked = input.value === setting[name];
  $("run").textContent = done ? `Try it for ${dollars(price)} an hour: it no longer counts` : `Run it for ${dollars(price)} an hour: ${count(TABLES.runs - runs.length, "runs")} left`;
}

// Show how far the puzzle is.
function draw() {
  const mine = result(), asked = mine.guess === null, line = lineOf(mine), won = medal(mine, puzzle), end = mine.done && won;
  $("guess").hidden = !asked;
  $("host").hidden = asked;
  $("finish").hidden = mine.done;
  $("finish").textContent = won ? `Take ${won}` : "Give up";
  $("end").hidden = !mine.done;
  // As boxes: not every system has these signs.
  const sign = { [RIGHT[0]]: "✓", [WRONG[0]]: "✗", [STUCK[0]]: "!" };
  $("line").innerHTML = line.map(([one, , name]) => `<span class="${name.replace(" ", "-")}">${sign[one] ?? ""}</span>`).join("") + (end || "");
  $("line").setAttribute("aria-label", `Your line: ${[...line.map(([, , name]) => name), ...(end ? [won] : [])].join(", ")}`);
  $("line").hidden = asked;
  $("start").hidden = !asked;
  document.querySelector("dl").hidden = asked;
  document.body.dataset.state = asked ? "asks" : mine.done ? "done" : "plays";
  if (!asked) drawNumbers(last);
  const { cost: least, ...cheapest } = puzzle.cheapest;
  $("theory").textContent = `${puzzle.theory} The cheapest hour of training is ${dollars(least)}: ${described(cheapest)}.`;
  $("share").value = `Feed the GPU, ${puzzle.title === "Today" ? puzzle.key : puzzle.title}\n${line.map(([one]) => one).join("")} ${won || "not fed"}\n${location.href.split("#")[0]}#${puzzle.key}`;
  for (const input of document.getElementsByName("puzzle")) {
    const had = results[input.value];
    $(`result-${input.value}`).textContent = had?.done ? medal(had, scenarioOf(input.value)) || "not fed" : had?.squares.length ? "begun" : "not played";
  }
}

function drawNumbers(found) {
  const training = found.feasible ? found.busy : 0;
  $("busy").textContent = found.feasible ? percent(training) : "cannot run";
  $("cost").textContent = found.feasible ? dollars(found.cost) : "cannot run";
  $("burnt").textContent = dollars(found.feasible ? found.cost - found.dollars : found.dollars);
  document.body.classList.toggle("won", training >= TABLES.goal);
}

function lock() {
  const mine = result(), chosen = document.querySelector("[name=guess]:checked").value;
  Object.assign(mine, { guess: chosen, right: chosen === guess.truth });
  keep();
  const { busy } = play(setting);
  draw();
  $("said").textContent = `${mine.right ? "Right" : "No"}. ${busy < TABLES.goal ? "Now feed it." : "Run it as it is."}`;
  $("workers").focus();
}

function run() {
  const mine = result(), same = JSON.stringify(setting) === shown, found = play(setting);
  const fed = found.feasible && found.busy >= TABLES.goal, free = same && !(fed && mine.best === null);
  if (!mine.done && !free) {
    mine.squares.push((found.feasible ? SQUARES.find(([, below]) => found.busy < below) : STUCK)[0]);
    if (fed) mine.best = Math.min(found.cost, mine.best ?? Infinity);
    // Nothing costs less, or no run is left.
    mine.done = mine.squares.length === TABLES.runs || medal(mine, puzzle) === TABLES.medals[0].name;
    keep();
  }
  draw();
  drawControls();
  const limit = found.feasible ? "" : `A step needs ${number(found.needed / 1e9)} GB of memory, and the GPU has ${number(puzzle.held.capacity / 1e9)} GB.`;
  $("said").textContent = free && !mine.done ? "This host is as it was: change something. It cost no run."
    : !found.feasible ? `This cannot run. ${limit}`
    : fed ? `Fed: ${percent(found.busy)} busy, and an hour of training costs ${dollars(found.cost)}. ${mine.done ? "" : "Is there anything you pay for and do not need?"}`
    : `Not fed: ${percent(found.busy)} busy. The goal is ${percent(TABLES.goal)}.`;
  if (mine.done) $("said").focus();
  $("moving").scrollIntoView({ block: "nearest" });
  // Who cannot see the button below the picture shall not press it again.
  if (!mine.done && $("run").getBoundingClientRect().bottom > innerHeight) $("workers").focus();
}

function finish() {
  const mine = result();
  mine.done = true;
  keep();
  draw();
  drawControls();
  $("said").textContent = mine.best === null ? "Given up: no medal." : `${medal(mine, puzzle)}: an hour of training costs ${dollars(mine.best)}.`;
  $("said").focus();
}

function choose(key) {
  history.replaceState(null, "", `#${key}`);
  open();
  document.querySelector("[name=puzzle]:checked").focus();
}

function change({ target: { name, value } }) {
  if (name === "puzzle") choose(value);
  else if (name === "guess") $("lock").disabled = false;
  else if (name in setting) {
    setting[name] = name in SLIDERS ? TABLES.values[name][Number(value)] : value;
    drawControls();
  }
}

build();
open();
$("game").addEventListener("input", change);
$("game").addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("hashchange", open);
for (const [id, act] of Object.entries({ lock, run, finish })) $(id).addEventListener("click", act);
$("next").addEventListener("click", () => {
  const keys = [...document.getElementsByName("puzzle")].map((one) => one.value);
  choose(keys[(keys.indexOf(puzzle.key) + 1) % keys.length]);
});
$("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText($("share").value);
    $("copied").textContent = "Copied: paste it into a message to your friends.";
  } catch {
    $("share").focus();
    $("share").select();
    $("copied").textContent = "This browser does not let a page copy. The text is selected: copy it with your keyboard.";
  }
});
