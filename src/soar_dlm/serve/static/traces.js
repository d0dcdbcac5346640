// Files of traces, as `soar generate --trace` and `soar eval --traces` write them: read and checked here, not sent anywhere.
import {TOLD} from "./lanes.js";
import {Playback} from "./playback.js";

const LARGEST = 64 * 2 ** 20, FORMAT = 1, MODES = Object.keys(TOLD);
const NOT_A_TRACE = "is not a trace of soar-dlm";

// The lines of a file, grouped by what was decoded: [{name, lines}], each line with its method if the file has several.
export async function readTraces(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const zipped = bytes[0] === 0x1f && bytes[1] === 0x8b;
  if (bytes.length > LARGEST) throw new Error(`${file.name} has more than ${LARGEST / 2 ** 20} MB; play it with soar trace.`);
  const text = await textOf(zipped ? unzipped(bytes) : new Blob([bytes]).stream(), file.name);
  const groups = new Map();
  const lines = text.split("\n").filter(line => line.trim());
  if (!lines.length) throw new Error(`${file.name} is empty.`);
  lines.forEach((source, number) => {
    const line = parsed(source, `Line ${number + 1} of ${file.name}`);
    const index = Array.isArray(line) || line.index === undefined ? number : line.index;
    const sample = line.sample === undefined || line.sample === null ? "" : `, sample ${line.sample}`;
    const name = `Number ${index}${sample}`;
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(line);
  });
  return [...groups].map(([name, own]) => ({name, lines: own}));
}

function unzipped(bytes) {
  return new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
}

async function textOf(stream, name) {
  let size = 0;
  const limited = new TransformStream({
    transform(piece, controller) {
      size += piece.length;
      if (size > LARGEST) throw new RangeError();
      controller.enqueue(piece);
    },
  });
  try {
    return await new Response(stream.pipeThrough(limited)).text();
  } catch (error) {
    throw new Error(error instanceof RangeError ? `${name} is too large; play it with soar trace.` : `${name} is damaged.`);
  }
}

function parsed(source, where) {
  let line;
  try {
    line = JSON.parse(source);
  } catch {
    throw new Error(`${where} is not JSON. \u2018soar generate --trace\u2019 writes files that this page reads.`);
  }
  if (!Array.isArray(line) && !(line && line.trace)) throw new Error(`${where} ${NOT_A_TRACE}.`);
  return line;
}

// The playback of a line, or an error that says what is wrong with it.
export function playbackOf(line) {
  const scene = line.scene;
  if (!scene) {
    throw new Error("This trace does not say what its tokens mean: it was made without a tokenizer, or by an older version.");
  }
  try {
    checkScene(scene);
    const steps = line.trace.format === undefined ? line.trace : unpacked(line.trace);
    const playback = new Playback({scene, steps: steps.map((step, place) => checkedStep(step, place, steps))});
    for (let step = 0; step <= playback.last; step++) playback.canvas(playback.standing(step));
    return playback;
  } catch (error) {
    throw new Error(`This ${NOT_A_TRACE} (${error.message}).`);
  }
}

// The steps that soar_dlm/engine/packing.py packed.
function unpacked({format, steps}) {
  if (format !== FORMAT) throw new Error(`its format is ${format}, and this version reads ${FORMAT}`);
  return steps.map(([forwards, best, ...beam], place) => ({
    step: place + 1, forwards, best,
    beam: beam.map(([mode, back, origin, positions, tokens, confidence, rank, left, sizes = 0, dive = 0, verdict = null]) => ({
      mode: MODES[mode], after: place + 1 - back, origin, positions, tokens, confidence, rank, left, dive, verdict,
      sizes: sizes === 0 ? positions.map(() => 1) : sizes,
    })),
  }));
}

function check(holds, what) {
  if (!holds) throw new Error(what);
}

function isPlace(value) {
  return Number.isInteger(value) && value >= 0;
}

function checkScene({around, blanks, pieces, ends, filler, low, high}) {
  const texts = Array.isArray(around) && around.every(one => typeof one === "string");
  check(texts && Array.isArray(blanks) && around.length === blanks.length + 1, "its scene has no text around the blanks");
  const total = blanks.reduce((sum, blank) => sum + blank[1], 0);
  check(blanks.every(blank => blank.every(isPlace)) && total < 2 ** 20, "its blanks are no places");
  check(pieces && Object.values(pieces).every(one => typeof one === "string"), "its tokens have no text");
  check(Array.isArray(ends) && ends.every(isPlace) && isPlace(filler), "its end tokens are none");
  check((low === null || Number.isFinite(low)) && Number.isFinite(high), "its confidences have no bounds");
}

function checkedStep(step, place, steps) {
  check(step.step === place + 1 && isPlace(step.forwards) && Array.isArray(step.beam), `step ${place + 1} is not there`);
  const best = step.best ?? 0;
  check(isPlace(best) && best < Math.max(step.beam.length, 1), `step ${place + 1} has no best entry`);
  const beam = step.beam.map(entry => ({after: place, dive: 0, verdict: null, ...entry}));
  beam.forEach((entry, first) => checkEntry(entry, place + 1, first, steps));
  return {...step, best, beam};
}

function checkEntry(entry, step, first, steps) {
  const where = `entry ${first} of step ${step}`;
  const {positions, tokens, confidence, sizes, after, origin} = entry;
  check([positions, tokens, confidence, sizes].every(Array.isArray), `${where} lacks a list`);
  check([tokens, confidence, sizes].every(one => one.length === positions.length), `the lists of ${where} differ in length`);
  check([...positions, ...tokens, ...sizes].every(isPlace) && confidence.every(Number.isFinite), `${where} has no numbers`);
  check(MODES.includes(entry.mode) && Number.isFinite(entry.rank) && isPlace(entry.left), `${where} has no mode or rank`);
  check(isPlace(after) && isPlace(origin) && isPlace(entry.dive), `${where} has no place`);
  const earlier = after < step || (after === step && origin < first);
  check(earlier && (!after || origin < steps[after - 1].beam.length), `${where} does not continue an earlier one`);
}

// A file with these lines, handed to the reader.
export function saveTraces(lines, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(lines.map(line => `${JSON.stringify(line)}\n`), {type: "application/x-ndjson"}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
