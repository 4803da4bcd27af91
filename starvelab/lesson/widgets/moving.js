// Batches on their way from the drive through workers and a queue into the chip: a picture that moves.
//
// The lab shows it as a widget, the site's pages and the game import it. `solve` is the rule of the model and `follow` a
// loader in which nothing is left to chance; tests hold the first to `Pipeline.solve`, and `state` to the trace that is
// played. Rule and loader count in seconds, runs in milliseconds.

// --- the rule: stages on one resource add, the slowest resource sets the step ---

// In a tie the first of them binds: a tie starves nobody.
const TIE_ORDER = ["accelerator", "CPU", "storage", "link", "decoder", "loop"];
const longest = (pieces, batch) => Math.max(...pieces.map(([fixed, each]) => fixed + each * batch));

// How many times one worker's rate so many workers reach on so many cores.
export function speedup(workers, cores, { contention = 0, coherency = 0, crowding = 0, second_thread = 0 }) {
  const peak = coherency ? Math.max(1, Math.ceil(Math.sqrt((1 - contention) / coherency + 0.25) - 0.5)) : Infinity;
  const surplus = Math.min(workers - Math.min(workers, cores), cores);
  const e = Math.min(Math.min(workers, cores) + (surplus && second_thread * surplus), peak);
  return e / (1 + contention * (e - 1) + coherency * e * (e - 1) + (crowding * (e - 1)) / cores);
}

// What the workers take for a batch.
function prepareTime({ cpu, handover, wait, law, cores, count }, { batch, workers }) {
  const work = batch * cpu + handover;
  const waiting = wait === null ? 0 : work / speedup(workers, Infinity, law) + (wait * batch) / workers;
  return count * Math.max(work / speedup(workers, cores ?? Infinity, law), waiting);
}

// The time of each resource in a step, the step, what binds, and the busy share of the accelerator.
export function solve(rule, setting) {
  const { batch } = setting, times = {}, { launch, preparing } = rule;
  let decoding = 0;
  let waits = launch ? Math.max(0, longest([launch.wait], batch) - longest(launch.work, batch)) : 0;
  for (const { name, resource, pieces, busy } of rule.stages) {
    if (resource === "accelerator" && name !== "model") decoding += longest(pieces, batch);
    times[resource] = (times[resource] ?? 0) + longest(pieces, batch);
    if (!busy) waits += longest(pieces, batch);
  }
  if (preparing) times.CPU = (times.CPU ?? 0) + prepareTime(preparing, setting);
  const all = Object.values(times), slowest = Math.max(...all);
  let step = rule.in_turn ? all.reduce((sum, one) => sum + one, 0) : slowest;
  // Each round trip is a sum of times, which the package gives: a factor of each, for each worker or once.
  const took = { ...times, way: rule.way }, lanes = rule.preparing ? setting.workers : 1;
  for (const trip of rule.in_turn ? [] : rule.round_trips) {
    step = Math.max(step, trip.reduce((sum, [name, factor, each]) => sum + (took[name] * factor) / (each ? lanes : 1), 0));
  }
  const bottleneck = TIE_ORDER.find((name) => times[name] >= slowest * (1 - 1e-12));
  // Which share of their time workers prepare, and do not wait for what they read; and that in which a GPU trains.
  const prepares = preparing && times.CPU ? prepareTime({ ...preparing, wait: null }, setting) / times.CPU : 1;
  const trains = times.accelerator ? 1 - decoding / times.accelerator : 1;
  // Which share of a busy accelerator's time is launching, where that counts as busy and nothing is decoded there.
  const launches = rule.launches && !decoding ? longest(rule.launches, batch) / times.accelerator : 0;
  return { times, step, bottleneck, waits, prepares, trains, launches, utilization: (times.accelerator - waits) / step };
}

// A run begins at the latest after so many batches: nearer to a tie nobody sees what is left of the start.
const MOST = 1500;

// Batches until whoever is faster than the step has done what all workers asked for at the start.
function settling({ times, step }, ahead, inTurn) {
  const fast = [times.storage, times.CPU].filter((time) => time < step);
  const all = inTurn || !fast.length ? 0 : Math.ceil(ahead / (1 - Math.max(...fast) / step) - 1e-9);
  return Math.max(2 * ahead, Math.min(all, MOST));
}

