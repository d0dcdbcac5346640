// What colours and signs mean.
import {END, MASK, SURE} from "./canvas.js";
import {element} from "./dom.js";
import {sign, TOLD} from "./lanes.js";

// Fills a box with the scale of confidence, and with those modes that the decodings have.
export function showLegend(box, playbacks) {
  const used = new Set(playbacks.flatMap(one => one.steps.flatMap(step => step.beam.map(entry => entry.mode))));
  const scale = element("p", "scale"), bounds = [...SURE, 0];
  scale.append(element("span", "cell mask", MASK), element("span", "", "masked"), element("span", "cell end", END),
    element("span", "", "end of text"), element("span", "cell token fresh", "abc"), element("span", "", "this step"),
    element("span", "name", "Confidence"));
  bounds.forEach((least, level) => {
    scale.append(element("span", `cell token sure-${level}${least < 0.5 ? " unsure" : ""}`, least ? `\u2265 ${least}` : `< ${bounds[level - 1]}`));
  });
  const modes = element("p", "modes");
  for (const mode of Object.keys(TOLD).filter(one => used.has(one))) {
    const one = element("span");
    one.append(sign(mode), ` ${TOLD[mode]}`);
    modes.append(one);
  }
  box.replaceChildren(...(playbacks.length ? [scale, modes] : []));
}
