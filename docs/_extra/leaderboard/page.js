// Designs of hosts beside each other. They stand in the address, with what they cost, and each is computed again.
// The rule is that of the moving picture, and BUDGET comes from the package: a test compares `answer` with it.

import { solve } from "../moving.js";
import BUDGET from "./tables.js";

const $ = (id) => document.getElementById(id);
const { most, prices } = BUDGET;
const counts = Object.keys(most);

// What the model says of a design: the busy share of its GPUs, hours, dollars, and what is against it.
export function answer({ gpu, gpus, cores, drives }) {
  const one = BUDGET.rules[gpu];
  const stages = one.stages.map((stage) => stage.resource !== "storage" ? stage
    : { ...stage, pieces: stage.pieces.map((piece) => piece.map((time) => (time * gpus) / drives)) });
  const found = solve({ ...one, stages, preparing: { ...one.preparing, cores, count: gpus } }, { batch: BUDGET.batch, workers: cores });
  const hours = (BUDGET.images / (BUDGET.batch * gpus)) * (found.step / 3600), busy = found.utilization;
  const dollars = hours * (gpus * prices[gpu] + cores * prices.core + drives * prices.drive);
  const against = busy < BUDGET.busy ? found.bottleneck : hours <= BUDGET.hours ? "none" : "time";
  return { busy, hours, dollars, against };
}

// --- the address: A100-2-39-3=35.45=Ada, one for each design --------------------------------------------------

const isDesign = (one) => one.gpu in BUDGET.rules && counts.every((name) => Number.isInteger(one[name]) && one[name] >= 1 && one[name] <= most[name]);

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

export function read(hash) {
  return hash.replace(/^#/, "").split(";").filter(Boolean).slice(0, 200).map((part) => {
    const [host, claimed, name] = part.split("="), [gpu, ...numbers] = host.split("-");
    const design = Object.fromEntries(counts.map((key, i) => [key, /^\d+$/.test(numbers[i] ?? "") ? Number(numbers[i]) : NaN]));
    return { gpu, ...design, claimed, name: decoded(name ?? "").slice(0, 30) };
  });
}

const write = (designs) => "#" + designs.map((one) =>
  `${[one.gpu, ...counts.map((key) => one[key])].join("-")}=${answer(one).dollars.toFixed(2)}=${encodeURIComponent(one.name)}`).join(";");

// --- the page -------------------------------------------------------------------------------------------------

const names = { none: "nothing", CPU: "the workers starve it", storage: "the drives starve it", time: "it takes too long" };
const line = ({ gpu, gpus, cores, drives }) => `${gpus} x ${gpu}, ${cores} cores, ${drives} drive${drives > 1 ? "s" : ""}`;

function put(parent, name, attributes, text) {
  const node = document.createElementNS(parent.namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return parent.appendChild(node);
}

// The bill over the cores of hosts like one, as the lab draws it, on a picture that is so many pixels wide.
function curve(host, wide) {
  const bills = Array.from({ length: 64 }, (_, i) => answer({ ...host, cores: i + 1 }).dollars);
  const best = bills.indexOf(Math.min(...bills)), here = Math.min(host.cores, 64) - 1;
  // One core costs twenty times as much as the best number: the axis ends where the curve can still be read.
  const top = 20 * Math.ceil(Math.min(Math.max(...bills), Math.max(3 * bills[best], bills[here])) / 20);
  const apart = (wide - 80) / 64, at = (n) => 62 + apart * n;
  const place = (i) => [at(i + 1), 200 - (180 * bills[i]) / top];
  const points = bills.map((bill, i) => bill <= top && place(i).map((x) => x.toFixed(1)).join()).filter(Boolean).join(" ");
  const lowest = `${bills[best].toFixed(0)} USD with ${best + 1} cores`;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [key, value] of Object.entries({ viewBox: `0 0 ${wide} 226`, role: "img" })) svg.setAttribute(key, value);
  svg.setAttribute("aria-label", `What the training costs, over the cores, with ${host.gpus} x ${host.gpu} and drives: ${host.drives}. The lowest bill is ${lowest}. With ${here + 1} cores it is ${bills[here].toFixed(0)} USD.`);
  put(svg, "polyline", { points, fill: "none", stroke: "#0072B2", "stroke-width": 2.5 });
  // The ring stands around the disc where both are one.
  for (const [i, r, fill] of [[best, 10, "none"], [here, 6, "#D55E00"]]) {
    const [cx, cy] = place(i);
    put(svg, "circle", { cx, cy, r, fill, stroke: "#D55E00", "stroke-width": 2 });
  }
  for (const dollar of [0, top / 2, top]) put(svg, "text", { x: 54, y: 204 - (180 * dollar) / top, "font-size": 12, "text-anchor": "end" }, `${dollar} USD`);
  for (let n = 8; n <= 64; n += 8) put(svg, "text", { x: at(n), y: 218, "font-size": 12, "text-anchor": "middle" }, n);
  const legend = document.createElement("p");
  legend.textContent = `Cores of the host. Disc: ${host.gpus} x ${host.gpu} with ${here + 1}. Ring: the lowest bill, ${lowest}.`;
  return [svg, legend];
}

