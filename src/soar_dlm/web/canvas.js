// A canvas as elements, coloured by confidence. Whatever a model wrote is inserted as text.
import {element} from "./dom.js";
import {pieceOf, NEWLINE} from "./sentences.js";

export const MASK = "\u2591", END = "\u220e";
export const SURE = [0.99, 0.9, 0.7, 0.5, 0.3];  // the levels of confidence; below 0.5 is called unsure

// A confidence on a scale from 0 (unsure) to 1 (sure), as Scene.share has it.
function share(scene, confidence) {
  if (scene.low === null) return Math.exp(Math.min(confidence - scene.high, 0));
  return Math.min(Math.max((confidence - scene.low) / (scene.high - scene.low), 0), 1);
}

// The confidence that has this share: the other way round.
export function confidenceOf(scene, share) {
  return scene.low === null ? scene.high + Math.log(share) : scene.low + share * (scene.high - scene.low);
}

function levelOf(scene, confidence) {
  const found = SURE.findIndex(least => share(scene, confidence) >= least);
  return found < 0 ? SURE.length : found;
}

// Draws the canvas of a place into a box. Each token carries its position, for whoever wants to know more of it.
export function drawCanvas(box, playback, place, step) {
  const scene = playback.scene, cells = playback.canvas(place);
  const fresh = freshOf(playback, place, step), deleted = place.step === step ? playback.deleted(place) : [];
  const within = scene.around.slice(1).some(part => part.trim());
  const parts = document.createDocumentFragment();
  scene.blanks.forEach((_, blank) => {
    if (within) parts.append(element("span", "around", scene.around[blank]));
    const gone = deleted.filter(one => one.blank === blank);
    for (const run of runsOf(cells.filter(cell => cell.blank === blank), scene)) {
      while (gone.length && gone[0].at <= run.cells[0].at) parts.append(drawnGone(gone.shift()));
      parts.append(drawnRun(run, scene, fresh, step));
    }
    parts.append(...gone.map(drawnGone));
  });
  if (within) parts.append(element("span", "around", scene.around[scene.blanks.length]));
  box.replaceChildren(parts);
}

// A mask that was deleted in this very step; it shrinks away.
function drawnGone() {
  const made = element("span", "gone", MASK);
  made.setAttribute("aria-hidden", "true");
  return made;
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
function drawnRun(run, scene, fresh, step) {
  const parts = document.createDocumentFragment(), kind = kindsOf(run, scene, fresh, step);
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

function kindsOf(run, scene, fresh, step) {
  const kinds = ["cell", run.kind], known = run.cells.map(cell => cell.confidence).filter(one => one !== null);
  if (known.length) {
    const level = levelOf(scene, Math.min(...known));
    kinds.push(`sure-${level}`);
    if (level > SURE.indexOf(0.5)) kinds.push("unsure");
  }
  if (run.cells.some(cell => fresh.has(cell.at))) kinds.push("fresh");
  if (run.cells.some(cell => cell.grown === step)) kinds.push("grown");
  return kinds.join(" ");
}

function textOfRun(run, scene) {
  if (run.kind === "mask") return MASK;
  if (run.kind === "end") return run.cells.length === 1 ? END : `${END}\u00d7${run.cells.length}`;
  return pieceOf(scene, run.cells[0].token);
}

// What Shift with an arrow key does to a canvas that has the focus: it leads from token to token. Others are not for it.
export function walkTokens(canvas, event) {
  if (!event.shiftKey || !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
  const cells = [...canvas.querySelectorAll(".cell")], now = cells.indexOf(document.activeElement);
  const next = now < 0 ? 0 : now + (event.key === "ArrowRight" ? 1 : -1);
  if (cells[next]) cells[next].focus();
  event.preventDefault();
  event.stopPropagation();
}
