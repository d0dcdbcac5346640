"""``--watch``: the canvas as it fills, each token coloured by how sure the model was of it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from soar_dlm.cli.canvas import Drawing, Palette, Pieces, Window, folded, joined
from soar_dlm.cli.figures import Figures

if TYPE_CHECKING:
    from soar_dlm.lm import LM
    from soar_dlm.results import Event, Result
    from soar_dlm.search.confidence import Metric
    from soar_dlm.search.strategy import Strategy

_FRAME = 3
"""Lines below the canvas: which part is in view, the figures and the legend."""


def show(
    lm: LM, events: Iterator[Event], strategy: Strategy, console: Console, around: Sequence[str] = ("", "")
) -> Result:
    """Show the events as they come, and return the result of the last.

    1. A canvas that is taller than the terminal is seen through a window that follows the changes.
    2. When decoding is done the window makes room for the whole text, printed once.
    3. Without a terminal nothing is shown.
    """
    from soar_dlm.search.metrics import get_metric

    palette = Palette(console)
    share = as_share(get_metric(strategy.metric))
    drawing = Drawing(palette, pieces_of(lm), lm.end_token_ids, share, around)
    window, figures, last, line = Window(), Figures(), None, Text()
    with Live(console=console, auto_refresh=False, transient=True, vertical_overflow="crop") as live:
        for last in events:
            if console.is_terminal:
                line = figures.line(last)
                live.update(frame(drawing, last, window, palette, console, line), refresh=True)
    assert last is not None
    assert last.result is not None
    if console.is_terminal:
        console.print(joined(drawing.final(last, pieces_of(lm, special=False))), soft_wrap=True)
        console.print(Group(Text(), line, palette.legend()))
    return last.result


def pieces_of(lm: LM, special: bool = True) -> Pieces:
    """The model's tokens as text, with or without special tokens."""
    return Pieces(lambda ids: str(lm.tokenizer.decode(ids, skip_special_tokens=not special)))


def shown_on(console: Console) -> bool:
    """Whether standard output is the terminal that :func:`show` has already shown the text on."""
    return console.is_terminal and sys.stdout is not None and sys.stdout.isatty()


def as_share(metric: Metric) -> Callable[[float], float]:
    """Confidences of a metric on a scale from 0 to 1; negative entropy e becomes exp(e)."""
    if math.isinf(metric.low):
        return lambda confidence: math.exp(min(confidence - metric.high, 0.0))
    return lambda confidence: (confidence - metric.low) / (metric.high - metric.low)


def frame(drawing: Drawing, event: Event, window: Window, palette: Palette, console: Console, line: Text) -> Group:
    """The part of the canvas in view with its line of figures, never taller than the terminal."""
    lines, fresh = folded(drawing.cells(event), console.width - 1)  # terminals differ by a column in some characters
    height = max(console.height - _FRAME - 1, 1)
    top = window.top(len(lines), fresh, height)
    view = lines[top : top + height]
    part = f"[lines {top + 1} to {top + len(view)} of {len(lines)}]" if len(lines) > height else ""
    below = [Text(part), line, palette.legend()]
    for one in below:
        one.no_wrap, one.overflow = True, "ellipsis"
    return Group(*view, *below)
