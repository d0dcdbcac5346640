// Fields of the form, and how their values are read.
import {choices, element} from "./dom.js";

const TITLES = {
  beam: "Beam K", threshold: "Threshold \u03c4", metric: "Metric", tokens_per_step: "Tokens per step", max_tokens: "Length",
  max_length: "Longest blank", block_length: "Block", cache: "Cache", seed: "Seed", temperature: "Temperature",
  defer_end: "Defer end",
};
const UNSET = "\u2013";

// A field for {name, kind, default, choices}; left empty, the default applies.
export function makeField({name, kind, default: value, choices: offered = []}, prefix) {
  const box = element("div", "field"), label = element("label", "", TITLES[name] || sentenceCase(name));
  const input = ["choice", "switch"].includes(kind) ? element("select") : element("input");
  input.id = `${prefix}-${name}`;
  Object.assign(input.dataset, {name, kind});
  label.htmlFor = input.id;
  if (kind === "choice") choices(input, [["", told(value)], ...offered.filter(one => one !== value).map(one => [one, one])], "");
  else if (kind === "switch") choices(input, [["", onOff(value)], [String(!value), onOff(!value)]], "");
  else Object.assign(input, {autocomplete: "off", spellcheck: false, inputMode: kind === "text" ? "text" : "decimal"});
  if (input.localName === "input") input.placeholder = told(value);
  box.append(label, input);
  return box;
}

function sentenceCase(name) {
  const words = name.replaceAll("_", " ");
  return words[0].toUpperCase() + words.slice(1);
}

function told(value) {
  return value === null ? UNSET : String(value);
}

function onOff(value) {
  return value ? "on" : "off";
}

// What was entered, by name: strings, without the fields that were left empty.
export function entered(box) {
  const found = {};
  for (const input of box.querySelectorAll("[data-name]")) {
    if (input.value.trim()) found[input.dataset.name] = input.value.trim();
  }
  return found;
}

export function enter(box, values) {
  for (const input of box.querySelectorAll("[data-name]")) input.value = values[input.dataset.name] ?? "";
}

// The same as JSON values of the kinds that the fields have; what is no number stays text, for the server to refuse.
export function typed(box) {
  const found = {};
  for (const [name, text] of Object.entries(entered(box))) {
    const {kind} = box.querySelector(`[data-name="${name}"]`).dataset;
    const numeral = ["whole", "real"].includes(kind) && Number.isFinite(Number(text));
    found[name] = kind === "switch" ? text === "true" : numeral ? Number(text) : text;
  }
  return found;
}
