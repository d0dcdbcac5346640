// Candidates as lanes that fork, merge and collapse, below a strip of modes.
import {keyOf, parentOf} from "./playback.js";
import {counted, number, stepSentence} from "./sentences.js";

const SHAPES = {
  start: "circle", search: "circle", parallel: "square", branch: "diamond", reopened: "cross", kept: "ring",
  verified: "triangle",
};

export const TOLD = {
  start: "start", search: "search: unsure, one choice among several", parallel: "parallel: sure, all at once",
  branch: "branch: another token than the likeliest", reopened: "reopened: tokens taken back",
  kept: "kept: nothing left to do", verified: "verified: the text was scored",
};

const SPACE = {left: 10, right: 10, strip: 9, gap: 12, lane: 18, axis: 16, least: 6, most: 18};

// Where each candidate stands: across by step, down by lane. A dive has lanes of its own, as many as it had candidates
// at once. A candidate that a step made of another of the same step stays on its lane, a little to the right of it.
function layout(playback) {
  const own = [], widths = new Map();
  playback.steps.forEach((record, place) => own.push(laneInDive(record, place + 1, widths)));
  const offsets = new Map();
  let lanes = 0;
  for (const dive of [...widths.keys()].sort((a, b) => a - b)) {
    offsets.set(dive, lanes);
    lanes += widths.get(dive);
  }
  const path = new Set(playback.path.map(keyOf)), dots = new Map();
  playback.steps.forEach((record, place) => record.beam.forEach((entry, first) => {
    const step = place + 1, {lane, depth, deepest} = own[place][first];
    const x = deepest ? step - 0.7 * (1 - depth / deepest) : step;
    const key = keyOf({step, first});
    dots.set(key, {
      key, step, first, x, lane: offsets.get(entry.dive) + lane, mode: entry.mode, onPath: path.has(key),
      parent: keyOf(parentOf(entry)), told: `Step ${step}: ${stepSentence(playback, {step, first}, step)}, rank ${number(entry.rank)}`,
    });
  }));
  return {lanes: Math.max(lanes, 1), last: playback.last, dots};
}

function laneInDive(record, step, widths) {
  const used = new Map(), continued = new Set(), found = [];
  record.beam.forEach((entry, first) => {
    const parent = entry.after === step && entry.origin < first ? found[entry.origin] : null;
    if (parent && !continued.has(entry.origin)) {
      continued.add(entry.origin);
      found.push({lane: parent.lane, depth: parent.depth + 1});
      return;
    }
    const lane = used.get(entry.dive) || 0;
    used.set(entry.dive, lane + 1);
    found.push({lane, depth: parent ? parent.depth + 1 : 0});
  });
  record.beam.forEach((entry, first) => {
    widths.set(entry.dive, Math.max(widths.get(entry.dive) || 1, found[first].lane + 1));
  });
  const deepest = Math.max(0, ...found.map(one => one.depth));
  return found.map(one => ({...one, deepest}));
}

// Draws modes and lanes into a box. Steps are as far apart as those of the longer of two methods allow, so that both
// can be compared. ``choose`` gets the step, and the place of the candidate if one was clicked.
export function drawLanes(box, playback, steps, choose) {
  const plan = layout(playback);
  const room = (box.clientWidth || 320) - SPACE.left - SPACE.right;
  const apart = Math.min(Math.max(room / Math.max(steps, 1), SPACE.least), SPACE.most);
  const x = step => SPACE.left + step * apart;
  const top = SPACE.strip + SPACE.gap;
  const y = lane => top + (lane + 0.5) * SPACE.lane;
  const width = x(steps) + SPACE.right, bottom = top + plan.lanes * SPACE.lane;
  const drawn = svg("svg", {width, height: bottom + SPACE.axis, role: "img", "aria-label": lanesSentence(playback, plan)});
  drawn.append(drawnStrip(playback, x, apart), drawnAxis(plan.last, x, apart, bottom));
  const marker = svg("line", {y1: 0, y2: bottom}, "marker");
  drawn.append(marker, ...drawnLines(plan, x, y), ...drawnDots(plan, x, y, apart));
  drawn.addEventListener("click", event => {
    const dot = event.target.closest("[data-key]");
    if (dot) choose(Number(dot.dataset.step), {step: Number(dot.dataset.step), first: Number(dot.dataset.first)});
    else choose(nearest(event, drawn, apart, plan.last), null);
  });
  box.replaceChildren(drawn);
  return {mark: place => markLanes(drawn, marker, box, x, place)};
}

function nearest(event, drawn, apart, last) {
  const across = event.clientX - drawn.getBoundingClientRect().left - SPACE.left;
  return Math.min(Math.max(Math.round(across / apart), 0), last);
}