// A run of these times: `settled` batches after those with which the queue fills. As rules.py, without chance; a worker takes
// what `prepare` gives for each batch [ms], if it is given, and these batches are played whole.
export function follow(solved, { workers, prefetch = 2, in_flight: depth, way = 0, in_turn = false, prepare = null }, settled = 0) {
  const { times } = solved, lanes = in_turn ? 1 : workers, ahead = lanes * prefetch, inFlight = depth ?? Infinity;
  const [cpu, read, loop, link, decoder] = ["CPU", "storage", "loop", "link", "decoder"].map((name) => 1e3 * (times[name] ?? 0));
  const copy = in_turn ? link + decoder : Math.max(link, decoder), take = 1e3 * times.accelerator;
  const first = settling(solved, ahead, in_turn || prepare);
  const shown = prepare ? prepare.length - first - ahead : settled || lanes * Math.max(4, Math.ceil(48 / lanes));
  const count = first + shown + ahead, run = Object.fromEntries(COLUMNS.map((name) => [name, []]));
  const at = (name, j, otherwise = 0) => (j < 0 ? otherwise : run[name][j]);
  const host = (j) => (j < 0 ? 0 : Math.max(run.received[j], at("step_end", in_turn ? j : j + 1 - inFlight)));
  for (let j = 0; j < count; j++) {
    const asked = in_turn ? host(j - 1) : at("received", j - ahead);
    run.asked[j] = asked;
    run.read_start[j] = Math.max(at("read_done", j - 1), asked);
    run.read_done[j] = run.read_start[j] + read;
    run.prepare_start[j] = Math.max(at("prepared", j - lanes), asked, in_turn ? 0 : run.read_done[j]);
    run.prepared[j] = run.prepare_start[j] + (prepare?.[j] ?? (in_turn ? read + cpu : cpu * lanes));
    run.received[j] = Math.max(run.prepared[j] + 1e3 * way, host(j - 1)) + loop;
    run.copy_start[j] = Math.max(run.received[j], at("copied", j - 1));
    run.copied[j] = run.copy_start[j] + copy;
    run.step_start[j] = Math.max(run.copied[j], at("step_end", j - 1));
    run.step_end[j] = run.step_start[j] + take;
    [run.batch[j], run.worker[j]] = [j, j % lanes];
  }
  if (!("storage" in times)) run.asked = run.read_start = run.read_done = null;
  const start = run.step_end[first - 1];
  for (const name of COLUMNS.slice(2)) run[name] &&= run[name].slice(first).map((time) => time - start);
  return { ...run, batch: run.batch.slice(first), worker: run.worker.slice(first), lanes, end: run.step_end[shown - 1] };
}

// --- a run at any time -------------------------------------------------------

const COLUMNS = ["batch", "worker", "asked", "read_start", "read_done", "prepare_start", "prepared", "received", "copy_start",
  "copied", "step_start", "step_end"];
// Where a batch is from that time on; each phase ends where the next one begins.
const PHASES = [["step_end", "gone"], ["step_start", "chip"], ["copied", "door"], ["copy_start", "link"],
  ["received", "gate"], ["prepared", "queue"], ["prepare_start", "worker"], ["read_done", "pile"], ["read_start", "drive"],
  ["asked", "wanted"]];

// Where every batch is (rows of the run, in the order of delivery), who waits, and how busy everybody was until then.
export function state(run, t) {
  const found = { worker: [], held: [], idle: [] }, reads = run.read_start !== null;
  for (const [, phase] of PHASES) found[phase] = [];
  let latest = -Infinity;
  run.batch.forEach((_, i) => {
    const phase = PHASES.find(([name]) => run[name] && t >= run[name][i])?.[1];
    latest = Math.max(latest, run.prepared[i]);
    if (phase) found[phase].push(i);
    // What is ready waits for its turn behind a batch that is not.
    if (phase === "queue" && latest > t) found.held.push(i);
  });
  const taken = new Set(found.worker.map((i) => run.worker[i]));
  for (let lane = 0; lane < run.lanes; lane++) if (!taken.has(lane)) found.idle.push(lane);
  found.reading = reads ? run.batch.flatMap((_, i) => (run.read_start[i] <= t && t < run.read_done[i] ? [i] : [])) : [];
  found.waits = found.chip.length === 0;
  const busy = (from, to) => t > 0 && run.batch.reduce((sum, _, i) =>
    sum + Math.max(0, Math.min(t, run[to][i]) - Math.max(0, run[from][i])), 0) / t;
  found.busy = {
    ...(reads && { storage: busy("read_start", "read_done") }), CPU: busy("prepare_start", "prepared") / run.lanes,
    link: busy("copy_start", "copied"), accelerator: busy("step_start", "step_end"),
  };
  return found;
}

const progress = (run, from, to, i, t) => Math.min(1, Math.max(0, (t - run[from][i]) / (run[to][i] - run[from][i] || 1)));

// --- where everything stands -------------------------------------------------

const HEIGHT = 236, TOP = 30, FLOOR = 178;

// Places for a picture of that width: the left end and the width of each station.
export function layout(width, run) {
  const wide = width >= 560, shares = wide ? [0.12, 0.13, 0.33, 0.16, 0.1, 0.16] : [0.175, 0.085, 0.245, 0.145, 0.08, 0.27];
  let x = 0;
  const [drive, pile, workers, queue, link, chip] = shares.map((share) => {
    const part = { x: x + 3, width: share * width - 6 };
    x += share * width;
    return part;
  });
  const height = FLOOR - TOP, rows = Math.min(run.lanes, 8), columns = Math.ceil(run.lanes / rows);
  const over = columns > 3 ? Math.ceil(Math.sqrt((run.lanes * height) / workers.width)) : rows;
  const lines = Math.max(rows, over), across = Math.ceil(run.lanes / lines);
  const cell = { width: workers.width / across, height: Math.min(30, height / lines), lines };
  cell.top = TOP + (height - cell.height * lines) / 2;
  return { width, wide, drive, pile, workers, queue, link, chip, cell, token: wide ? 20 : 15 };
}

