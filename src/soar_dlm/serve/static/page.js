// The page: what is decoded, how, and what is shown of it.
import {byId, choices, element} from "./dom.js";
import {enter, entered, makeField, typed} from "./fields.js";
import {showLegend} from "./legend.js";
import {linkOf, setupOf} from "./link.js";
import {Player} from "./player.js";
import {counted} from "./sentences.js";
import {ask, decode, useKey} from "./server.js";
import {Setup} from "./setup.js";
import {Side} from "./side.js";
import {hideTip} from "./tip.js";
import {playbackOf, readTraces, saveTraces} from "./traces.js";

const BLANK = /\{blank(:\d+)?\}/, ESCAPED = /\{\{blank(:\d+)?\}\}/g;
const player = new Player(showStep);
const sides = [0, 1].map(number => new Side(number, step => player.go(step)));
let facts = null, setups = [];
let example = null;  // the one that the text was taken from
let running = null;  // what aborts the decodings that run
let drawing = false, stale = false;  // whether a drawing is on its way, and whether there is more since

// ---- What is said

function tell(trouble) {
  byId("trouble").textContent = trouble;
}

function say(status) {
  byId("status").textContent = status;
}

// ---- The form

function isTemplate(text) {
  return BLANK.test(text.replace(ESCAPED, ""));
}

function comparing() {
  return byId("compare").getAttribute("aria-pressed") === "true";
}

function compare(two) {
  byId("compare").setAttribute("aria-pressed", String(two));
  byId("compare").textContent = two ? "Back to one strategy" : "Compare two strategies";
  setups[1].box.hidden = !two;
  document.body.classList.toggle("two", two);
}

// Length belongs to a prompt, and how far a blank may grow to a text with blanks.
function fitOptions() {
  const template = isTemplate(byId("text").value);
  for (const [name, off] of [["max_tokens", template], ["max_length", !template]]) {
    const input = byId("options").querySelector(`[data-name="${name}"]`);
    if (input) input.disabled = off;
  }
}

function chosenSetups() {
  return comparing() ? setups : setups.slice(0, 1);
}

function current() {
  return {text: byId("text").value, sides: chosenSetups().map(setup => setup.chosen), options: entered(byId("options"))};
}

function fillForm({text, sides: chosen, options}) {
  byId("text").value = text;
  enter(byId("options"), options);
  byId("more").open = Object.keys(options).length > 0;
  const troubles = chosen.map((one, number) => setups[number].choose(one));
  compare(chosen.length > 1);
  fitOptions();
  tell(troubles.filter(Boolean).join(" "));
}

function takeExample(one) {
  example = one;
  byId("text").value = one.template ?? one.prompt;
  enter(byId("options"), {...entered(byId("options")), max_tokens: one.max_tokens ?? ""});
  fitOptions();
}

async function showExamples() {
  const seed = Math.floor(Math.random() * 1e6);
  const {examples} = await (await ask(`v1/examples?seed=${seed}`)).json();
  byId("examples").hidden = !examples.length;
  byId("examples").replaceChildren(element("span", "", "Try"), ...examples.map(one => {
    const button = element("button", "", one.title);
    button.type = "button";
    button.addEventListener("click", async () => {
      takeExample(one);
      byId("text").focus();
      await showExamples().catch(error => tell(error.message));
    });
    return button;
  }));
}

// ---- Decoding

function requests() {
  const text = byId("text").value, asked = isTemplate(text) ? {template: text} : {prompt: text};
  return chosenSetups().map(setup => ({...asked, ...typed(byId("options")), ...setup.request, runners_up: true}));
}

async function run() {
  stop();
  const own = running = new AbortController(), bodies = requests();
  history.replaceState(null, "", linkOf(current()));
  begin(bodies);
  const ends = await Promise.allSettled(bodies.map((body, number) => follow(sides[number], body, own.signal)));
  for (const side of sides) side.running = false;
  if (running !== own) return;
  running = null;
  finish(ends);
}