function markLanes(drawn, marker, box, x, {step, shown}) {
  marker.setAttribute("x1", x(step));
  marker.setAttribute("x2", x(step));
  for (const old of drawn.querySelectorAll(".shown")) old.classList.remove("shown");
  const dot = drawn.querySelector(`[data-key="${keyOf(shown)}"]`);
  if (dot) dot.classList.add("shown");
  const off = x(step) < box.scrollLeft + 20 || x(step) > box.scrollLeft + box.clientWidth - 20;
  if (off) box.scrollLeft = x(step) - box.clientWidth / 2;
}

function drawnStrip(playback, x, apart) {
  const strip = svg("g", {}, "strip");
  for (let step = 1; step <= playback.last; step++) {
    const place = playback.standing(step);
    const mode = place.step === step ? playback.at(place).mode : "nothing";
    const wide = Math.max(apart - 1, 1);
    strip.append(svg("rect", {x: x(step) - wide / 2, y: 0, width: wide, height: SPACE.strip}, `mode-${mode}`));
  }
  return strip;
}

function drawnAxis(last, x, apart, bottom) {
  const axis = svg("g", {"aria-hidden": "true"}, "axis");
  const every = [1, 2, 5, 10, 20, 50, 100, 200, 500].find(one => one * apart >= 28) || 1000;
  for (let step = 0; step <= last; step += every) {
    const label = svg("text", {x: x(step), y: bottom + SPACE.axis - 4});
    label.textContent = step;
    axis.append(label);
  }
  return axis;
}

function drawnLines(plan, x, y) {
  const start = {x: 0, lane: 0};
  return [...plan.dots.values()].sort((a, b) => a.onPath - b.onPath).map(dot => {
    const from = plan.dots.get(dot.parent) || start;
    const [x1, y1, x2, y2] = [x(from.x), y(from.lane), x(dot.x), y(dot.lane)];
    const bend = Math.min(14, (x2 - x1) / 2);
    const d = y1 === y2 ? `M${x1} ${y1}H${x2}` : `M${x1} ${y1}H${x2 - 2 * bend}C${x2 - bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
    return svg("path", {d}, `link mode-${dot.mode}${dot.onPath ? " on-path" : ""}`);
  });
}

function drawnDots(plan, x, y, apart) {
  const start = svg("circle", {cx: x(0), cy: y(0), r: 2.5}, "origin");
  const size = Math.min(Math.max(apart * 0.42, 2.4), 5);
  return [start, ...[...plan.dots.values()].map(dot => {
    const made = shape(SHAPES[dot.mode], x(dot.x), y(dot.lane), dot.onPath ? size : size * 0.8);
    made.setAttribute("class", `dot mode-${dot.mode}${dot.onPath ? " on-path" : ""}`);
    Object.assign(made.dataset, {key: dot.key, step: dot.step, first: dot.first});
    const title = svg("title", {});
    title.textContent = dot.told;
    made.append(title);
    return made;
  })];
}

function shape(kind, x, y, r) {
  if (kind === "square") return svg("rect", {x: x - r * 0.9, y: y - r * 0.9, width: r * 1.8, height: r * 1.8});
  if (kind === "diamond") return svg("path", {d: `M${x} ${y - r * 1.3}L${x + r * 1.3} ${y}L${x} ${y + r * 1.3}L${x - r * 1.3} ${y}Z`});
  if (kind === "triangle") return svg("path", {d: `M${x} ${y - r * 1.2}L${x + r * 1.2} ${y + r}L${x - r * 1.2} ${y + r}Z`});
  if (kind === "cross") return svg("path", {d: `M${x - r} ${y - r}L${x + r} ${y + r}M${x + r} ${y - r}L${x - r} ${y + r}`});
  return svg("circle", {cx: x, cy: y, r: kind === "ring" ? r * 0.8 : r});
}

function lanesSentence(playback, plan) {
  const counts = new Map();
  for (const place of playback.path) {
    const mode = playback.at(place).mode;
    counts.set(mode, (counts.get(mode) || 0) + 1);
  }
  const modes = [...counts].map(([mode, count]) => `${mode} ${count}`).join(", ");
  return `Candidates over ${counted(playback.last, "step")}, on ${counted(plan.lanes, "lane")}; on the way to the answer: ${modes || "nothing"}.`;
}

// A sign as the lanes have it, for a legend.
export function sign(mode) {
  const drawn = svg("svg", {width: 14, height: 14, "aria-hidden": "true"});
  const made = shape(SHAPES[mode], 7, 7, 4.4);
  made.setAttribute("class", `dot on-path mode-${mode}`);
  drawn.append(made);
  return drawn;
}

function svg(name, attributes, kind) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (kind) made.setAttribute("class", kind);
  return made;
}
