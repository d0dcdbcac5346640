"use strict";

// A decoding shown step by step. A trace has the form that Trace.to_json gives it, {steps, scene}; canvases follow
// soar_dlm/playback.py rule for rule. Whatever a model wrote is inserted as text.
const SoarTrace = (() => {
  const MASK = "\u2591", END = "\u220e", NEWLINE = "\u21b5";
  const SURE = [0.99, 0.9, 0.7, 0.5, 0.3];  // the levels of confidence; below 0.5 is called unsure
  const SHAPES = {
    start: "circle", search: "circle", parallel: "square", branch: "diamond", reopened: "cross", kept: "ring",
    verified: "triangle",
  };
  const TOLD = {
    start: "start", search: "search: unsure, one choice among several", parallel: "parallel: sure, all at once",
    branch: "branch: another token than the likeliest", reopened: "reopened: tokens taken back",
    kept: "kept: nothing left to do", verified: "verified: the text was scored",
  };

  // ---- Canvases

  function startOf(scene) {
    const cells = [];
    scene.blanks.forEach(([first, size], blank) => {
      for (let offset = 0; offset < size; offset++) cells.push(masked(first + offset, blank));
    });
    return cells;
  }

  function masked(at, blank) {
    return {at, blank, token: null, confidence: null, step: null, mode: null};
  }

  // The canvas that an entry leaves of its parent's. Positions to the right of an edit move; an entry that leaves no
  // mask has had the rest filled in.
  function afterStep(before, entry, step, filler) {
    const order = entry.positions.map((_, place) => place).sort((a, b) => entry.positions[a] - entry.positions[b]);
    const cells = [];
    let next = 0, shift = 0;
    for (const cell of before) {
      while (next < order.length && entry.positions[order[next]] < cell.at) {
        shift += entry.sizes[order[next]] - 1;
        next += 1;
      }
      const at = cell.at + shift;
      const place = next < order.length && entry.positions[order[next]] === cell.at ? order[next] : null;
      if (place === null) {
        cells.push(shift ? {...cell, at} : cell);
      } else if (entry.sizes[place] === 1 && entry.mode !== "reopened") {
        const token = entry.tokens[place], confidence = entry.confidence[place];
        cells.push({at, blank: cell.blank, token, confidence, step, mode: entry.mode});
      } else {
        for (let offset = 0; offset < entry.sizes[place]; offset++) cells.push(masked(at + offset, cell.blank));
      }
    }
    return entry.left === 0 ? cells.map(cell => cell.token === null ? {...cell, token: filler} : cell) : cells;
  }

  class Playback {
    constructor(trace) {
      this.steps = trace.steps;
      this.scene = trace.scene;
      this.last = trace.steps.length;
      this.canvases = new Map([["0/0", startOf(trace.scene)]]);
      this.standings = standings(trace.steps);
      this.path = this.placesTo(this.standings[this.last]);
    }

    at(place) {
      return this.steps[place.step - 1].beam[place.first];
    }

    // Where the search stands after a step; a step that left no candidate changes nothing.
    standing(step) {
      return this.standings[Math.min(step, this.last)];
    }

    // The entries on the way to a place, first to last.
    placesTo(place) {
      const found = [];
      while (place.step > 0) {
        found.push(place);
        place = parentOf(this.at(place));
      }
      return found.reverse();
    }

    canvas(place) {
      const missing = [];
      let known = place;
      while (!this.canvases.has(keyOf(known))) {
        missing.push(known);
        known = parentOf(this.at(known));
      }
      let cells = this.canvases.get(keyOf(known));
      for (const one of missing.reverse()) {
        cells = afterStep(cells, this.at(one), one.step, this.scene.filler);
        this.canvases.set(keyOf(one), cells);
      }
      return cells;
    }

    forwards(step) {
      return this.steps.slice(0, step).reduce((sum, record) => sum + record.forwards, 0);
    }
  }

  function standings(steps) {
    const found = [{step: 0, first: 0}];
    steps.forEach((record, place) => {
      found.push(record.beam.length ? {step: place + 1, first: record.best} : found[place]);
    });
    return found;
  }

  function parentOf(entry) {
    return {step: entry.after, first: entry.after ? entry.origin : 0};
  }

  function keyOf(place) {
    return `${place.step}/${place.first}`;
  }

  // A confidence on a scale from 0 (unsure) to 1 (sure), as Scene.share has it.
  function share(scene, confidence) {
    if (scene.low === null) return Math.exp(Math.min(confidence - scene.high, 0));
    return Math.min(Math.max((confidence - scene.low) / (scene.high - scene.low), 0), 1);
  }

  function levelOf(scene, confidence) {
    const found = SURE.findIndex(least => share(scene, confidence) >= least);
    return found < 0 ? SURE.length : found;
  }

  // ---- The canvas as elements

  function element(name, kind, text) {
    const made = document.createElement(name);
    if (kind) made.className = kind;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // Draws the canvas of a place into a box. Each token carries its position, for whoever wants to know more of it.
  function drawCanvas(box, playback, place, step) {
    const scene = playback.scene, cells = playback.canvas(place);
    const fresh = freshOf(playback, place, step);
    const within = scene.around.slice(1).some(part => part.trim());
    const parts = document.createDocumentFragment();
    scene.blanks.forEach((_, blank) => {
      if (within) parts.append(element("span", "around", scene.around[blank]));
      for (const run of runsOf(cells.filter(cell => cell.blank === blank), scene)) parts.append(drawnRun(run, scene, fresh));
    });
    if (within) parts.append(element("span", "around", scene.around[scene.blanks.length]));
    box.replaceChildren(parts);
  }

  // The positions that were written or reopened in this very step.
  function freshOf(playback, place, step) {
    if (place.step !== step || step === 0) return new Set();
    const entry = playback.at(place);
    const written = playback.canvas(place).filter(cell => cell.step === step).map(cell => cell.at);
    return new Set(entry.mode === "reopened" ? [...written, ...entry.positions] : written);
  }

  // Neighbours that are shown as one: ends of text; anything else stands alone.
  function runsOf(cells, scene) {
    const ends = new Set(scene.ends), runs = [];
    for (const cell of cells) {
      const kind = cell.token === null ? "mask" : ends.has(cell.token) ? "end" : "token";
      const last = runs[runs.length - 1];
      if (kind === "end" && last && last.kind === "end") last.cells.push(cell);
      else runs.push({kind, cells: [cell]});
    }
    return runs;
  }

  // A token that goes over several lines is drawn as one element for each.
  function drawnRun(run, scene, fresh) {
    const parts = document.createDocumentFragment(), kind = kindsOf(run, scene, fresh);
    const lines = textOfRun(run, scene).split("\n");
    lines.forEach((line, place) => {
      const broken = place < lines.length - 1;
      if (!broken && !line && place) return;
      const made = element("span", kind, broken ? line + NEWLINE : line);
      made.dataset.at = run.cells[0].at;
      made.tabIndex = -1;
      parts.append(made, ...(broken ? ["\n"] : []));
    });
    return parts;
  }

  function kindsOf(run, scene, fresh) {
    const kinds = ["cell", run.kind], known = run.cells.map(cell => cell.confidence).filter(one => one !== null);
    if (known.length) {
      const level = levelOf(scene, Math.min(...known));
      kinds.push(`sure-${level}`);
      if (level > SURE.indexOf(0.5)) kinds.push("unsure");
    }
    if (run.cells.some(cell => fresh.has(cell.at))) kinds.push("fresh");
    return kinds.join(" ");
  }

  function textOfRun(run, scene) {
    if (run.kind === "mask") return MASK;
    if (run.kind === "end") return run.cells.length === 1 ? END : `${END}\u00d7${run.cells.length}`;
    return pieceOf(scene, run.cells[0].token);
  }

  function pieceOf(scene, token) {
    const piece = scene.pieces[token];
    return piece === undefined ? "" : piece;
  }

  // ---- Sentences

  function cellSentence(playback, place, at) {
    const cell = playback.canvas(place).find(one => one.at === at);
    if (!cell) return "";
    if (cell.token === null) return `Position ${at}: masked`;
    const what = quoted(playback.scene, cell.token);
    if (cell.step === null) return `${what}: filled in, not decided on`;
    return `${what}: step ${cell.step}, ${cell.mode}, confidence ${number(cell.confidence)}`;
  }

  function stepSentence(playback, place, step) {
    if (step === 0) return "All masked";
    if (step > playback.last) return `Done after step ${playback.last}`;
    if (place.step !== step) return "Only read; wrote nothing";
    const entry = playback.at(place), parts = [];
    const written = entry.sizes.filter(size => size === 1).length;
    if (entry.mode === "reopened") parts.push(`took back ${counted(entry.positions.length, "token")}`);
    else if (written) parts.push(written === 1 ? `wrote ${soleToken(playback.scene, entry)}` : `wrote ${counted(written, "token")}`);
    const grown = entry.sizes.filter(size => size > 1).length, gone = entry.sizes.filter(size => size === 0).length;
    if (grown) parts.push(`expanded ${counted(grown, "mask")}`);
    if (gone) parts.push(`deleted ${counted(gone, "mask")}`);
    if (entry.verdict !== null) parts.push(`verdict ${number(entry.verdict)}`);
    if (entry.dive) parts.push(`dive ${entry.dive}`);
    return [entry.mode, ...parts].join(", ");
  }

  function soleToken(scene, entry) {
    const place = entry.sizes.indexOf(1);
    return `${quoted(scene, entry.tokens[place])} with confidence ${number(entry.confidence[place])}`;
  }

  function quoted(scene, token) {
    return scene.ends.includes(token) ? "the end of text" : `\u201c${visible(pieceOf(scene, token))}\u201d`;
  }

  function visible(text) {
    return text.replaceAll("\n", NEWLINE).replaceAll("\t", "\u21e5");
  }

  function counted(count, what) {
    return `${count} ${what}${count === 1 ? "" : "s"}`;
  }

  function number(value) {
    return value.toFixed(4).replace("-", "\u2212");
  }

  // ---- Lanes

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

  const SPACE = {left: 10, right: 10, strip: 9, gap: 12, lane: 18, axis: 16, least: 6, most: 18};

  function svg(name, attributes, kind) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (kind) made.setAttribute("class", kind);
    return made;
  }

  // Draws modes and lanes into a box. Steps are as far apart as those of the longer of two methods allow, so that both
  // can be compared. ``choose`` gets the step, and the place of the candidate if one was clicked.
  function drawLanes(box, playback, steps, choose) {
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
  function sign(mode) {
    const drawn = svg("svg", {width: 14, height: 14, "aria-hidden": "true"});
    const made = shape(SHAPES[mode], 7, 7, 4.4);
    made.setAttribute("class", `dot on-path mode-${mode}`);
    drawn.append(made);
    return drawn;
  }

  return {
    MASK, END, SURE, TOLD, Playback, element, counted, drawCanvas, drawLanes, sign, cellSentence, stepSentence,
  };
})();
