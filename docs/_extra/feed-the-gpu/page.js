// The page: it reads the controls, asks the rule, and shows what it says. The link always holds the settings.
// TABLES comes from the package. A test compares `answer` with the package over thousands of settings.

import { mount, solve } from "../moving.js";

const $ = (id) => document.getElementById(id);
export const scenarioOf = (key) => TABLES.scenarios.find((one) => one.key === key);

// --- the rule, for what this page asks ----------------------------------------------------------------------

// What reading a sample takes where memory does not serve it.
function readTime(size, { bandwidth, latency, inFlight, rate }) {
  const transfer = size / bandwidth;
  return Math.max(transfer, (latency + transfer) / inFlight, rate ? 1 / rate : 0);
}

// The numbers of the rule: a step that is launched by the host, workers on cores, and what takes time for each sample.
function ruleOf(scenario, { cores, memory, drive, decode }) {
  const decoder = scenario.decoders[decode], missed = 1 - scenario.cached[TABLES.values.memory.indexOf(memory)];
  const each = {
    storage: missed * readTime(scenario.size, TABLES.drives[drive]),
    link: decoder.sent / scenario.link,
    ...(decoder.decoder && { decoder: decoder.decoder }),
  };
  const work = [[0, scenario.sample]], launch = [scenario.launch, 0];
  return {
    stages: [
      { resource: "accelerator", busy: true, pieces: [...work, launch] },
      ...Object.entries(each).map(([resource, time]) => ({ resource, busy: true, pieces: [[0, time]] })),
    ],
    preparing: { cpu: decoder.cpu, handover: 0, wait: null, law: TABLES.scaling, cores, count: 1 },
    launch: { wait: launch, work },
    overlap: true,
  };
}

// What the rule says of a setting, with the memory that a step needs and the dollars of an hour.
export function answer(scenario, setting) {
  const { cores, memory, drive, batch } = setting, held = scenario.held, rule = ruleOf(scenario, setting);
  const found = solve(rule, setting), needed = held ? held.fixed + held.per_sample * batch : 0;
  return {
    ...found, rule, needed,
    busy: found.utilization,
    feasible: !held || needed <= held.capacity,
    throughput: batch / found.step,
    dollars: scenario.price + cores * TABLES.prices.core + memory * TABLES.prices.memory + TABLES.drives[drive].price,
  };
}

// --- words ------------------------------------------------------------------------------------------------

const dollars = (amount, digits = 2) => `$${amount.toFixed(digits)}`;
// Rounded down, so that what is short of the goal never reads as if it had reached it.
const percent = (share) => `${(Math.floor(share * 1000 + 1e-9) / 10).toFixed(1)} %`;
const number = (value) => Number(value.toPrecision(3)).toLocaleString("en-US");
const time = (seconds) => (seconds < 1 ? `${number(seconds * 1000)} ms` : `${number(seconds)} s`);
const count = (n, noun) => `${n.toLocaleString("en-US")} ${n === 1 ? noun.replace(/s$/, "") : noun}`;

// How long ago a price was stated: the same words as price_age in the package.
export function age(stated, today) {
  const from = new Date(stated);
  const months = 12 * (today.getUTCFullYear() - from.getUTCFullYear()) + today.getUTCMonth() - from.getUTCMonth()
    - (today.getUTCDate() < from.getUTCDate());
  if (months < 1) return "less than a month ago";
  return `${months < 12 ? count(months, "months") : count(Math.floor(months / 12), "years")} ago`;
}
const stated = (date) => `${new Date(date).toLocaleDateString("en-US", { month: "long", year: "numeric", timeZone: "UTC" })}, ${age(date, new Date())}`;
// The oldest of the prices that make up one sum.
const oldest = (rows) => stated(rows.map((one) => one.date).sort()[0]);

const SLIDERS = {
  workers: {
    label: "Workers",
    help: "They prepare samples side by side. They are free. The cores that they run on are not.",
    text: (n) => count(n, "workers"),
  },
  cores: {
    label: "CPU cores",
    help: "Two workers share a core, and the second one adds a little.",
    text: (n) => `${count(n, "cores")}, ${dollars(n * TABLES.prices.core)} an hour`,
  },
  memory: {
    label: "Cache in memory",
    help: "Samples that are in memory are not read from the drive again.",
    text: (n, scenario) => {
      const share = scenario.cached[TABLES.values.memory.indexOf(n)];
      return n ? `${n} GiB serve ${percent(share)} of the reads, ${dollars(n * TABLES.prices.memory)} an hour` : "none";
    },
  },
  batch: {
    label: "Batch size",
    help: "A batch that is too small leaves the GPU waiting for its host to launch the work.",
    text: (n, scenario) => `${count(n, scenario.noun)} in a step`,
  },
};
const CHOICES = {
  drive: {
    label: "Drive",
    options: Object.entries(TABLES.drives).map(([key, one]) => [key, `${one.name}, ${dollars(one.price)} an hour`]),
  },
  decode: {
    label: "Decode the samples",
    options: [["cpu", "on the CPU"], ["gpu", "on the GPU"]],
  },
};

