// The buttons and the slider that lead through the steps.
import {byId, element} from "./dom.js";

const PACE = 140, CALM_PACE = 600;  // milliseconds between steps while playing

export class Player {
  // ``show`` is called with the step whenever it is another one, or the same once more.
  constructor(show) {
    this.show = show;
    this.timer = null;
    const buttons = element("div", "buttons");
    this.button = this.made("play", "Play", "Play (Space)", () => this.toggle());
    buttons.append(
      this.made("to-start", "\u21e4", "First step (Home)", () => this.go(0)),
      this.made("back", "\u2190", "Previous step (\u2190)", () => this.go(this.step - 1)),
      this.button,
      this.made("forward", "\u2192", "Next step (\u2192)", () => this.go(this.step + 1)),
      this.made("to-end", "\u21e5", "Last step (End)", () => this.go(this.last)));
    this.slider = element("input");
    Object.assign(this.slider, {id: "slider", type: "range", min: 0, max: 0, value: 0});
    this.slider.setAttribute("aria-label", "Step");
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    this.text = element("output");
    this.text.id = "step-text";
    this.text.htmlFor = this.slider.id;
    byId("player").append(buttons, this.slider, this.text);
  }

  // A button; one that shows a sign is called what its title says before the key.
  made(id, text, title, does) {
    const button = element("button", "", text);
    Object.assign(button, {id, title, type: "button"});
    if (id !== "play") button.setAttribute("aria-label", title.replace(/ \(.*/, ""));
    button.addEventListener("click", does);
    return button;
  }

  get step() {
    return Number(this.slider.value);
  }

  get last() {
    return Number(this.slider.max);
  }

  set last(last) {
    this.slider.max = last;
  }

  get playing() {
    return this.timer !== null;
  }

  // Shows a step, whether it plays or not.
  set(step) {
    this.slider.value = Math.min(Math.max(step, 0), this.last);
    this.slider.setAttribute("aria-valuetext", `Step ${this.step} of ${this.last}`);
    this.text.textContent = `${this.step} / ${this.last}`;
    this.show(this.step);
    if (this.step >= this.last) this.pause();
  }

  // What a reader who wants a certain step gets.
  go(step) {
    this.pause();
    this.set(step);
  }

  play() {
    if (this.step >= this.last) this.set(0);
    const pace = matchMedia("(prefers-reduced-motion: reduce)").matches ? CALM_PACE : PACE;
    this.timer = setInterval(() => this.set(this.step + 1), pace);
    this.button.textContent = "Pause";
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.button.textContent = "Play";
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  // What a key does here, if anything.
  keyed(key) {
    return {
      ArrowLeft: () => this.go(this.step - 1), ArrowRight: () => this.go(this.step + 1),
      Home: () => this.go(0), End: () => this.go(this.last), " ": () => this.toggle(),
    }[key];
  }
}