// Where each batch is drawn: its row, place, size, looks, and how much of its work is done.
export function scene(run, t, now, places) {
  const { drive, pile, workers, queue, link, chip, cell, token } = places, tokens = [], middle = (TOP + FLOOR) / 2;
  const put = (i, x, y, looks, size = token) => tokens.push({ i, x, y, looks, size });
  // Heaps grow from the side of the next station, and get smaller tokens where they need room.
  const heap = (rows, part, looks, floor = FLOOR, height = FLOOR - TOP) => {
    let size = token + 1, high;
    do high = Math.floor(height / (--size + 2));
    while (size > 4 && Math.floor(part.width / (size + 2)) * high < rows.length);
    rows.forEach((i, n) => put(i, part.x + part.width - (size + 2) * (Math.floor(n / high) + 0.5),
      floor - (size + 2) * ((n % high) + 0.5), looks(i), size));
  };
  const ordered = (rows) => [...rows].sort((a, b) => run.batch[a] - run.batch[b]);
  // What the drive was asked for lies in it, and what it reads is on its way out.
  heap(ordered(now.wanted).slice(0, 3 * Math.floor((drive.width - 8) / 11)), { ...drive, width: drive.width - 8 }, () => "wanted", middle + 34, 32);
  now.drive.forEach((i) => put(i, drive.x + (0.3 + 0.7 * progress(run, "read_start", "read_done", i, t)) * drive.width, middle - 12, "storage"));
  // Where reading is not modeled, the next batches lie in memory.
  const next = run.read_start ? now.pile : run.batch.flatMap((_, i) => (t < run.prepare_start[i] ? [i] : []));
  const amount = run.read_start ? Infinity : 2 * Math.floor((FLOOR - TOP) / (token + 2));
  heap(ordered(next).slice(0, amount), pile, () => "storage");
  const lane = (number) => ({
    x: workers.x + cell.width * Math.floor(number / cell.lines), y: cell.top + cell.height * (number % cell.lines),
  });
  const trails = now.worker.map((i) => {
    const { x, y } = lane(run.worker[i]), size = Math.min(token, cell.height - 4, cell.width - 4);
    const reads = run.read_start && run.read_done[i] > run.prepare_start[i];
    const from = reads ? "read_done" : "prepare_start", done = progress(run, from, "prepared", i, t);
    const waits = reads && t < run.read_start[i], looks = waits ? "waits" : reads && t < run.read_done[i] ? "storage" : "CPU";
    put(i, x + 2 + size / 2 + done * Math.max(0, cell.width - size - 6), y + cell.height / 2, looks, size);
    return { number: run.worker[i], done, looks };
  });
  heap(now.queue.filter((i) => !now.held.includes(i)).concat(now.held), queue, (i) => (now.held.includes(i) ? "held" : "ready"));
  now.gate.forEach((i, n) => put(i, link.x, middle + n * (token + 2), "ready"));
  now.link.forEach((i) => put(i, link.x + progress(run, "copy_start", "copied", i, t) * link.width, middle, "link"));
  now.door.slice(0, 3).forEach((i, n) => put(i, chip.x - 2, middle - (n + 1) * (token + 2), "link"));
  now.chip.forEach((i) => put(i, chip.x + chip.width / 2, middle + 12, "accelerator", 2));
  return { tokens, trails, lane, eaten: now.chip.length ? progress(run, "step_start", "step_end", now.chip[0], t) : 0 };
}

// --- the picture -------------------------------------------------------------

const HATCHES = { "": "", "--": "M0 4H8", "..": "M2 2h1.6M6 6h1.6", "//": "M-1 5L5 -1M3 9L9 3", "xx": "M0 0L8 8M8 0L0 8", "\\\\": "M-1 3L5 9M3 -1L9 5" };
export const STYLE = `
.sl-moving { --sl-soft: color-mix(in srgb, currentColor 14%, transparent); position: relative; max-width: 800px; }
.sl-moving svg { display: block; width: 100%; font-size: 13px; fill: currentColor; }
.sl-moving svg.narrow { font-size: 12px; }
.sl-moving [role=status] { font-weight: 600; }
.sl-moving text { text-anchor: middle; font-variant-numeric: tabular-nums; }
.sl-moving .binds { font-weight: 700; }
.sl-moving text.parts { font-weight: 700; text-decoration: underline #d55e00 2px; }
.sl-moving rect.parts { fill: none; stroke: #d55e00; stroke-width: 2; stroke-dasharray: 6 4; }
.sl-moving .ground { fill: var(--sl-soft); }
.sl-moving .line { fill: none; stroke: currentColor; stroke-opacity: 0.55; }
.sl-moving .idle { fill: none; stroke: currentColor; stroke-opacity: 0.4; stroke-dasharray: 3 3; }
.sl-moving .token text { font-weight: 600; }
.sl-moving p { margin: 0.3em 0; }
.sl-moving .sl-name { font-weight: 700; margin: 0.7em 0 0; }
.sl-moving .sl-act:not(:empty) { border-left: 4px solid #0072b2; padding-left: 0.6em; min-height: 1.4em; }
.sl-moving .sl-act.done { border-color: #009e73; }
.sl-moving .sl-wide { overflow-x: auto; }
.sl-moving .sl-row { display: flex; flex-wrap: wrap; gap: 0.4em 1em; align-items: center; margin: 0.3em 0; }
.sl-moving button { font: inherit; color: inherit; background: none; border: 1px solid; border-radius: 0.4em;
  padding: 0.25em 0.8em; min-width: 5.2em; cursor: pointer; }
.sl-moving button[aria-pressed="true"] { background: var(--sl-soft); font-weight: 700; }
.sl-moving :focus-visible { outline: 2px solid #0072b2; outline: 2px solid color-mix(in srgb, #0072b2 60%, currentColor); outline-offset: 2px; }
.sl-moving label { display: flex; flex-wrap: wrap; gap: 0 0.6em; align-items: center; flex: 1 1 17em; }
.sl-moving label span { min-width: 7.2em; font-variant-numeric: tabular-nums; }
.sl-moving input { flex: 1; min-width: 8em; margin: 0; }
.sl-moving th, .sl-moving td { text-align: left; padding: 0.1em 1.2em 0.1em 0; font-variant-numeric: tabular-nums; }
@media print { .sl-moving .sl-row { display: none; } .sl-moving ::details-content { content-visibility: visible; } }`;
const LOOKS = { ready: "#56B4E9" };
const NAMES = { batch: "batch size", workers: "workers" };
// The share of its work in which the accelerator does not wait for the host to launch it.
const working = ({ waits, times }) => 1 - waits / times.accelerator;
const percent = (share) => `${Math.round(100 * share)}\u00a0%`;
const number = (value, digits = 3) => Number(value.toPrecision(digits)).toLocaleString("en-US");
const capital = (text) => text[0].toUpperCase() + text.slice(1);

