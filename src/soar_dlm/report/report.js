// The explorer of a report: which task, methods, problem and step are shown, and how the reader gets to others.
(() => {
  const {element, counted, Playback} = SoarTrace;
  const PACE = 140, CALM_PACE = 600;  // milliseconds between steps while playing
  const OUTCOMES = [
    ["all", "All", () => true],
    ["gained", "Gained", (first, second) => !first && second],
    ["lost", "Lost", (first, second) => first && !second],
    ["right", "Both right", (first, second) => first && second],
    ["wrong", "Both wrong", (first, second) => !first && !second],
  ];

  const byId = id => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);

  // What is shown; ``problem`` counts within the group. A side's ``place`` is a candidate that the reader chose in place of
  // the one that the search stands by.
  const shown = {group: null, methods: [0, 0], problem: 0, step: 0, outcome: "all", kind: "", search: ""};
  const sides = [...document.querySelectorAll(".side")].map((section, number) => ({section, number}));
  let texts = null, found = [], timer = null, turn = 0;
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

  function options(select, values, chosen) {
    select.replaceChildren(...values.map(([value, text]) => {
      const made = element("option", "", text);
      made.value = value;
      return made;
    }));
    select.value = chosen;
  }

  async function showGroup(number) {
    const group = data.groups[number];
    Object.assign(shown, {group, methods: [...group.pair], kind: "", search: "", outcome: "all"});
    byId("task").value = number;
    byId("search").value = "";
    options(byId("kind"), [["", "All kinds"], ...group.kinds.map((kind, place) => [place, kind || "(none)"])], "");
    byId("kind").disabled = group.kinds.length < 2;
    for (const side of sides) options(side.select, group.methods.map((name, place) => [place, name]), shown.methods[side.number]);
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

  // Scrolls a box, and never the page.
  function showWithin(box, inside) {
    const outer = box.getBoundingClientRect(), inner = inside.getBoundingClientRect();
    if (inner.top < outer.top) box.scrollTop -= outer.top - inner.top;
    else if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom;
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
    byId("slider").max = last;
    byId("player").hidden = !shown.group.traced;
    for (const side of sides) showSide(side, played[side.number], last);
    showLegend(played.filter(Boolean));
    showStep(step === undefined ? last : step);
  }

  function showGiven(problem) {
    const around = texts.around[problem], answer = texts.answers[problem];
    byId("prompt-box").hidden = around === null;
    byId("answer-box").hidden = answer === null;
    if (around !== null) byId("prompt").textContent = around.join(" \u2581\u2581\u2581 ").replace(/ \u2581\u2581\u2581 $/, "");
    if (answer !== null) byId("answer").textContent = answer.replace(/^\n+/, "");
    byId("prompt").scrollTop = byId("prompt").scrollHeight;
  }

  // A box that the keyboard can reach and scroll.
  function reached(kind, role, label) {
    const made = element("div", kind);
    made.tabIndex = 0;
    made.setAttribute("role", role);
    made.setAttribute("aria-label", label);
    return made;
  }

  function makeSide(side) {
    side.select = element("select");
    side.select.setAttribute("aria-label", side.number ? "Second method" : "First method");
    side.verdict = element("span", "verdict");
    side.figures = element("span", "figures-line");
    side.text = reached("text answer", "region", "Text");
    side.canvas = reached("canvas", "group", "Canvas");
    side.said = element("p", "said");
    side.choice = element("select", "choice");
    side.choice.setAttribute("aria-label", "Candidate");
    side.lanes = element("div", "lanes");
    const header = element("header"), line = element("div", "line");
    header.append(side.select, side.verdict, side.figures);
    line.append(side.said, side.choice);
    side.section.append(header, element("h4", "", "Text"), side.text, element("h4", "traced", "Canvas"), side.canvas, line, side.lanes);
    watchSide(side);
  }

  function watchSide(side) {
    side.select.addEventListener("change", () => {
      shown.methods[side.number] = Number(side.select.value);
      showList();
      showProblem(shown.problem);
    });
    side.choice.addEventListener("change", () => {
      side.place = {step: shown.step, first: Number(side.choice.value)};
      showStep(shown.step, true);
    });
    for (const kind of ["mouseover", "focusin"]) side.canvas.addEventListener(kind, event => tellCell(side, event.target));
    for (const kind of ["mouseleave", "focusout"]) side.canvas.addEventListener(kind, () => tellStep(side));
    side.canvas.addEventListener("keydown", event => walkTokens(side, event));
  }

  function showSide(side, playback, last) {
    const method = shown.methods[side.number], right = isRight(method, shown.problem);
    side.playback = playback;
    side.place = null;
    side.select.value = method;
    side.verdict.textContent = right ? "\u2713 right" : "\u2717 wrong";
    side.verdict.className = `verdict ${right ? "right" : "wrong"}`;
    const finish = texts.finish[method][shown.problem];
    const parts = [counted(texts.forwards[method][shown.problem], "forward"), ...(playback ? [counted(playback.last, "step")] : [])];
    side.figures.textContent = [...parts, ...(finish === "stop" ? [] : [`ended by ${finish}`])].join(" \u00b7 ");
    side.text.textContent = texts.texts[method][shown.problem].replace(/^\n+/, "");
    side.section.classList.toggle("untraced", playback === null);
    side.steps = last;
    drawSide(side);
  }

  function drawSide(side) {
    if (!side.playback) return;
    side.drawn = SoarTrace.drawLanes(side.lanes, side.playback, side.steps, (step, place) => {
      pause();
      side.place = place;
      showStep(step, true);
    });
  }

  // ---- A step

  // A candidate that was chosen stays chosen only if ``chosen`` says so: another step has other candidates.
  function showStep(step, chosen = false) {
    shown.step = Math.min(Math.max(step, 0), Number(byId("slider").max));
    byId("slider").value = shown.step;
    const last = byId("slider").max;
    byId("slider").setAttribute("aria-valuetext", `Step ${shown.step} of ${last}`);
    byId("step-text").textContent = `${shown.step} / ${last}`;
    for (const side of sides) {
      if (!chosen || (side.place && side.place.step !== shown.step)) side.place = null;
      if (side.playback) showCanvas(side);
    }
    if (shown.step >= Number(last)) pause();
    keepLink();
  }

  function placeOf(side) {
    return side.place || side.playback.standing(shown.step);
  }

  function showCanvas(side) {
    const focused = side.canvas.contains(document.activeElement) && document.activeElement.dataset.at;
    const place = placeOf(side);
    SoarTrace.drawCanvas(side.canvas, side.playback, place, shown.step);
    const fresh = side.canvas.querySelector(".fresh");
    if (fresh) showWithin(side.canvas, fresh);
    if (focused) {
      const again = side.canvas.querySelector(`[data-at="${focused}"]`) || side.canvas;
      again.focus({preventScroll: true});
    }
    showChoice(side, place);
    side.drawn.mark({step: Math.min(shown.step, side.playback.last), shown: place});
    if (!focused) tellStep(side);
  }

  function showChoice(side, place) {
    const record = side.playback.steps[shown.step - 1], many = record ? record.beam.length : 0;
    side.choice.classList.toggle("idle", many < 2);
    side.choice.disabled = many < 2;
    options(side.choice, Array.from({length: many}, (_, first) => {
      return [first, `candidate ${first + 1} of ${many}${first === record.best ? ", stands" : ""}`];
    }), place.first);
  }

  function tellStep(side) {
    if (side.playback) side.said.textContent = SoarTrace.stepSentence(side.playback, placeOf(side), shown.step);
  }

  function tellCell(side, target) {
    if (target.dataset.at !== undefined) {
      side.said.textContent = SoarTrace.cellSentence(side.playback, placeOf(side), Number(target.dataset.at));
    } else if (target === side.canvas) {
      tellStep(side);
    }
  }

  function walkTokens(side, event) {
    if (!event.shiftKey || !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    const cells = [...side.canvas.querySelectorAll(".cell")], now = cells.indexOf(document.activeElement);
    const next = now < 0 ? 0 : now + (event.key === "ArrowRight" ? 1 : -1);
    if (cells[next]) cells[next].focus();
    event.preventDefault();
    event.stopPropagation();
  }

  function showLegend(playbacks) {
    const used = new Set(playbacks.flatMap(one => one.steps.flatMap(step => step.beam.map(entry => entry.mode))));
    const scale = element("p", "scale");
    const bounds = [...SoarTrace.SURE, 0];
    scale.append(element("span", "cell mask", SoarTrace.MASK), element("span", "", "masked"), element("span", "cell end", SoarTrace.END),
      element("span", "", "end of text"), element("span", "cell token fresh", "abc"), element("span", "", "this step"),
      element("span", "name", "Confidence"));
    bounds.forEach((least, level) => {
      scale.append(element("span", `cell token sure-${level}${least < 0.5 ? " unsure" : ""}`, least ? `\u2265 ${least}` : `< ${bounds[level - 1]}`));
    });
    const modes = element("p", "modes");
    for (const mode of data.modes.filter(one => used.has(one))) {
      const one = element("span");
      one.append(SoarTrace.sign(mode), ` ${SoarTrace.TOLD[mode]}`);
      modes.append(one);
    }
    byId("legend").replaceChildren(...(playbacks.length ? [scale, modes] : []));
  }

  // ---- Playing

  function play() {
    if (shown.step >= Number(byId("slider").max)) showStep(0);
    const pace = matchMedia("(prefers-reduced-motion: reduce)").matches ? CALM_PACE : PACE;
    timer = setInterval(() => showStep(shown.step + 1), pace);
    byId("play").textContent = "Pause";
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    byId("play").textContent = "Play";
  }

  function go(step) {
    pause();
    showStep(step);
  }

  function turnTo(by) {
    const now = found.indexOf(shown.problem), next = found[now < 0 ? 0 : now + by];
    if (next === undefined) return;
    pause();
    showProblem(next);
  }

  // ---- Links: #task/method/method/problem/step

  function keepLink() {
    const {group, methods, problem, step} = shown;
    const parts = [group.name, ...methods.map(method => group.methods[method]), group.indices[problem], step];
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
    pause();
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
    const does = {
      ArrowLeft: () => go(shown.step - 1), ArrowRight: () => go(shown.step + 1),
      Home: () => go(0), End: () => go(Number(byId("slider").max)), " ": () => timer ? pause() : play(),
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
      pause();
      showProblem(found[0]);
    }
  }

  function watch() {
    byId("task").addEventListener("change", async event => {
      await showGroup(Number(event.target.value));
      showList();
      pause();
      await showProblem(0);
    });
    byId("kind").addEventListener("change", event => filter({kind: event.target.value}));
    byId("search").addEventListener("input", event => filter({search: event.target.value}));
    byId("problems").addEventListener("click", event => {
      const button = event.target.closest("button");
      if (!button) return;
      pause();
      showProblem(Number(button.dataset.problem));
    });
    byId("slider").addEventListener("input", event => go(Number(event.target.value)));
    byId("to-start").addEventListener("click", () => go(0));
    byId("back").addEventListener("click", () => go(shown.step - 1));
    byId("forward").addEventListener("click", () => go(shown.step + 1));
    byId("to-end").addEventListener("click", () => go(Number(byId("slider").max)));
    byId("play").addEventListener("click", () => timer ? pause() : play());
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
    sides.filter(side => side.playback).forEach(side => {
      drawSide(side);
      side.drawn.mark({step: Math.min(shown.step, side.playback.last), shown: placeOf(side)});
    });
  }

  async function begin() {
    if (!data.groups.length) return tell("There are no problems to show yet.");
    if (!canInflate()) return tell("This browser cannot unpack the explorer\u2019s data. A current Chrome, Edge, Firefox or Safari can.");
    byId("workbench").hidden = false;
    makeOutcomes();
    sides.forEach(makeSide);
    options(byId("task"), data.groups.map((group, place) => [place, group.name]), 0);
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
})();