// --- the state, and its link ------------------------------------------------------------------------------

let state = { scenario: TABLES.scenarios[0].key, ...TABLES.scenarios[0].start };

function allowed(name, scenario) {
  if (name in TABLES.values) return TABLES.values[name].map(String);
  return Object.keys(name === "drive" ? TABLES.drives : scenario.decoders);
}

// The settings of a link, or what is wrong with it.
function read(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const scenario = scenarioOf(given.get("scenario"));
  if (!scenario) return { wrong: "It names no scenario of this page." };
  const names = Object.keys(scenario.start);
  const strange = [...given.keys()].filter((name) => name !== "scenario" && !names.includes(name));
  if (strange.length) return { wrong: `It names ${strange[0].slice(0, 40)}, and this page has no such setting.` };
  const found = { scenario: scenario.key };
  for (const name of names) {
    const text = given.get(name);
    if (text === null) return { wrong: `It does not say a value for ${name}.`, scenario };
    if (!allowed(name, scenario).includes(text)) {
      return { wrong: `It says ${name} ${text.slice(0, 40) || "without a value"}, which this scenario does not offer.`, scenario };
    }
    found[name] = name in TABLES.values ? Number(text) : text;
  }
  return { found };
}

const link = () => `${location.href.split("#")[0]}#${new URLSearchParams(state)}`;

function open() {
  if (location.hash.length < 2) return;
  const { found, wrong, scenario } = read(location.hash);
  $("message").hidden = !wrong;
  if (wrong) {
    const start = scenario || TABLES.scenarios[0];
    state = { scenario: start.key, ...start.start };
    window.scrollTo(0, 0);
    $("message").textContent = `This link cannot be opened. ${wrong} These are the starting settings of “${start.title}”.`;
  } else {
    state = found;
  }
}

// --- best scores, which stay in this browser --------------------------------------------------------------

const KEY = "feed-the-gpu";
let best = {};
try {
  best = JSON.parse(localStorage.getItem(KEY)) || {};
} catch {
  // A browser that stores nothing forgets the scores, and that is all.
}

function keep(key, amount) {
  if (best[key] <= amount) return;
  best[key] = amount;
  try {
    localStorage.setItem(KEY, JSON.stringify(best));
  } catch {
    // as above
  }
}

const above = (amount, scenario) => Math.max(0, amount / scenario.cheapest.dollars - 1);
const medal = (share) => TABLES.medals.find((one) => share <= one.above + 1e-9)?.name || "Fed";

// --- what it means ----------------------------------------------------------------------------------------

// What starves the GPU, and what may help, in whole sentences.
function explain(scenario, found) {
  const { times, bottleneck } = found;
  const gpu = `the GPU would train on it in ${time(state.batch * scenario.sample)}`;
  if (!found.feasible) {
    return `This cannot run: a step needs ${number(found.needed / 1e9)} GB of memory, and the GPU has ${number(scenario.held.capacity / 1e9)} GB. Choose a smaller batch.`;
  }
  if (bottleneck === "accelerator") {
    if (found.busy >= TABLES.goal) return "The GPU is fed. Nothing else takes longer than its own work.";
    return `The GPU waits for its host to launch the work. That takes ${time(scenario.launch)} in each step, and ${gpu}. A larger batch needs no more launches.`;
  }
  if (bottleneck === "CPU") {
    const help =
      state.workers < state.cores ? "There are more cores than workers: start more workers."
      : state.workers < 2 * state.cores ? "Each core can take a second worker, which adds a little. After that it takes more cores."
      : state.workers > 2 * state.cores ? "There are more workers than the cores can take: more cores help, more workers do not."
      : "More cores help, and workers to use them.";
    return found.busy >= TABLES.goal
      ? `The GPU is fed, though the CPU takes a little longer than the GPU.`
      : `The CPU starves the GPU: it prepares a batch in ${time(times.CPU)}, and ${gpu}. ${help}`;
  }
  const what = bottleneck === "storage" ? "drive" : bottleneck;
  if (found.busy >= TABLES.goal) return `The GPU is fed, though the ${what} takes a little longer than the GPU.`;
  const help = what === "drive" ? " A faster drive helps, or more of the data in memory." : "";
  return `The ${what} starves the GPU: it takes ${time(times[bottleneck])} for a batch, and ${gpu}.${help}`;
}

