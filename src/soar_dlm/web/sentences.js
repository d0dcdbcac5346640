// What is said of a token, a step and a canvas.

export const NEWLINE = "\u21b5";

export function cellSentence(playback, place, at) {
  const cell = playback.canvas(place).find(one => one.at === at);
  if (!cell) return "";
  if (cell.token === null) return `Position ${at}: masked`;
  const what = quoted(playback.scene, cell.token);
  if (cell.step === null) return `${what}: filled in, not decided on`;
  const told = `${what}: step ${cell.step}, ${cell.mode}, confidence ${number(cell.confidence)}`;
  if (!cell.runnerUp) return told;
  const [second, probability] = cell.runnerUp;
  return `${told}; second ${quoted(playback.scene, second)} with probability ${chance(probability)}`;
}

export function stepSentence(playback, place, step) {
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

export function quoted(scene, token) {
  return scene.ends.includes(token) ? "the end of text" : `\u201c${visible(pieceOf(scene, token))}\u201d`;
}

function visible(text) {
  return text.replaceAll("\n", NEWLINE).replaceAll("\t", "\u21e5");
}

export function pieceOf(scene, token) {
  const piece = scene.pieces[token];
  return piece === undefined ? "" : piece;
}

export function counted(count, what) {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

export function chance(probability) {
  return probability < 0.00005 ? "< 0.0001" : number(probability);
}

export function number(value) {
  return value.toFixed(4).replace("-", "\u2212");
}