function begin(bodies) {
  const answer = example && byId("text").value === (example.template ?? example.prompt) ? example.answer : null;
  tell("");
  say("Decoding\u2026");
  byId("run").hidden = true;
  byId("stop").hidden = false;
  byId("answer").textContent = answer ?? "";
  byId("answer-box").hidden = byId("opened").hidden = byId("stage").hidden = true;
  byId("legend").replaceChildren();
  player.last = 0;
  player.set(0);
  bodies.forEach(({prompt, template}, number) => {
    sides[number].clear(setups[number].name);
    sides[number].asked = template === undefined ? {prompt} : {template};
  });
  showSides(bodies.length);
}

async function follow(side, body, signal) {
  for await (const [name, data] of decode(body, signal)) {
    if (signal.aborted) return;
    if (name === "start") side.begin(data);
    else if (name === "step") side.step(data);
    else if (name === "result") {
      side.result = data;
      side.running = false;
    }
    showStage();
    draw();
  }
}

// On a small screen the stage is far below the button that was pressed.
function showStage() {
  const hidden = byId("stage").hidden;
  byId("stage").hidden = false;
  if (hidden && byId("stage").getBoundingClientRect().top > innerHeight * 0.6) byId("stage").scrollIntoView();
}

function finish(ends) {
  byId("run").hidden = false;
  byId("stop").hidden = true;
  redraw();
  const trouble = ends.map(end => end.reason).find(reason => reason && reason.name !== "AbortError");
  if (trouble) askForKey(trouble);
  const done = sides.map(side => side.result).filter(Boolean);
  say(trouble ? "" : done.length < ends.length ? "Stopped." : told(done));
  byId("answer-box").hidden = !done.length || !byId("answer").textContent;
  showLegend(byId("legend"), open().map(side => side.playback));
}

function told(results) {
  const [first, second] = results;
  if (!second) return `Done in ${counted(first.steps, "step")} and ${counted(first.forwards, "forward")}.`;
  return first.text === second.text ? "Done. Both wrote the same text." : "Done. The texts differ.";
}

function stop() {
  if (running) running.abort();
}

// ---- The stage

function showSides(count) {
  byId("sides").replaceChildren(...sides.slice(0, count).map(side => side.section));
  sides.slice(count).forEach(side => side.clear(""));
}

function open() {
  return sides.filter(side => side.playback);
}

// Steps may come faster than they can be drawn: half of the time is left for everything else.
function draw() {
  stale = true;
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    const began = performance.now();
    stale = false;
    redraw();
    setTimeout(() => {
      drawing = false;
      if (stale) draw();
    }, performance.now() - began);
  });
}

// A reader who is at the last step follows the decoding.
function redraw() {
  const atEnd = player.step >= player.last, last = Math.max(0, ...open().map(side => side.last));
  player.last = last;
  for (const side of open()) side.view.redraw(last);
  player.set(atEnd ? last : player.step);
}

function showStep(step) {
  hideTip();
  for (const side of open()) side.show(step);
}

// ---- Traces and links

async function openTraces(file) {
  stop();
  tell("");
  try {
    const groups = await readTraces(file);
    choices(byId("traces"), groups.map(({name}, place) => [place, name]), 0);
    byId("traces").hidden = groups.length < 2;
    byId("traces").onchange = () => openGroup(groups[Number(byId("traces").value)]);
    byId("file-name").textContent = file.name;
    openGroup(groups[0]);
  } catch (error) {
    tell(error.message);
  }
}

