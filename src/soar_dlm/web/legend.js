// What colours and signs mean.
import {confidenceOf, END, MASK, SURE} from "./canvas.js";
import {element} from "./dom.js";
import {sign, TOLD} from "./lanes.js";

// Fills a box with the scale of confidence, and with those modes that the decodings have. The scale is in the unit of
// the metric; two decodings with different metrics share one from 0 to 1.
export function showLegend(box, playbacks) {
  const used = new Set(playbacks.flatMap(one => one.steps.flatMap(step => step.beam.map(entry => entry.mode))));
  const scale = element("p", "scale"), bounds = [...SURE, 0], told = unit(playbacks.map(one => one.scene));
  scale.append(element("span", "cell mask", MASK), element("span", "", "masked"), element("span", "cell end", END),
    element("span", "", "end of text"), element("span", "cell token fresh", "abc"), element("span", "", "this step"),
    element("span", "name", "Confidence"));
  bounds.forEach((least, level) => {
    const bound = least ? `\u2265 ${told(least)}` : `< ${told(bounds[level - 1])}`;
    scale.append(element("span", `cell token sure-${level}${least < 0.5 ? " unsure" : ""}`, bound));
  });
  const modes = element("p", "modes");
  for (const mode of Object.keys(TOLD).filter(one => used.has(one))) {
    const one = element("span");
    one.append(sign(mode), ` ${TOLD[mode]}`);
    modes.append(one);
  }
  box.replaceChildren(...(playbacks.length ? [scale, modes] : []));
}

// Tells a share of the scale as a confidence.
function unit(scenes) {
  const [scene] = scenes, alike = scenes.every(one => one.low === scene.low && one.high === scene.high);
  return share => alike && scene ? String(Number(confidenceOf(scene, share).toPrecision(2))).replace("-", "\u2212") : `${share}`;
}
