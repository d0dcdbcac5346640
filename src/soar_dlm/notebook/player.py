"""A slider over the steps, where a page may run scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from soar_dlm.notebook.spans import Span
from soar_dlm.results import MASK_SIGN

SCRIPT = """\
(() => {
  const [styles, spans, changes, lines] = %DATA%;
  const frames = [];
  let now = [];
  for (const [before, middle, after] of changes) {
    now = now.slice(0, before).concat(middle, now.slice(now.length - after));
    frames.push(now);
  }
  const made = (number) => {
    const [text, style, hint] = spans[number], span = document.createElement("span");
    span.textContent = typeof text === "number" ? "%MASK%".repeat(text) : text;
    span.style.cssText = styles[style];
    if (hint) span.title = hint;
    return span;
  };
  for (const box of document.querySelectorAll("#%ID%:not([data-live])")) {
    box.dataset.live = "";
    const canvas = box.querySelector(".soar-canvas"), line = box.querySelector(".soar-line");
    const slider = document.createElement("input"), last = frames.length - 1, svg = box.querySelector("svg");
    Object.assign(slider, {type: "range", min: 0, max: last, value: last});
    slider.setAttribute("aria-label", "step");
    slider.style.cssText = "width:100%;max-width:560px;display:block;accent-color:rgb(213,94,0)";
    const bar = svg && document.createElementNS(svg.namespaceURI, "rect");
    if (bar) {
      const {width, height} = svg.viewBox.baseVal;
      for (const [name, value] of Object.entries({width, height: height / last, fill: "currentColor",
        "fill-opacity": 0.25, y: height})) bar.setAttribute(name, value);
      svg.append(bar);
    }
    slider.oninput = () => {
      const step = Number(slider.value);
      canvas.replaceChildren(...frames[step].map(made));
      line.textContent = lines[step];
      if (bar) bar.setAttribute("y", (step - 1) * svg.viewBox.baseVal.height / last);
    };
    canvas.before(slider);
  }
})();
"""


def player(identity: str, data: str) -> str:
    """A script that puts a slider into each element of this identity; ``data`` is text to it, never markup."""
    return f"<script>\n{SCRIPT.replace('%MASK%', MASK_SIGN).replace('%ID%', identity).replace('%DATA%', data)}</script>"


def packed(frames: Sequence[Sequence[Span]], lines: Sequence[str]) -> str:
    """Styles, distinct spans, and what changes from frame to frame, as JSON that cannot end a script.

    A change is [a, spans, z]: the first a and the last z spans of the frame before stay. Masks are their number.
    """
    styles: dict[str, int] = {}
    numbers: dict[Span, int] = {}
    changes: list[Any] = []
    before: list[int] = []
    for frame in frames:
        now = [numbers.setdefault(span, len(numbers)) for span in frame]
        first = _common(before, now)
        last = _common(before[first:][::-1], now[first:][::-1])
        changes.append([first, now[first : len(now) - last], last])
        before = now
    spans = [[_short(span.text), styles.setdefault(span.style, len(styles)), span.hint] for span in numbers]
    data = [list(styles), spans, changes, list(lines)]
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _short(text: str) -> str | int:
    return len(text) if text and not text.strip(MASK_SIGN) else text


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many numbers two lists have in common at their beginnings."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
