// One decoding on the stage, as it comes or as it came: its figures, and the view of its steps.
import {element} from "./dom.js";
import {Playback} from "./playback.js";
import {tipOf} from "./tip.js";
import {View} from "./view.js";

const FIGURES = ["steps", "forwards", "tokens per forward", "seconds"];

export class Side {
  constructor(number, choose) {
    this.section = element("section", "side");
    this.section.setAttribute("aria-label", number ? "Second strategy" : "First strategy");
    this.title = element("h3");
    this.words = element("p", "words");
    this.figures = element("dl", "figures");
    this.view = new View(choose, tipOf(() => this.view));
    const {canvas, line, lanes} = this.view;
    this.section.append(this.title, this.words, this.figures, canvas, line, lanes);
    this.clear("");
  }

  clear(title) {
    this.title.textContent = title;
    this.words.textContent = "";
    this.playback = this.result = null;
    this.times = [0];
    this.running = false;
    this.view.open(null, 0);
    this.view.canvas.replaceChildren();
    this.view.lanes.replaceChildren();
    this.view.said.textContent = "";
    this.showFigures(0);
  }

  // A decoding that begins: what the server says of it before the first step.
  begin({strategy, canvas, scene}) {
    this.words.textContent = [strategy.replace(/^[^:]*: /, ""), canvas].filter(Boolean).join("; ");
    this.started = performance.now();
    this.running = true;
    this.open(new Playback({scene, steps: []}));
  }

  step({pieces, forwards_so_far, ...record}) {
    Object.assign(this.playback.scene.pieces, pieces);
    this.playback.append(record);
    this.times.push((performance.now() - this.started) / 1000);
  }

  open(playback) {
    this.playback = playback;
    this.view.open(playback, playback.last);
  }

  get last() {
    return this.playback ? this.playback.last : 0;
  }

  show(step) {
    if (!this.playback) return;
    const now = this.running ? Math.min(step, this.last) : step;
    this.view.show(now);
    this.showFigures(Math.min(now, this.last));
  }

  showFigures(step) {
    this.figures.replaceChildren(...FIGURES.map((name, place) => {
      const pair = element("div");
      pair.append(element("dt", "", name), element("dd", "", this.playback ? this.values(step)[place] : "\u2013"));
      return pair;
    }));
  }

  values(step) {
    const forwards = this.playback.forwards(step), seconds = this.times[step];
    const written = this.playback.canvas(this.playback.standing(step)).filter(cell => cell.step !== null).length;
    const rate = forwards ? (written / forwards).toFixed(2) : "0";
    return [String(step), String(forwards), rate, seconds === undefined ? "\u2013" : seconds.toFixed(2)];
  }

  // The line of a trace file; without a text if the decoding was stopped.
  line(index, method, asked) {
    const {steps, scene} = this.playback;
    const {text, blanks} = this.result || {};
    return {index, method, ...asked, ...(text === undefined ? {} : {text}), ...(blanks ? {blanks} : {}), trace: steps, scene};
  }
}