// Two methods of the same problem are shown side by side.
function openGroup({lines}) {
  try {
    const played = lines.slice(0, 2).map(playbackOf);
    played.forEach((playback, number) => {
      const {method, prompt, template, text, blanks} = lines[number];
      sides[number].clear(method ?? "Trace");
      sides[number].asked = template === undefined ? {prompt} : {template};
      sides[number].result = text === undefined ? null : {text, blanks};
      sides[number].open(playback);
    });
    showSides(played.length);
    byId("given").textContent = played[0].scene.around.join(" \u2581\u2581\u2581 ").replace(/ \u2581\u2581\u2581 $/, "");
    byId("stage").hidden = byId("opened").hidden = false;
    byId("answer-box").hidden = true;
    say("");
    player.last = 0;
    redraw();
    player.go(player.last);
    showLegend(byId("legend"), played);
  } catch (error) {
    tell(error.message);
  }
}

function save() {
  const names = open().map(side => side.title.textContent);
  const methods = names.map((name, number) => names.indexOf(name) < number ? `${name} 2` : name);
  saveTraces(open().map((side, number) => side.line(0, methods[number], side.asked)), "trace.jsonl");
}

async function share() {
  const link = linkOf(current());
  history.replaceState(null, "", link);
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is copied.");
  } catch {
    say("The link is in the address bar.");
  }
}

function followLink() {
  const linked = setupOf(location.hash);
  if (!linked) return;
  fillForm(linked.setup);
  if (linked.run) run();
}

// ---- Keys

function pressed(event) {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && byId("composer").contains(event.target)) {
    event.preventDefault();
    return byId("composer").requestSubmit();
  }
  if (event.key === "Escape") return stop();
  const does = player.keyed(event.key);
  if (!does || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || !listening(event)) return;
  event.preventDefault();
  does();
}

// Keys that a control needs are left to it, and those that scroll the page do so unless the reader is on the stage.
function listening({target, key}) {
  if (byId("stage").hidden || target.matches("select, textarea, summary, input:not([type=range])")) return false;
  if (target.matches("button") && key === " ") return false;
  return byId("stage").contains(target) || ["ArrowLeft", "ArrowRight"].includes(key);
}

// ---- The beginning

function askForKey(trouble) {
  tell(trouble.message);
  if (trouble.status !== 401) return;
  byId("key-form").hidden = false;
  byId("key").focus();
}

function listen() {
  byId("composer").addEventListener("submit", event => {
    event.preventDefault();
    run();
  });
  byId("text").addEventListener("input", fitOptions);
  byId("stop").addEventListener("click", stop);
  byId("compare").addEventListener("click", () => compare(!comparing()));
  byId("share").addEventListener("click", share);
  byId("save").addEventListener("click", save);
  addEventListener("hashchange", followLink);
  addEventListener("scroll", hideTip, {capture: true, passive: true});
  let width = 0;
  new ResizeObserver(() => {
    const now = byId("sides").clientWidth;
    if (now && now !== width && !running) redraw();
    width = now;
  }).observe(byId("sides"));
}

// What works without the server.
function listenAlways() {
  byId("open-trace").addEventListener("click", () => byId("trace-file").click());
  byId("trace-file").addEventListener("change", async event => {
    const [file] = event.target.files;
    if (file) await openTraces(file);
    event.target.value = "";
  });
  document.addEventListener("keydown", pressed);
  byId("key-form").addEventListener("submit", async event => {
    event.preventDefault();
    useKey(byId("key").value);
    byId("key-form").hidden = true;
    tell("");
    if (!facts) await load();
  });
}

async function load() {
  try {
    facts = await (await ask("v1/strategies")).json();
    await showExamples();
  } catch (error) {
    facts = null;
    return askForKey(error);
  }
  byId("model").textContent = facts.model;
  document.title = `soar \u00b7 ${facts.model}`;
  setups = [0, 1].map(number => new Setup(number, facts));
  byId("setups").replaceChildren(...setups.map(setup => setup.box));
  byId("options").replaceChildren(...facts.options.map(one => makeField(one, "option")));
  setups[1].choose({strategy: "greedy", settings: {}});
  compare(false);
  fitOptions();
  listen();
  byId("composer").hidden = false;
  followLink();
  document.documentElement.dataset.ready = "yes";
}

listenAlways();
await load();
