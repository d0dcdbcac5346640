// One strategy and its settings: the part of the form that there is once for each side.
import {choices, element} from "./dom.js";
import {enter, entered, makeField, typed} from "./fields.js";

const FIRST = ["beam", "threshold", "metric", "tokens_per_step"];  // the settings that matter most; others are folded

export class Setup {
  constructor(number, facts) {
    this.facts = facts;
    this.prefix = number ? "second" : "first";
    this.box = element("fieldset", "setup");
    this.box.append(element("legend", "unseen", number ? "Second strategy" : "First strategy"));
    this.select = element("select", "strategy");
    this.select.setAttribute("aria-label", "Strategy");
    choices(this.select, facts.strategies.map(({name}) => [name, name]), facts.default);
    this.rule = element("p", "rule");
    this.main = element("div", "fields");
    this.others = element("div", "fields");
    this.fold = element("details");
    this.fold.append(element("summary", "", "More of this strategy"), this.others);
    this.box.append(this.select, this.rule, this.main, this.fold);
    this.select.addEventListener("change", () => this.showFields());
    this.box.addEventListener("change", () => this.showThreshold());
    this.showFields();
  }

  get about() {
    return this.facts.strategies.find(one => one.name === this.select.value);
  }

  showFields() {
    const {rule, settings} = this.about;
    this.rule.textContent = rule;
    const fields = names => settings.filter(one => names(one.name)).map(one => makeField(one, this.prefix));
    this.main.replaceChildren(...fields(name => FIRST.includes(name)));
    this.others.replaceChildren(...fields(name => !FIRST.includes(name)));
    this.fold.hidden = !this.others.childElementCount;
    this.showThreshold();
  }

  // The default of a threshold belongs to the metric.
  showThreshold() {
    const threshold = this.main.querySelector("[data-name=threshold]"), metric = this.main.querySelector("[data-name=metric]");
    if (!threshold) return;
    const own = this.about.settings.find(one => one.name === "threshold").default;
    threshold.placeholder = metric && metric.value ? this.facts.thresholds[metric.value] ?? "\u2013" : own;
  }

  // What the link keeps of it.
  get chosen() {
    return {strategy: this.select.value, settings: entered(this.box)};
  }

  choose({strategy, settings}) {
    if (!this.facts.strategies.some(one => one.name === strategy)) return `There is no strategy \u201c${strategy}\u201d here.`;
    this.select.value = strategy;
    this.showFields();
    enter(this.box, settings);
    this.fold.open = Object.keys(settings).some(name => this.others.querySelector(`[data-name="${CSS.escape(name)}"]`));
    this.showThreshold();
    return "";
  }

  get name() {
    return this.select.value;
  }

  // What the server is asked for. The model's default strategy has settings of its own only where it is not named.
  get request() {
    return {...(this.name === this.facts.default ? {} : {strategy: this.name}), ...typed(this.box)};
  }
}