let drawn = BUDGET.first;

// Letters keep their size on a phone: there the curve is drawn narrower.
const draw = () => $("curve").replaceChildren(...curve(drawn, Math.min(620, $("curve").clientWidth)));

function show() {
  const all = read(location.hash), designs = all.filter(isDesign).map((one) => ({ ...one, ...answer(one) }));
  const ranked = [...designs].sort((a, b) => (a.against !== "none") - (b.against !== "none") || a.dollars - b.dollars);
  $("rows").replaceChildren();
  for (const one of ranked) {
    const row = put($("rows"), "tr", {});
    put(row, "th", { scope: "row" }, one.name || "somebody");
    for (const cell of [`${one.dollars.toFixed(2)} USD`, line(one), `${(100 * one.busy).toFixed(1)} %`, `${one.hours.toFixed(1)} h`, names[one.against] ?? one.against]) put(row, "td", {}, cell);
  }
  const wrong = designs.filter((one) => one.claimed && Math.abs(Number(one.claimed) - one.dollars) > 0.006).length;
  const said = [
    !all.length && "Nobody is here yet: add a design, and share the link.",
    all.length > designs.length && `Designs that cannot be bought were left out: ${all.length - designs.length}.`,
    wrong && `The address gives ${wrong} of them another price. What stands here was computed again.`,
  ];
  $("said").textContent = said.filter(Boolean).join(" ");
  $("copy").hidden = !designs.length;
  drawn = designs[0] ?? BUDGET.first;
  draw();
}

function start() {
  $("task").textContent = `${BUDGET.epochs} epochs of ImageNet within ${BUDGET.hours} hours, with GPUs that are busy at least ${100 * BUDGET.busy} % of the time: who needs the fewest dollars?`;
  for (const gpu of Object.keys(BUDGET.rules)) put($("gpu"), "option", { value: gpu }, gpu);
  for (const name of counts) Object.assign($(name), { max: most[name], value: BUDGET.first[name] });
  $("gpu").value = BUDGET.first.gpu;
  $("yours").addEventListener("submit", (event) => {
    event.preventDefault();
    const mine = { gpu: $("gpu").value, ...Object.fromEntries(counts.map((name) => [name, $(name).valueAsNumber])), name: $("name").value };
    location.hash = write([mine, ...read(location.hash).filter(isDesign)]);
  });
  $("copy").addEventListener("click", async () => {
    const link = location.href.replace(/#.*/, "") + write(read(location.hash).filter(isDesign));
    try {
      await navigator.clipboard.writeText(link);
      $("said").textContent = "The link is copied: paste it where your course talks.";
    } catch {
      $("said").textContent = `Copy this link: ${link}`;
    }
  });
  addEventListener("hashchange", show);
  addEventListener("resize", draw);
  show();
}

if ($("rows")) start();