function put(parent, name, attributes = {}, text = "") {
  const space = name === "svg" || parent.namespaceURI.endsWith("svg") ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml";
  const node = parent.appendChild(document.createElementNS(space, name));
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.textContent = text;
  return node;
}

// The static parts of a picture, and a function that draws a moment of a run into them.
export function drawing(svg, run, solved, places, { resources, locked, parts = [] }, id) {
  const { drive, pile, workers, queue, link, chip: eater, cell, wide } = places, middle = (TOP + FLOOR) / 2;
  svg.replaceChildren();
  svg.classList.toggle("narrow", !wide);
  svg.setAttribute("viewBox", `0 0 ${places.width} ${HEIGHT}`);
  const looks = Object.fromEntries(resources.map((one) => [one.name, one]));
  const title = put(svg, "title"), desc = put(svg, "desc"), defs = put(svg, "defs");
  const pattern = (name, ground, ink, path) => {
    const one = put(defs, "pattern", { id: `${id}-${name}`, width: 8, height: 8, patternUnits: "userSpaceOnUse" });
    put(one, "rect", { width: 8, height: 8, fill: ground });
    put(one, "path", { d: path, stroke: ink, "stroke-opacity": 0.45, "stroke-width": 1.3, fill: "none" });
  };
  for (const { name, color, ink, hatch } of resources) pattern(name, color, ink, HATCHES[hatch]);
  pattern("ready", LOOKS.ready, "none", "");
  pattern("held", "#e3f1fb", "#0072B2", HATCHES.xx);
  pattern("wanted", "var(--sl-soft)", "none", "");
  pattern("waits", "none", "currentColor", HATCHES["//"]);
  const fill = (name) => `url(#${id}-${name})`;
  const middleOf = (part) => part.x + part.width / 2;
  const reads = "storage" in solved.times, copies = "link" in solved.times || "decoder" in solved.times;
  // Titles, and below each station how busy it is.
  const crew = `${run.lanes} worker${run.lanes === 1 ? "" : "s"}`;
  const named = (name) => looks[name].label;
  const stations = [[reads ? named("storage") : "memory", reads ? "storage" : "", reads ? drive : { x: drive.x, width: pile.x + pile.width - drive.x }],
    [crew, "CPU", workers], ["queue", "", queue], [copies ? named((solved.times.decoder ?? 0) > (solved.times.link ?? 0) ? "decoder" : "link") : "", copies ? "link" : "", link], [named("accelerator"), "accelerator", eater]];
  // What binds is never idle: where single batches are late, nothing binds, though the GPU does on average.
  const total = state(run, run.end).busy, late = solved.bottleneck === "accelerator" && total.accelerator < 0.98;
  const gauges = stations.map(([label, name, part]) => {
    const binds = !locked && !late && name !== "" && name === (solved.bottleneck === "decoder" ? "link" : solved.bottleneck);
    const differs = parts.includes(name);
    put(svg, "text", { x: middleOf(part), y: 16, class: differs ? "parts" : binds ? "binds" : "" }, differs ? `≠ ${label}` : label);
    if (differs) put(svg, "rect", { x: part.x, y: 22, width: part.width, height: 158, rx: 6, class: "parts" });
    const text = put(svg, "text", { x: middleOf(part), y: 213, class: binds ? "binds" : "" });
    // Below it: how much the workers wait, what of a busy GPU trains or is launching, or that it binds.
    const share = { CPU: solved.prepares, accelerator: solved.launches ? 1 - solved.launches : solved.trains }[name] ?? 1;
    const verb = name === "CPU" ? "waits" : solved.launches ? "launches" : "trains";
    const note = `${binds ? "▲ " : ""}${verb} `, mixed = !locked && share < 0.98 && (verb !== "launches" || part.width > 110);
    const below = (binds || mixed || name === "accelerator") && put(svg, "text", { x: middleOf(part), y: 230, class: binds ? "binds" : "" });
    if (!name) return { text };
    put(svg, "rect", { x: part.x, y: 188, width: part.width, height: 9, rx: 3, class: "ground" });
    const rest = put(svg, "rect", { x: part.x, y: 188, height: 9, rx: 3, fill: fill(verb === "trains" ? "decoder" : "waits") });
    return { name, text, below, binds, mixed, note, share, rested: verb !== "trains", part, rest, bar: put(svg, "rect", { x: part.x, y: 188, height: 9, rx: 3, fill: fill(name) }) };
  });
  // The stations themselves: a belt, the drive, a lane for each worker, the queue, the chip.
  if (reads) {
    const [x, w, y] = [drive.x + 4, drive.width - 8, middle - 34];
    put(svg, "path", { d: `M${x} ${y}v68a${w / 2} 9 0 0 0 ${w} 0v-68`, class: "ground" });
    put(svg, "path", { d: `M${x} ${y}v68a${w / 2} 9 0 0 0 ${w} 0v-68a${w / 2} 9 0 0 0 ${-w} 0a${w / 2} 9 0 0 0 ${w} 0`, class: "line" });
  }
  put(svg, "path", { d: `M${reads ? pile.x : drive.x + 4} ${FLOOR + 2}H${pile.x + pile.width}M${queue.x} ${FLOOR + 2}H${queue.x + queue.width}`, class: "line" });
  if (copies) put(svg, "path", { d: `M${link.x} ${middle + 14}H${link.x + link.width}M${link.x + link.width - 6} ${middle + 9}l6 5l-6 5`, class: "line" });
  const lanes = Array.from({ length: run.lanes }, (_, lane) => {
    const x = workers.x + cell.width * Math.floor(lane / cell.lines), y = cell.top + cell.height * (lane % cell.lines);
    const size = { x: x + 1, y: y + 1, height: Math.max(1, cell.height - 2), rx: 3 };
    const [ground, done] = [put(svg, "rect", { ...size, width: cell.width - 2 }), put(svg, "rect", { ...size, opacity: 0.35 })];
    const idle = cell.width > 66 && cell.height > 13 && put(svg, "text", { x: x + cell.width / 2, y: y + cell.height / 2 + 4, "font-size": 11 });
    return { ground, done, idle };
  });
  const side = Math.min(eater.width - 12, 92), [left, high] = [middleOf(eater) - side / 2, middle - side / 2];
  const legs = [0.2, 0.4, 0.6, 0.8].map((at) => `M${left + at * side} ${high - 6}v6m0 ${side}v6M${left - 6} ${high + at * side}h6m${side} 0h6`);
  put(svg, "path", { d: legs.join(""), class: "line", "stroke-width": 3 });
  const empty = put(svg, "rect", { x: left, y: high, width: side, height: side, rx: 8, fill: fill("waits") });
  const decoded = put(svg, "rect", { x: left, width: side, rx: 8, fill: fill("decoder") });
  const food = put(svg, "rect", { x: left, width: side, rx: 8, fill: fill("accelerator") });
  put(svg, "rect", { x: left, y: high, width: side, height: side, rx: 8, class: "line", "stroke-width": 2, "stroke-opacity": 1 });
  const face = put(svg, "path", { fill: "none", stroke: "currentColor", "stroke-width": side / 22, "stroke-linecap": "round",
    transform: `translate(${left} ${high}) scale(${side / 100})`, "vector-effect": "non-scaling-stroke" });
  const belt = put(svg, "g"), tokens = new Map();

  function draw(t, ease = 1, loops = 1) {
    const now = state(run, t), found = scene(run, t, now, places), seen = new Set(), whole = loops * run.end + t;
    for (const { i, x, y, looks: kind, size } of found.tokens) {
      const key = run.batch[i];
      let token = tokens.get(key);
      if (!token) {
        const node = put(belt, "g", { class: "token" });
        token = { node, x, y, size, box: put(node, "rect", { rx: 3, stroke: "currentColor", "stroke-width": 0.8 }), text: put(node, "text", { y: 4, "font-size": key > 98 ? 8 : 11 }, key + 1) };
        tokens.set(key, token);
      }
      seen.add(key);
      for (const [name, to] of Object.entries({ x, y, size })) token[name] += (to - token[name]) * ease;
      token.node.setAttribute("transform", `translate(${token.x.toFixed(1)} ${token.y.toFixed(1)})`);
      const half = token.size / 2;
      for (const [name, value] of Object.entries({ x: -half, y: -half, width: token.size, height: token.size })) token.box.setAttribute(name, value.toFixed(1));
      if (token.kind !== kind) token.box.setAttribute("fill", fill(token.kind = kind));
      token.text.setAttribute("fill", looks[kind]?.ink ?? (kind === "waits" ? "currentColor" : "black"));
      token.text.style.display = token.size < 18 || key > 998 || kind === "accelerator" ? "none" : "";
    }
    for (const [key, token] of tokens) if (!seen.has(key)) { token.node.remove(); tokens.delete(key); }
    const trails = new Map(found.trails.map((trail) => [trail.number, trail]));
    lanes.forEach(({ ground, done, idle }, lane) => {
      const trail = trails.get(lane);
      ground.setAttribute("class", trail ? "ground" : "idle");
      done.setAttribute("width", trail ? Math.max(0, trail.done * (cell.width - 2)) : 0);
      if (trail) done.setAttribute("fill", looks[trail.looks]?.color ?? "none");
      if (idle) idle.textContent = trail || locked ? "" : "waits";
    });
    gauges.forEach(({ name, text, below, binds, mixed, note, share, rested, part, rest, bar }, place) => {
      if (locked) return;
      if (!name) {
        if (place) text.textContent = place === 2 ? `${wide ? "holds " : ""}${now.queue.length}` : "";
        return;
      }
      const busy = ((loops * run.end * total[name] + t * now.busy[name]) / whole) * (name === "accelerator" ? working(solved) : 1);
      const within = Math.max(0, Math.min(1, busy)), own = name === "CPU" ? busy * share : busy;
      bar.setAttribute("width", within * share * part.width);
      rest.setAttribute("x", part.x + within * share * part.width);
      rest.setAttribute("width", within * (1 - share) * part.width);
      text.textContent = `${wide && part.width > 76 ? "busy " : ""}${percent(own)}`;
      if (below) below.textContent = mixed ? `${note}${percent(busy * (rested ? 1 - share : share))}` : binds ? (wide ? "▲ binds" : "binds") : "so far";
    });
    // Kernels that decode come first, and then the model.
    const first = Math.min(found.eaten, 1 - solved.trains);
    decoded.setAttribute("y", high + side * (1 - first));
    decoded.setAttribute("height", side * first);
    food.setAttribute("y", high + side * (1 - found.eaten));
    food.setAttribute("height", side * (found.eaten - first));
    empty.setAttribute("opacity", now.waits ? 0.5 : 0);
    const chews = now.waits ? "M34 74q16 -14 32 0" : Math.floor(found.eaten * 6) % 2 ? "M32 66h36" : "M32 62q18 24 36 0z";
    face.setAttribute("d", `${now.waits ? "M24 42h16M60 42h16" : "M32 36v10M68 36v10"}${chews}`);
    return now;
  }
  return { draw, title, desc };
}