// --- drawing ----------------------------------------------------------------------------------------------

const MOUTHS = { starving: "M55 86q20 -16 40 0", hungry: "M58 80h34", fed: "M53 72q22 24 44 0", stuck: "M55 82l8-6 8 6 8-6 8 6 8-6" };

function draw() {
  const scenario = scenarioOf(state.scenario);
  const found = answer(scenario, state);
  const fed = found.feasible && found.busy >= TABLES.goal;
  const training = found.feasible ? found.busy : 0;
  const burnt = found.dollars * (1 - training);

  $("story").textContent = scenario.story;
  const gpu = $("gpu");
  gpu.dataset.mood = !found.feasible ? "stuck" : fed ? "fed" : training < TABLES.goal / 2 ? "starving" : "hungry";
  gpu.style.setProperty("--fed", training);
  gpu.querySelector(".mouth").setAttribute("d", MOUTHS[gpu.dataset.mood]);
  gpu.querySelectorAll(".smoke text").forEach((one, i, all) => { one.style.display = i < Math.ceil((1 - training) * all.length - 0.3) ? "" : "none"; });
  $("busy").textContent = found.feasible ? percent(training) : "cannot run";
  $("cost").textContent = dollars(found.dollars);
  $("burnt").textContent = dollars(burnt);
  rate = burnt;

  const text = explain(scenario, found);
  const money = ` Of ${dollars(found.dollars)} an hour, ${dollars(burnt)} is burnt while the GPU does not train.`;
  setText($("summary"), text + money);
  $("step").textContent = found.feasible
    ? `A step with ${count(state.batch, scenario.noun)} takes ${time(found.step)}: ${number(found.throughput)} ${scenario.noun} a second. The slowest sets the pace.`
    : "This step does not fit into the memory of the GPU.";
  $("moving").hidden = !found.feasible;
  const shown = { rule: found.rule, setting: { batch: state.batch, workers: state.workers }, resources: TABLES.resources, chip: "GPU" };
  if (moving) moving.show(shown, false);
  else moving = mount($("moving"), shown);
  drawControls(scenario);
  drawScore(scenario, found, fed);
}

// A status that says the same again would be read aloud again.
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function drawScore(scenario, found, fed) {
  const share = above(found.dollars, scenario);
  // Shares are rounded up to a tenth of a percent: only the cheapest is called so.
  const distance = share < 1e-9 ? "the cheapest there is" : `${(Math.ceil(share * 1000) / 10).toFixed(1)} % above the cheapest`;
  const score = `${percent(found.feasible ? found.busy : 0)} busy for ${dollars(found.dollars)} an hour`;
  if (fed) keep(state.scenario, found.dollars);
  document.body.classList.toggle("won", fed);
  const idle = Object.keys(scenario.start).every((name) => state[name] === scenario.start[name])
    ? "Nothing needed doing." : "Nothing on this page feeds it for less.";
  $("score").textContent = !found.feasible ? "This cannot run, so there is no score."
    : !fed ? `${score}: not fed yet. The goal is ${percent(TABLES.goal)}.`
    : `${medal(share)}: ${score}, ${distance}. ${share < 1e-9 ? idle : "Look for what you pay for and do not need."}`;
  $("share").value = fed
    ? `Feed the GPU, “${scenario.title}”: ${score}, ${distance}. ${share < 1e-9 ? "Can you find it, too?" : "Can you do it for less?"}\n${link()}`
    : `Feed the GPU, “${scenario.title}”: what starves this GPU? ${score}.\n${link()}`;
  for (const one of TABLES.scenarios) {
    const done = one.key in best;
    $(`best-${one.key}`).textContent = done ? `${medal(above(best[one.key], one))}, ${dollars(best[one.key])}` : "not fed yet";
  }
}

// --- controls ---------------------------------------------------------------------------------------------

