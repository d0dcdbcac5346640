// The explorer of a report: which task, methods, problem and step are shown, and how the reader gets to others.
import {byId, choices, element, reached, showWithin} from "./dom.js";
import {showLegend} from "./legend.js";
import {Playback} from "./playback.js";
import {Player} from "./player.js";
import {counted} from "./sentences.js";
import {View} from "./view.js";

{
  const OUTCOMES = [
    ["all", "All", () => true],
    ["gained", "Gained", (first, second) => !first && second],
    ["lost", "Lost", (first, second) => first && !second],
    ["right", "Both right", (first, second) => first && second],
    ["wrong", "Both wrong", (first, second) => !first && !second],
  ];

  const data = JSON.parse(byId("data").textContent);

  // What is shown; ``problem`` counts within the group.
  const shown = {group: null, methods: [0, 0], problem: 0, outcome: "all", kind: "", search: ""};
  const player = new Player(showStep);
  const sides = [...document.querySelectorAll(".side")].map((section, number) => ({section, number}));
  let texts = null, found = [], turn = 0;
  let linked = false;  // whether the address follows: not before the reader has moved

  // ---- Data that is unpacked when it is needed

  const unpacked = new Map();

  function inflated(number) {
    if (!unpacked.has(number)) unpacked.set(number, inflate(byId(`chunk-${number}`).textContent));
    return unpacked.get(number);
  }

  async function inflate(base64) {
    const bytes = Uint8Array.from(atob(base64), character => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(stream).text());
  }

  function canInflate() {
    try {
      return Boolean(new DecompressionStream("deflate-raw"));
    } catch {
      return false;
    }
  }

  // The steps of a trace from the columns that soar_dlm/report/columns.py describes.
  function stepsOf(columns) {
    const [forwards, best, counts, modes, back, origins, left, ranks, changed, positions, tokens, sure, sizes, dives, verdicts] = columns;
    let entry = 0, at = 0;
    const scaled = value => value / data.scale;
    const nextEntry = step => {
      const from = at, number = entry++;
      at += changed[number];
      return {
        mode: data.modes[modes[number]], after: step - back[number], origin: origins[number],
        positions: positions.slice(from, at), tokens: tokens.slice(from, at), confidence: sure.slice(from, at).map(scaled),
        sizes: sizes ? sizes.slice(from, at) : Array(changed[number]).fill(1),
        left: left[number], rank: scaled(ranks[number]), dive: dives ? dives[number] : 0,
        verdict: verdicts && verdicts[number] !== null ? scaled(verdicts[number]) : null,
      };
    };
    return forwards.map((count, place) => ({
      forwards: count, best: best[place], beam: Array.from({length: counts[place]}, () => nextEntry(place + 1)),
    }));
  }

  async function playbacksOf(group, problem, methods) {
    if (!group.traced) return methods.map(() => null);
    const [pieces, chunk] = await Promise.all(
      [inflated(group.pieces), inflated(group.chunks[Math.floor(problem / data.perChunk)])]);
    return methods.map(method => {
      const [reading, blanks, columns, around] = chunk[problem % data.perChunk][method];
      const [ends, filler, low, high] = group.readings[reading];
      const scene = {around: around || texts.around[problem], blanks, pieces, ends, filler, low, high};
      return new Playback({steps: stepsOf(columns), scene});
    });
  }

  // ---- Task, methods and the list of problems

  async function showGroup(number) {
    const group = data.groups[number];
    Object.assign(shown, {group, methods: [...group.pair], kind: "", search: "", outcome: "all"});
    byId("task").value = number;
    byId("search").value = "";
    choices(byId("kind"), [["", "All kinds"], ...group.kinds.map((kind, place) => [place, kind || "(none)"])], "");
    byId("kind").disabled = group.kinds.length < 2;
    for (const side of sides) choices(side.select, group.methods.map((name, place) => [place, name]), shown.methods[side.number]);
    const own = await inflated(group.texts);
    if (shown.group === group) texts = own;
  }

  function isRight(method, problem) {
    return shown.group.right[method][problem] === "1";
  }

  function outcomeIs(name, problem) {
    const [first, second] = shown.methods.map(method => isRight(method, problem));
    return OUTCOMES.find(one => one[0] === name)[2](first, second);
  }

  function isFound(problem) {
    const wanted = shown.search.trim().toLowerCase();
    const ofKind = shown.kind === "" || shown.group.kind[problem] === Number(shown.kind);
    if (!ofKind || !wanted) return ofKind;
    const own = [...(texts.around[problem] || []), texts.answers[problem] || "",
      ...shown.methods.map(method => texts.texts[method][problem]), `#${shown.group.indices[problem]}`];
    return own.some(text => text.toLowerCase().includes(wanted));
  }

  function showList() {
    const open = shown.group.indices.map((_, problem) => problem).filter(isFound);
    for (const [name] of OUTCOMES) {
      byId(`outcome-${name}-count`).textContent = open.filter(problem => outcomeIs(name, problem)).length.toLocaleString("en");
      byId(`outcome-${name}`).checked = name === shown.outcome;
    }
    found = open.filter(problem => outcomeIs(shown.outcome, problem));
    byId("count").textContent = found.length ? counted(found.length, "problem") : "No problem matches.";
    byId("problems").replaceChildren(...found.map(listed));
    markListed();
  }

  function listed(problem) {
    const button = element("button");
    button.type = "button";
    button.dataset.problem = problem;
    const marks = shown.methods.map(method => isRight(method, problem));
    const signs = element("span", "signs");
    for (const right of marks) signs.append(element("span", right ? "right" : "wrong", right ? "\u2713" : "\u2717"));
    signs.setAttribute("aria-label", marks.map(right => right ? "right" : "wrong").join(", "));
    signs.setAttribute("role", "img");
    button.append(element("span", "index", `#${shown.group.indices[problem]}`), element("span", "excerpt", excerpt(problem)), signs);
    const item = element("li");
    item.append(button);
    return item;
  }

  // The end of a prompt: what comes before it is often the same for all.
  function excerpt(problem) {
    const around = texts.around[problem];
    const text = (around ? around[0] : texts.texts[shown.methods[1]][problem]).trim();
    return (text.includes("\n\n") ? text.slice(text.lastIndexOf("\n\n")) : text).trim().slice(0, 120);
  }

  function markListed() {
    for (const button of byId("problems").querySelectorAll("button")) {
      const current = Number(button.dataset.problem) === shown.problem;
      if (current) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
      if (current) showWithin(byId("problems"), button);
    }
  }

  // ---- A problem

  async function showProblem(problem, step) {
    const own = ++turn;
    shown.problem = problem;
    const played = await playbacksOf(shown.group, problem, shown.methods);
    if (own !== turn) return;  // the reader has gone on meanwhile
    byId("problem-title").textContent = `Problem #${shown.group.indices[problem]}`;
    byId("problem-kind").textContent = shown.group.kinds[shown.group.kind[problem]];
    showGiven(problem);
    markListed();
    const last = Math.max(0, ...played.map(one => one ? one.last : 0));
    player.last = last;
    byId("player").hidden = !shown.group.traced;
    for (const side of sides) showSide(side, played[side.number], last);
    showLegend(byId("legend"), played.filter(Boolean));
    player.set(step === undefined ? last : step);
  }

  function showGiven(problem) {
    const around = texts.around[problem], answer = texts.answers[problem];
    byId("prompt-box").hidden = around === null;
    byId("answer-box").hidden = answer === null;
    if (around !== null) byId("prompt").textContent = around.join(" \u2581\u2581\u2581 ").replace(/ \u2581\u2581\u2581 $/, "");
    if (answer !== null) byId("answer").textContent = answer.replace(/^\n+/, "");
    byId("prompt").scrollTop = byId("prompt").scrollHeight;
  }

  function makeSide(side) {
    side.select = element("select");
    side.select.setAttribute("aria-label", side.number ? "Second method" : "First method");
    side.verdict = element("span", "verdict");
    side.figures = element("span", "figures-line");
    side.text = reached("text answer", "region", "Text");
    side.view = new View(step => player.go(step));
    const header = element("header"), {canvas, line, lanes} = side.view;
    header.append(side.select, side.verdict, side.figures);
    side.section.append(header, element("h4", "", "Text"), side.text, element("h4", "traced", "Canvas"), canvas, line, lanes);
    side.select.addEventListener("change", () => {
      shown.methods[side.number] = Number(side.select.value);
      showList();
      showProblem(shown.problem);
    });
  }

  function showSide(side, playback, last) {
    const method = shown.methods[side.number], right = isRight(method, shown.problem);
    side.select.value = method;
    side.verdict.textContent = right ? "\u2713 right" : "\u2717 wrong";
    side.verdict.className = `verdict ${right ? "right" : "wrong"}`;
    const finish = texts.finish[method][shown.problem];
    const parts = [counted(texts.forwards[method][shown.problem], "forward"), ...(playback ? [counted(playback.last, "step")] : [])];
    side.figures.textContent = [...parts, ...(finish === "stop" ? [] : [`ended by ${finish}`])].join(" \u00b7 ");
    side.text.textContent = texts.texts[method][shown.problem].replace(/^\n+/, "");
    side.section.classList.toggle("untraced", playback === null);
    side.view.open(playback, last);
  }

  function showStep(step) {
    for (const side of sides) side.view.show(step);
    keepLink();
  }

  // ---- Problem after problem

  function turnTo(by) {
    const now = found.indexOf(shown.problem), next = found[now < 0 ? 0 : now + by];
    if (next === undefined) return;
    player.pause();
    showProblem(next);
  }

  // ---- Links: #task/method/method/problem/step

  function keepLink() {
    const {group, methods, problem} = shown;
    const parts = [group.name, ...methods.map(method => group.methods[method]), group.indices[problem], player.step];
    const link = `#${parts.map(encodeURIComponent).join("/")}`;
    try {
      if (linked && link !== location.hash) history.replaceState(null, "", link);
    } catch {
      linked = false;  // a page inside another may not change its address
    }
  }

  // What a link names; null if there is no such thing in this report.
  function target(link) {
    let parts;
    try {
      parts = link.slice(1).split("/").map(decodeURIComponent);
    } catch {
      return null;
    }
    const number = data.groups.findIndex(group => group.name === parts[0]);
    if (parts.length !== 5 || number < 0) return null;
    const group = data.groups[number], methods = parts.slice(1, 3).map(name => group.methods.indexOf(name));
    const problem = /^\d+$/.test(parts[3]) ? group.indices.indexOf(Number(parts[3])) : -1;
    if (methods.includes(-1) || problem < 0 || !/^\d{1,6}$/.test(parts[4])) return null;
    return {number, methods, problem, step: Number(parts[4])};
  }

  async function follow(link) {
    const wanted = target(link);
    if (!wanted) return false;
    player.pause();
    await showGroup(wanted.number);
    shown.methods = wanted.methods;
    shown.problem = wanted.problem;
    showList();
    await showProblem(wanted.problem, wanted.step);
    byId("problem").scrollIntoView({block: "start"});
    byId("explorer").focus({preventScroll: true});
    return true;
  }

  function tell(trouble) {
    byId("trouble").textContent = trouble;
  }

  const BAD_LINK = "The link names nothing in this report, so it was ignored.";

  // ---- Keys

  function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || !listening(event)) return;
    const does = player.keyed(event.key) || {
      j: () => turnTo(1), k: () => turnTo(-1), ArrowDown: () => turnTo(1), ArrowUp: () => turnTo(-1),
    }[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  }

  // Keys that scroll a page do so unless the reader is in the explorer; those that a control needs are left to it.
  function listening(event) {
    const at = event.target;
    if (at.matches("select, input:not([type=range]):not([type=radio]), summary")) return false;
    if (at.matches("input[type=radio]")) return ["j", "k"].includes(event.key);
    if (at.matches("input[type=range]") && ["ArrowUp", "ArrowDown"].includes(event.key)) return false;
    if (at.matches("button:not([aria-current])") && event.key === " ") return false;
    if (at.matches(".text") && !["ArrowLeft", "ArrowRight", "j", "k", " "].includes(event.key)) return false;
    if (byId("explorer").contains(at)) return true;
    return at === document.body && inView() && ["ArrowLeft", "ArrowRight", "j", "k"].includes(event.key);
  }

  function inView() {
    const box = byId("problem").getBoundingClientRect();
    return box.top < innerHeight * 0.6 && box.bottom > innerHeight * 0.4;
  }

  // ---- The beginning

  function makeOutcomes() {
    for (const [name, title] of OUTCOMES) {
      const label = element("label"), input = element("input"), count = element("span", "number");
      Object.assign(input, {type: "radio", name: "outcome", value: name, id: `outcome-${name}`});
      count.id = `outcome-${name}-count`;
      label.append(input, element("span", "name", title), count);
      byId("outcomes").append(label);
    }
    byId("outcomes").addEventListener("change", event => filter({outcome: event.target.value}));
  }

  function filter(change) {
    Object.assign(shown, change);
    showList();
    if (found.length && !found.includes(shown.problem)) {
      player.pause();
      showProblem(found[0]);
    }
  }

  function watch() {
    byId("task").addEventListener("change", async event => {
      await showGroup(Number(event.target.value));
      showList();
      player.pause();
      await showProblem(0);
    });
    byId("kind").addEventListener("change", event => filter({kind: event.target.value}));
    byId("search").addEventListener("input", event => filter({search: event.target.value}));
    byId("problems").addEventListener("click", event => {
      const button = event.target.closest("button");
      if (!button) return;
      player.pause();
      showProblem(Number(button.dataset.problem));
    });
    document.addEventListener("keydown", pressed);
    addEventListener("hashchange", async () => {
      if (location.hash.includes("/")) tell(await follow(location.hash) ? "" : BAD_LINK);
    });
    addEventListener("unhandledrejection", event => tell(`This problem cannot be shown (${event.reason}).`));
    new ResizeObserver(redraw).observe(byId("problem"));
  }

  let width = 0;

  function redraw() {
    const now = byId("problem").clientWidth;
    if (now === width) return;
    width = now;
    for (const side of sides) side.view.redraw();
  }

  async function begin() {
    if (!data.groups.length) return tell("There are no problems to show yet.");
    if (!canInflate()) return tell("This browser cannot unpack the explorer\u2019s data. A current Chrome, Edge, Firefox or Safari can.");
    byId("workbench").hidden = false;
    makeOutcomes();
    sides.forEach(makeSide);
    choices(byId("task"), data.groups.map((group, place) => [place, group.name]), 0);
    byId("task-field").hidden = data.groups.length < 2;
    watch();
    const deep = location.hash.includes("/");
    if (!deep || !await follow(location.hash)) {
      if (deep) tell(BAD_LINK);
      await showGroup(0);
      showList();
      await showProblem(0);
    }
    linked = true;
    document.documentElement.dataset.ready = "yes";
  }

  begin().catch(error => tell(`The explorer\u2019s data cannot be read (${error.message}).`));
}