// A moment at which the picture says what is so most of the time.
function typical(run) {
  const starves = 1 - state(run, run.end).busy.accelerator > 0.5, times = Array.from({ length: 60 }, (_, n) => run.end * (0.3 + n / 100));
  return times.find((t) => state(run, t).waits === starves) ?? run.end / 2;
}

// --- the component: pictures with their buttons, their sliders and their table ---

const FASTEST = 1.0005; // so near to the shortest step a setting counts as fast as any

// The busy share of the accelerator in a run of its own, where times are given for each batch: no mean tells it.
const busyIn = (rule, setting) => {
  const run = follow(solve(rule, setting), { ...rule, ...setting });
  return state(run, run.end).busy.accelerator;
};

// What a slider is to find: the smallest value of a control with which a sample takes as short as with any larger one, or with
// which the accelerator is busy for a share of a step.
export function fewest({ rule, setting }, name, values, until) {
  const at = (value) => ({ ...setting, [name]: value });
  if (rule.prepare) return values.find((value) => busyIn(rule, at(value)) >= (until ?? 0.995)) ?? null;
  if (until) return values.find((value) => solve(rule, at(value)).utilization >= until) ?? null;
  const steps = values.map((value) => solve(rule, at(value)).step / at(value).batch), shortest = Math.min(...steps);
  const least = steps.findIndex((step) => step <= FASTEST * shortest);
  // Where the last value is the fastest, more of it might bring more.
  return least < values.length - 1 ? values[least] : null;
}

