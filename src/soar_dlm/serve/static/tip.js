// A small card at a token that the pointer or the focus is on: when it was written, how surely, and what came second.
import {byId, element} from "./dom.js";
import {chance, number, quoted} from "./sentences.js";

const APART = 6;  // pixels between a token and its card

// What a view is given to tell of its tokens with; ``view`` returns it.
export function tipOf(view) {
  return token => {
    const card = byId("tip");
    card.hidden = !token || !fill(card, view(), Number(token.dataset.at));
    if (card.hidden) return;
    token.setAttribute("aria-describedby", card.id);
    place(card, token.getBoundingClientRect());
  };
}

export function hideTip() {
  byId("tip").hidden = true;
}

// Whether there is something to tell of a position.
function fill(card, view, at) {
  const {playback, shown} = view, cell = playback.canvas(shown).find(one => one.at === at);
  if (!cell || cell.token === null || cell.step === null) return false;
  card.replaceChildren(element("strong", "", quoted(playback.scene, cell.token)), element("span", "", `step ${cell.step}, ${cell.mode}`),
    ...row("confidence", number(cell.confidence)));
  if (cell.runnerUp) card.append(...row(`second ${quoted(playback.scene, cell.runnerUp[0])}`, chance(cell.runnerUp[1])));
  return true;
}

function row(what, value) {
  return [element("span", "what", what), element("span", "value", value)];
}

function place(card, token) {
  card.hidden = false;
  const {width, height} = card.getBoundingClientRect();
  const below = token.bottom + APART + height < innerHeight;
  card.style.left = `${Math.max(Math.min(token.left, document.documentElement.clientWidth - width - APART), APART)}px`;
  card.style.top = `${below ? token.bottom + APART : token.top - APART - height}px`;
}