function build() {
  document.querySelectorAll("[data-goal]").forEach((one) => { one.textContent = `${Math.round(100 * TABLES.goal)} %`; });
  $("scenarios").innerHTML = TABLES.scenarios.map((one) =>
    `<label><input type="radio" name="scenario" value="${one.key}"><span>${one.title}<small id="best-${one.key}"></small></span></label>`).join("");
  const slider = (name) => `<div class="control"><label for="${name}">${SLIDERS[name].label}</label><output id="${name}-value" for="${name}"></output>`
    + `<input type="range" id="${name}" name="${name}" min="0" max="${TABLES.values[name].length - 1}" step="1" aria-describedby="${name}-help">`
    + `<p class="small" id="${name}-help">${SLIDERS[name].help}</p></div>`;
  const choice = (name) => `<fieldset class="control"><legend>${CHOICES[name].label}</legend><div class="choices">`
    + CHOICES[name].options.map(([key, text]) => `<label><input type="radio" name="${name}" value="${key}"> <span>${text}</span></label>`).join("")
    + `</div><p class="small" id="${name}-help"></p></fieldset>`;
  $("sliders").innerHTML = ["workers", "cores"].map(slider).join("") + choice("drive") + slider("memory") + choice("decode") + slider("batch");
  for (const one of TABLES.resources) document.documentElement.style.setProperty(`--${one.name}`, one.color);
  $("measured").textContent = `GPU decoding: ${TABLES.decodeSource}. CPU decoding: ${TABLES.prepareSource}. Workers on cores: ${TABLES.workersSource}.`;
  $("sources").innerHTML = "";
  for (const one of TABLES.sources) {
    const row = $("sources").insertRow();
    for (const text of [one.what, one.price, one.seller, stated(one.date), [one.source, one.note].filter(Boolean).join("; ")]) row.insertCell().textContent = text;
  }
}

function drawControls(scenario) {
  for (const name of Object.keys(SLIDERS)) {
    const input = $(name), text = SLIDERS[name].text(state[name], scenario);
    input.value = TABLES.values[name].indexOf(state[name]);
    input.setAttribute("aria-valuetext", text);
    $(`${name}-value`).textContent = text;
  }
  for (const name of ["scenario", "drive", "decode"]) {
    for (const input of document.getElementsByName(name)) {
      input.checked = input.value === state[name];
      input.disabled = name === "decode" && !(input.value in scenario.decoders);
    }
  }
  const prices = TABLES.sources.filter((one) => one.what === scenario.gpu);
  const others = TABLES.sources.filter((one) => !TABLES.scenarios.some(({ gpu }) => one.what === gpu));
  $("given").textContent = `The GPU is given: ${scenario.gpu}, ${dollars(scenario.price)} an hour (${oldest(prices)}). The rest is yours to choose, at prices of ${oldest(others)}.`
    + (scenario.basis.startsWith("measured") ? "" : ` Nobody has published how fast it trains ${scenario.model}, so its speed is extrapolated.`);
  $("speed").textContent = `Speed of the GPU in this scenario: ${scenario.basis}.`;
  const both = Object.keys(scenario.decoders).length > 1;
  $("decode-help").textContent = both ? "A decoder of its own does it, while the GPU trains." : "Nobody has published a rate for such samples on this GPU.";
  $("drive-help").textContent = `The data set is ${scenario.dataset}: ${number(scenario.size * scenario.samples / 1e9)} GB on the drive.`;
}

function change(event) {
  const { name, value } = event.target;
  if (name === "scenario") {
    if (value === state.scenario) return;
    state = { scenario: value, ...scenarioOf(value).start };
  } else if (name in TABLES.values) {
    state[name] = TABLES.values[name][Number(value)];
  } else if (name in state) {
    state[name] = value;
  } else {
    return;
  }
  show();
}

// Show the state, and put it into the link.
function show() {
  $("message").hidden = true;
  history.replaceState(null, "", link());
  draw();
}

let rate = 0, since = 0, moving = null;
build();
open();
draw();
$("game").addEventListener("input", change);
window.addEventListener("hashchange", () => { open(); draw(); });
$("again").addEventListener("click", () => { state = { scenario: state.scenario, ...scenarioOf(state.scenario).start }; show(); });
$("cheapest").addEventListener("click", () => {
  const { dollars: _, ...setting } = scenarioOf(state.scenario).cheapest;
  state = { scenario: state.scenario, ...setting };
  show();
});
$("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText($("share").value);
    $("copied").textContent = "Copied: paste it where your friends are.";
  } catch {
    $("share").select();
    $("copied").textContent = "This browser does not let a page copy. The text is selected: copy it with your keyboard.";
  }
});
setInterval(() => {
  since += rate / 3600;
  $("since").textContent = dollars(since, 4);
}, 1000);
$("since").textContent = dollars(0, 4);
