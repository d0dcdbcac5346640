"""A canvas as pieces of text, each with a colour that says how sure the model was of it, and a hint on hovering."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby
from math import sqrt
from statistics import fmean

from soar_dlm.engine.scene import Scene
from soar_dlm.playback import Canvas, Cell
from soar_dlm.results import MASK_SIGN

END = "∎"
HUE = (213, 94, 0)
"""One hue, which everybody can tell from grey; how strong it is says how unsure the model was."""

LEVELS = 10
FAINTEST, STRONGEST = 0.06, 0.55
"""How opaque the background of a token is, so that text of any colour stays legible on light and dark pages."""

FAINT = "opacity:.7"
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True)
class Span:
    """Some text, its style as CSS, and what is said when the pointer rests on it."""

    text: str
    style: str = ""
    hint: str = ""

    @property
    def html(self) -> str:
        style = f' style="{self.style}"' if self.style else ""
        hint = f' title="{escape(self.hint)}"' if self.hint else ""
        return f"<span{style}{hint}>{escape(self.text)}</span>"


def level(share: float) -> int:
    """How strong the colour of a confidence is, from 0 (sure) to LEVELS; it grows fastest where models mostly are."""
    return round(sqrt(1 - min(max(share, 0.0), 1.0)) * LEVELS)


def opacity(strength: int, faintest: float = FAINTEST, strongest: float = STRONGEST) -> float:
    return faintest + (strongest - faintest) * strength / LEVELS


def paper(share: float | None) -> str:
    """The background of a confidence between 0 and 1; None has no colour."""
    return "" if share is None else "background:rgba({},{},{},{:.2f})".format(*HUE, opacity(level(share)))


def clean(text: str) -> str:
    """Text without characters that browsers refuse or that turn the text around them the other way."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def spans(canvas: Canvas, scene: Scene) -> list[Span]:
    """The canvas from left to right, with the text around its blanks."""
    shown = [Span(clean(scene.around[0]), FAINT)]
    for blank, after in enumerate(scene.around[1:]):
        cells = [cell for cell in canvas.values() if cell.blank == blank]
        for kind, run in groupby(cells, key=lambda cell: _kind(cell, scene)):
            shown += _run(kind, list(run), scene)
        shown.append(Span(clean(after), FAINT))
    return [span for span in shown if span.text]


def legend() -> str:
    """What the colours and signs mean."""
    shares = [1 - (strength / LEVELS) ** 2 for strength in range(0, LEVELS + 1, 2)]
    scale = "".join(Span("\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}", paper(share)).html for share in shares)
    return f"sure {scale} unsure \N{MIDDLE DOT} {MASK_SIGN} masked \N{MIDDLE DOT} {END} end of text"


def _kind(cell: Cell, scene: Scene) -> str:
    if cell.token is None:
        return "mask"
    return "end" if cell.token in scene.ends else "text"


def _run(kind: str, cells: list[Cell], scene: Scene) -> Iterator[Span]:
    if kind == "mask":
        yield Span(MASK_SIGN * len(cells), FAINT, f"{len(cells)} masked")
    elif kind == "end":
        sign = END if len(cells) == 1 else f"{END}\N{MULTIPLICATION SIGN}{len(cells)}"
        known = [scene.share(cell.confidence) for cell in cells if cell.confidence is not None]
        yield Span(sign, paper(fmean(known) if known else None), f"end of text, {_steps(cells)}")
    else:
        for cell in cells:
            share = None if cell.confidence is None else scene.share(cell.confidence)
            yield Span(clean(scene.pieces.get(cell.token or 0, "")), paper(share), hint(cell))


def hint(cell: Cell) -> str:
    """When and how a token was committed, and how sure the model was."""
    if cell.step is None or cell.confidence is None:
        return "filled in after the end"
    return f"step {cell.step}, {cell.mode}, confidence {cell.confidence:.3f}"


def _steps(cells: Iterable[Cell]) -> str:
    known = sorted({cell.step for cell in cells if cell.step is not None})
    if not known:
        return "filled in"
    return f"step {known[0]}" if len(known) == 1 else f"steps {known[0]} to {known[-1]}"
