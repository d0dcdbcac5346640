// A decoding played back. A trace has the form that Trace.to_json gives it, {steps, scene}; canvases follow
// soar_dlm/playback.py rule for rule.

function startOf(scene) {
  const cells = [];
  scene.blanks.forEach(([first, size], blank) => {
    for (let offset = 0; offset < size; offset++) cells.push(masked(first + offset, blank));
  });
  return cells;
}

function masked(at, blank) {
  return {at, blank, token: null, confidence: null, step: null, mode: null, runnerUp: null, grown: null};
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
      const runnerUp = entry.runners_up && entry.runners_up.length ? entry.runners_up[place] : null;
      cells.push({at, blank: cell.blank, token, confidence, step, mode: entry.mode, runnerUp});
    } else {
      const grown = entry.sizes[place] > 1 ? step : null;
      for (let offset = 0; offset < entry.sizes[place]; offset++) cells.push({...masked(at + offset, cell.blank), grown});
    }
  }
  return entry.left === 0 ? cells.map(cell => cell.token === null ? {...cell, token: filler} : cell) : cells;
}

export class Playback {
  constructor({scene, steps}) {
    this.scene = scene;
    this.steps = [];
    this.canvases = new Map([["0/0", startOf(scene)]]);
    this.standings = [{step: 0, first: 0}];
    for (const record of steps) this.append(record);
  }

  append(record) {
    this.steps.push(record);
    this.standings.push(record.beam.length ? {step: this.last, first: record.best} : this.standing(this.last - 1));
  }

  get last() {
    return this.steps.length;
  }

  // What was done on the way to where the search stands at the end.
  get path() {
    return this.placesTo(this.standing(this.last));
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

  // Where masks were deleted on the way to a place, left to right: the position that is there now, and the blank.
  deleted(place) {
    if (place.step === 0) return [];
    const entry = this.at(place), before = this.canvas(parentOf(entry));
    const order = entry.positions.map((_, number) => number).sort((a, b) => entry.positions[a] - entry.positions[b]);
    const found = [];
    let shift = 0;
    for (const number of order) {
      const at = entry.positions[number], size = entry.sizes[number];
      if (size === 0) found.push({at: at + shift, blank: before.find(cell => cell.at === at).blank});
      shift += size - 1;
    }
    return found;
  }

  forwards(step) {
    return this.steps.slice(0, step).reduce((sum, record) => sum + record.forwards, 0);
  }
}

export function parentOf(entry) {
  return {step: entry.after, first: entry.after ? entry.origin : 0};
}

export function keyOf(place) {
  return `${place.step}/${place.first}`;
}
