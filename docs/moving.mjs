// Reads what `data_of` says of a pipeline, and writes the moving picture of it as an SVG that needs no script.
//
// It lets `drawing` draw into nodes that remember what they were at each moment, and makes CSS animations of that: so
// they stop for whoever wants no motion.
//
//     node docs/moving.mjs < data.json > moving.svg

import { readFileSync } from "node:fs";
import { STYLE, drawing, follow, layout, solve } from "../starvelab/lesson/widgets/moving.js";

const WIDTH = 780, FRAMES = 48, SECONDS = 6, ALWAYS = 1e6;
let frame = 0;

class Recorded {
  constructor(name) { Object.assign(this, { name, namespaceURI: "svg", children: [], style: {}, attributes: {}, moments: [], born: frame, died: FRAMES }); }
  appendChild(child) { this.children.push(child); return child; }
  replaceChildren() { this.children = []; }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  remove() { this.died = frame; }
  get classList() { return { toggle() {} }; }
  // What it is now, or nothing while it is not there.
  note() {
    const there = this.born <= frame && frame < this.died && this.style.display !== "none";
    this.moments[frame] = there ? { ...this.attributes, text: String(this.textContent ?? "") } : null;
    for (const child of this.children) child.note();
  }
}
globalThis.document = { createElementNS: (_, name) => new Recorded(name) };

// CSS moves these; a node whose text or path changes is written once for each of them.
const MOVES = { transform: (value) => value.replace(/([-\d.]+) ([-\d.]+)/, "$1px,$2px"), width: (v) => `${v}px`, height: (v) => `${v}px`,
  y: (v) => `${v}px`, fill: (v) => v, opacity: (v) => v };
const rules = [];
const escape = (text) => text.replace(/[&<"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

function write(node) {
  const moments = Array.from({ length: FRAMES }, (_, n) => node.moments[n] ?? null);
  const variants = new Set(moments.filter(Boolean).map(({ text, d }) => JSON.stringify([text, d ?? ""])));
  return [...variants].map((variant) => writeOne(node, moments.map((one) => one && JSON.stringify([one.text, one.d ?? ""]) === variant ? one : null))).join("");
}

function writeOne(node, moments) {
  const some = moments.find(Boolean), changing = Object.keys(MOVES).filter((name) => new Set(moments.filter(Boolean).map((one) => one[name])).size > 1);
  const { text, ...attributes } = some;
  if (changing.length || moments.includes(null)) {
    const css = (one) => (one ? changing.map((name) => `${name}:${MOVES[name](one[name])}`).concat("visibility:visible").join(";") : "visibility:hidden");
    const frames = moments.map(css), name = `a${rules.length}`;
    // Only where something changes; and it jumps where it appears, goes, or is drawn with another fill.
    const kept = frames.flatMap((one, n) => (one === frames[n - 1] && one === frames[n + 1] ? [] : [`${+((100 * n) / FRAMES).toFixed(2)}%{${one}}`]));
    rules.push(`@keyframes ${name}{${kept.join("")}100%{${frames[0]}}}.${name}{animation:${name} ${SECONDS}s ${moments.includes(null) && !changing.length ? "step-end" : "linear"} infinite}`);
    attributes.class = [attributes.class, name].filter(Boolean).join(" ");
    if (!moments[0]) attributes.visibility = "hidden";
  }
  const given = Object.entries(attributes).map(([key, value]) => ` ${key}="${escape(value)}"`).join("");
  return `<${node.name}${given}>${node.children.map(write).join("")}${node.children.length ? "" : escape(text ?? "")}</${node.name}>`;
}

const data = JSON.parse(readFileSync(0, "utf8"));
const solved = solve(data.rule, data.setting), run = data.run ?? follow(solved, { ...data.rule, ...data.setting });
const svg = new Recorded("svg"), picture = drawing(svg, run, solved, layout(WIDTH, run), data, "sl");
// One round of the workers, after which all is as it was; it is played once before, so that every batch is on its way.
const round = run.prepared[0] - run.prepare_start[0], pace = 1 - Math.exp((-14 * SECONDS) / FRAMES);
// The first moment is what a still, a mail and a preview show: the middle of the longest wait.
const trial = drawing(new Recorded("svg"), run, solved, layout(WIDTH, run), data, "trial");
const waits = Array.from({ length: 2 * FRAMES }, (_, n) => trial.draw((2 + n / FRAMES) * round, 1, ALWAYS).waits);
const until = waits.map((_, n) => waits.slice(n).findIndex((one) => !one)), longest = Math.max(...until);
const start = until.indexOf(longest) + Math.floor(longest / 2), at = (n) => (2 + (start + n) / FRAMES) * round;
for (let n = -FRAMES; n < FRAMES; n++) {
  frame = Math.max(0, n);
  picture.draw(at(n), pace, ALWAYS);
  if (n >= 0) svg.note();
}
picture.title.moments = picture.title.moments.map((one) => ({ ...one, text: data.title }));
picture.desc.moments = picture.desc.moments.map((one) => ({ ...one, text: data.desc }));
const body = svg.children.filter(({ children, textContent }) => children.length || textContent !== undefined).map(write).join("");
process.stdout.write(`<svg xmlns="http://www.w3.org/2000/svg" class="sl-moving" role="img" viewBox="0 0 ${WIDTH} 236" font-family="sans-serif" font-size="13" color="#1b1f24">`
  + `<style>${STYLE.replace(/\n/g, "")}@media (prefers-reduced-motion: no-preference){${rules.join("")}}</style><rect width="100%" height="100%" rx="8" fill="#fff"/>${body}</svg>\n`);