const bind = (label) => `the ${label} ${label.endsWith("s") ? "bind" : "binds"}`;

// One belt of a picture: what it plays, where it is in that, and its words.
function makeBelt(root, id, heading) {
  const title = put(root, "p", { class: "sl-name" }, heading), said = put(root, "p", { role: "status" });
  const svg = put(root, "svg", { role: "img", height: HEIGHT, "aria-labelledby": `${id}-t`, "aria-describedby": `${id}-d` });
  let data, solved, run, picture, t = null, loops = 1;

  function show(changed) {
    const at = t === null || data.locked ? null : t / run.end;
    data = { ...data, ...changed };
    solved = solve(data.rule, data.setting);
    run = data.run ?? follow(solved, { ...data.rule, ...data.setting });
    t = data.locked ? -1e9 : at === null ? typical(run) : at * run.end;
    title.style.display = heading ? "" : "none";
    said.style.display = data.locked ? "none" : "";
  }
  // How fast it is played at most [ms of the run for a second].
  function speed() {
    const took = (from, to) => run.batch.reduce((sum, _, i) => sum + run[to][i] - run[from][i], 0) / run.batch.length;
    return Math.max(took("step_start", "step_end") / 0.6, took("prepare_start", "prepared") / 6);
  }
  const label = (resource) => data.resources.find(({ name }) => name === resource).label;
  function tell(spoken) {
    const { bottleneck } = solved, { accelerator } = state(run, run.end).busy, works = working(solved);
    const chip = `the ${label("accelerator")}`, waits = 1 - accelerator * works;
    // Cores idle then: nobody shall buy some.
    const idle = bottleneck === "CPU" && solved.prepares < 0.95;
    const much = waits < 0.005 ? `${bottleneck === "accelerator" ? "it" : chip} never waits` : `${chip} waits ${percent(waits)} of the time`;
    // Late batches cost what no mean time tells.
    const text = bottleneck === "accelerator" && works < 0.98 ? `Nothing is slower than launching the work: ${much}.`
      : bottleneck === "accelerator" && waits > 0.02 ? `On average nothing is slower than ${chip}, and yet ${much}.`
      : idle ? `${capital(bind(label(bottleneck)))}, and wait for the ${label("storage")}: ${much}.` : `${capital(bind(label(bottleneck)))}: ${much}.`;
    if (data.locked) return;
    said.setAttribute("aria-live", spoken ? "polite" : "off");
    if (said.textContent !== text) said.textContent = text;
  }
  function rows() {
    const { times, step } = solved, busy = state(run, run.end).busy, name = heading ? `${heading}: ` : "";
    busy.accelerator *= working(solved);
    return data.resources.filter((one) => one.name in times).map((one) =>
      [name + one.label, `${number(1e3 * times[one.name])}\u00a0ms`, percent(busy[one.name] ?? times[one.name] / step)]);
  }
  function draw() {
    picture = drawing(svg, run, solved, layout(Math.max(300, Math.min(800, root.clientWidth || 640)), run), data, id);
    picture.title.id = `${id}-t`;
    picture.desc.id = `${id}-d`;
    picture.title.textContent = data.locked ? "Nothing moves yet" : said.textContent;
    const now = paint();
    picture.desc.textContent = `Batches travel from ${run.read_start ? `the ${label("storage")}` : "memory"} through ${run.lanes} workers and a queue into the ${label("accelerator")}. `
      + (data.locked ? "" : `At this moment ${run.lanes - now.idle.length} workers prepare a batch, ${now.queue.length} batches wait in the queue, and the ${label("accelerator")} ${now.waits ? "waits" : "computes"}.`);
  }
  const paint = (ease = 1) => picture.draw(t, ease, loops);
  function pass(time) {
    t += time;
    if (t > run.end) [t, loops] = [t % run.end, loops + Math.floor(t / run.end)];
  }
  // The time until its next step begins: the first one follows the last one.
  function untilNext() {
    const next = run.step_start.find((start) => start > t + 1e-9 && start < run.end);
    return next === undefined ? run.end - t + run.step_start[0] : next - t;
  }
  return { svg, show, speed, tell, rows, draw, paint, pass, untilNext, now: () => t, data: () => data };
}

