// One decoding: its canvas after a step, a sentence about the step or a token, and its candidates on lanes.
import {drawCanvas, walkTokens} from "./canvas.js";
import {choices, element, reached, showWithin} from "./dom.js";
import {drawLanes} from "./lanes.js";
import {cellSentence, stepSentence} from "./sentences.js";

let views = 0;

export class View {
  // ``choose`` is called with a step that the reader clicked, or whose candidate the reader chose. ``tellToken`` gets the
  // element of a token that the reader looks at; null when it is none any more.
  constructor(choose, tellToken = null) {
    this.choose = choose;
    this.tellToken = tellToken || (token => this.sayToken(token));
    this.playback = null;
    this.step = 0;
    this.place = null;  // a candidate that the reader chose in place of the one that the search stands by
    this.canvas = reached("canvas", "group", "Canvas");
    this.said = element("p", "said");
    this.said.id = `said-${views += 1}`;
    this.choice = element("select", "choice");
    this.choice.setAttribute("aria-label", "Candidate");
    this.line = element("div", "line");
    this.line.append(this.said, this.choice);
    this.lanes = element("div", "lanes");
    this.listen();
  }

  listen() {
    this.choice.addEventListener("change", () => {
      this.place = {step: this.step, first: Number(this.choice.value)};
      this.choose(this.step);
    });
    for (const kind of ["mouseover", "focusin"]) {
      this.canvas.addEventListener(kind, ({target}) => this.tellToken(target.dataset.at === undefined ? null : target));
    }
    for (const kind of ["mouseleave", "focusout"]) this.canvas.addEventListener(kind, () => this.tellToken(null));
    this.canvas.addEventListener("keydown", event => walkTokens(this.canvas, event));
  }

  // Shows another decoding, next to one of ``steps`` steps; null shows none.
  open(playback, steps) {
    this.playback = playback;
    this.place = null;
    this.steps = steps;
    this.drawLanes();
  }

  drawLanes() {
    if (!this.playback) return;
    this.drawn = drawLanes(this.lanes, this.playback, this.steps, (step, place) => {
      this.place = place;
      this.choose(step);
    });
  }

  // Draws the lanes again, for another width or more steps.
  redraw(steps = this.steps) {
    this.steps = steps;
    this.drawLanes();
    if (this.playback) this.mark();
  }

  // Shows the canvas after a step. A candidate that was chosen stays so in its own step: another one has others.
  show(step) {
    this.step = step;
    if (this.place && this.place.step !== step) this.place = null;
    if (!this.playback) return;
    const focused = this.canvas.contains(document.activeElement) && document.activeElement.dataset.at;
    drawCanvas(this.canvas, this.playback, this.shown, step);
    const fresh = this.canvas.querySelector(".fresh");
    if (fresh) showWithin(this.canvas, fresh);
    if (focused) {
      const again = this.canvas.querySelector(`[data-at="${focused}"]`) || this.canvas;
      again.focus({preventScroll: true});
    }
    this.showChoice();
    this.mark();
    if (!focused) this.tellStep();
  }

  get shown() {
    return this.place || this.playback.standing(this.step);
  }

  mark() {
    this.drawn.mark({step: Math.min(this.step, this.playback.last), shown: this.shown});
  }

  showChoice() {
    const record = this.playback.steps[this.step - 1], many = record ? record.beam.length : 0;
    this.choice.classList.toggle("idle", many < 2);
    this.choice.disabled = many < 2;
    choices(this.choice, Array.from({length: many}, (_, first) => {
      return [first, `candidate ${first + 1} of ${many}${first === record.best ? ", stands" : ""}`];
    }), this.shown.first);
  }

  tellStep() {
    if (this.playback) this.said.textContent = stepSentence(this.playback, this.shown, this.step);
  }

  sayToken(token) {
    if (!token) return this.tellStep();
    this.said.textContent = cellSentence(this.playback, this.shown, Number(token.dataset.at));
    token.setAttribute("aria-describedby", this.said.id);
  }
}
