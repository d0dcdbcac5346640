// The buttons and the slider that lead through the steps.
import {byId} from "./dom.js";

const PACE = 140, CALM_PACE = 600;  // milliseconds between steps while playing

export class Player {
  // ``show`` is called with the step whenever it is another one, or the same once more.
  constructor(show) {
    this.show = show;
    this.timer = null;
    this.slider = byId("slider");
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    byId("to-start").addEventListener("click", () => this.go(0));
    byId("back").addEventListener("click", () => this.go(this.step - 1));
    byId("forward").addEventListener("click", () => this.go(this.step + 1));
    byId("to-end").addEventListener("click", () => this.go(this.last));
    byId("play").addEventListener("click", () => this.toggle());
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
    byId("step-text").textContent = `${this.step} / ${this.last}`;
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
    byId("play").textContent = "Pause";
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    byId("play").textContent = "Play";
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