// Shows data in an element: {rule, setting, resources}, and of each also a run and controls; or several of
// them as `belts`, each with its name, on one clock. While it is `locked`, nothing moves and nothing is said of the run.
// Where a control is named by `find`, the picture says when its slider stands where more of it brings nothing. `rests` is
// told the setting when a slider has come to rest. Returns a function to show other data, and one that ends it all.
export function mount(el, data, rests = () => {}) {
  const id = `sl-${Math.random().toString(36).slice(2)}`, root = put(el, "div", { class: "sl-moving" });
  put(root, "style", {}, STYLE);
  const sliders = put(root, "div", { class: "sl-row" });
  const belts = (data.belts ?? [data]).map(({ name = "" }, place) =>
    makeBelt(put(root, "div", { class: "sl-belt" }), `${id}-${place}`, name));
  const row = put(root, "div", { class: "sl-row" });
  const act = data.find && put(root, "p", { class: "sl-act", role: "status", "aria-live": "polite" });
  const play = put(row, "button", { type: "button" }), one = put(row, "button", { type: "button" }, "One step");
  const slow = put(row, "button", { type: "button", "aria-pressed": false }, "Slow"), clock = put(row, "span");
  const details = put(root, "details"), still = matchMedia("(prefers-reduced-motion: reduce)");
  put(details, "summary", {}, "The same as a table");
  const table = put(put(details, "div", { class: "sl-wide" }), "table");
  let speed, playing = false, seen = false, frame = 0, before = 0, timer = 0, moved = false;
  const locked = () => belts[0].data().locked;

  function show(changed, spoken = true) {
    data = { ...data, ...changed };
    belts.forEach((belt, place) => belt.show({ ...changed, ...changed.belts?.[place] }));
    speed = Math.max(...belts.map((belt) => belt.speed()));
    for (const part of [row, details, ...(act ? [act] : [])]) part.style.display = locked() ? "none" : "";
    tell(spoken);
    place();
    if (!playing || locked()) go(wanted);
  }
  function tell(spoken) {
    for (const belt of belts) belt.tell(spoken);
    const rows = belts.flatMap((belt) => belt.rows()).map(([name, ...cells]) =>
      `<tr><th scope="row">${name}</th>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`);
    table.innerHTML = `<thead><tr><th scope="col">resource</th><th scope="col">time for a batch</th><th scope="col">busy</th></tr></thead><tbody>${rows.join("")}</tbody>`;
    if (act) confirm();
  }
  // Say of each belt whether its slider stands where more brings nothing.
  function confirm() {
    const { find, until } = data, what = find === "batch" ? "the smallest batch" : "the fewest workers", values = data.controls[find];
    const found = belts.map((belt, place) => {
      const { rule, setting, resources, name } = { ...data, ...belt.data() }, whose = name ? `${name}: ` : "";
      const called = (resource) => resources.find((one) => one.name === resource).label;
      const best = fewest({ rule, setting }, find, values, until), at = setting[find];
      // In a tie it is what binds behind it.
      const binds = solve(rule, { ...setting, [find]: values.at(-1) }).bottleneck;
      const end = until ? `the ${called("accelerator")} is busy for ${percent(until)} of the time` : binds === "accelerator" ? "it never waits" : `${bind(called(binds))}, and more bring nothing`;
      if (at === best && moved) return `✓ ${whose}${at}: ${end}.`;
      if (best === null) return `${whose}even ${values.at(-1)} are too few.`;
      return at > best && moved ? `${whose}${at} are enough. Are fewer, too?` : `${whose}find ${what} ${until ? `with which the ${called("accelerator")} is busy for ${percent(until)} of the time` : "beyond which more bring nothing"}.`;
    });
    const text = found.map(capital).join(" ");
    if (act.textContent !== text) act.textContent = text;
    act.classList.toggle("done", found.some((one) => one.startsWith("✓")));
  }
  function place() {
    for (const belt of belts) belt.draw();
    paint();
  }
  function paint(ease = 1) {
    for (const belt of belts) belt.paint(ease);
    clock.textContent = `${number(belts[0].now(), 5)} ms`;
  }
  function tick(time) {
    frame = 0;
    const passed = Math.min(0.1, (time - before) / 1e3);
    before = time;
    if (playing) for (const belt of belts) belt.pass(passed * speed * (slow.ariaPressed === "true" ? 0.25 : 1));
    paint(still.matches ? 1 : 1 - Math.exp(-14 * passed));
    if (playing || time < settles) ask();
  }
  let settles = 0;
  const ask = () => { frame ||= requestAnimationFrame(tick); };
  function go(wanted) {
    playing = wanted && seen && !still.matches && !locked();
    play.textContent = wanted && !still.matches ? "Pause" : "Play";
    if (!playing) return;
    // One picture moves at a time: another copy of this script may have drawn the other one.
    dispatchEvent(new CustomEvent("starvelab-plays", { detail: id }));
    before = performance.now();
    ask();
  }
  let wanted = true;
  play.addEventListener("click", () => go(wanted = !playing));
  slow.addEventListener("click", () => { slow.ariaPressed = String(slow.ariaPressed !== "true"); });
  one.addEventListener("click", () => {
    go(wanted = false);
    const next = Math.min(...belts.map((belt) => belt.untilNext()));
    for (const belt of belts) belt.pass(next);
    settles = performance.now() + 500;
    before = performance.now();
    ask();
  });
  for (const [name, values] of Object.entries(data.controls ?? {})) {
    const label = put(sliders, "label"), text = put(label, "span");
    const input = put(label, "input", { type: "range", min: 0, max: values.length - 1, step: 1, "aria-label": NAMES[name] });
    const value = () => values[input.value];
    const name_it = () => {
      text.textContent = `${value()} ${name === "batch" ? "a batch" : NAMES[name]}`;
      input.setAttribute("aria-valuetext", value());
    };
    const settings = () => belts.map((belt) => ({ setting: { ...belt.data().setting, [name]: value() }, run: null }));
    input.value = Math.max(0, values.indexOf((data.belts?.[0] ?? data).setting[name]));
    name_it();
    input.addEventListener("input", () => {
      name_it();
      moved = true;
      show({ belts: settings() }, false);
      clearTimeout(timer);
      timer = setTimeout(() => { tell(true); rests(belts[0].data().setting); }, 250);
    });
  }
  const hear = ({ detail }) => { if (detail !== id) go(wanted = false); };
  const calm = () => { play.hidden = slow.hidden = still.matches; go(wanted); };
  addEventListener("starvelab-plays", hear);
  still.addEventListener("change", calm);
  const sight = new IntersectionObserver(([{ isIntersecting }]) => { seen = isIntersecting; go(wanted); }, { threshold: 0.3 });
  let width = 0;
  const size = new ResizeObserver(() => { if (width !== (width = root.clientWidth)) place(); });
  show(data);
  calm();
  sight.observe(belts[0].svg);
  size.observe(root);
  return {
    show,
    end() {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
      removeEventListener("starvelab-plays", hear);
      still.removeEventListener("change", calm);
      for (const one of [sight, size]) one.disconnect();
      root.remove();
    },
  };
}

// --- the lab's widget --------------------------------------------------------

function render({ model, el }) {
  const picture = mount(el, model.get("data"), (setting) => { model.set("setting", setting); model.save_changes(); });
  const changed = () => picture.show(model.get("data"));
  model.on("change:data", changed);
  return () => { model.off("change:data", changed); picture.end(); };
}

export default { render };
