"""``--watch``: the canvas as it fills, each token coloured by how sure the model was of it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from soar_dlm.cli.canvas import Cell, Drawing, Palette, Pieces, Window, folded, joined
from soar_dlm.figures import Figures

if TYPE_CHECKING:
    from soar_dlm.lm import LM
    from soar_dlm.results import Event, Result
    from soar_dlm.search.confidence import Metric
    from soar_dlm.search.strategy import Strategy

_FRAME = 3
"""Lines below the canvas: which part is in view, the figures and the legend."""


class Pane:
    """The canvas of one request, and the line that says what its latest step did.

    A canvas that is taller than there is room is seen through a window that follows the changes.
    """

    def __init__(self, drawing: Drawing) -> None:
        self.drawing, self.line = drawing, ""
        self._window, self._figures = Window(), Figures()
        self._cells: list[Cell] = []

    def follow(self, event: Event) -> None:
        self._cells, self.line = self.drawing.cells(event), self._figures.line(event)

    def view(self, width: int, height: int) -> tuple[list[Text], list[Text]]:
        """At most ``height`` lines of the canvas, and the two below them: which part that is, and the figures."""
        lines, fresh = folded(self._cells, width)
        top = self._window.top(len(lines), fresh, height)
        view = lines[top : top + height]
        part = f"[lines {top + 1} to {top + len(view)} of {len(lines)}]" if len(lines) > height else ""
        return view, [shortened(Text(part), width), shortened(Text(self.line), width)]


def show(
    lm: LM, events: Iterator[Event], strategy: Strategy, console: Console, around: Sequence[str] = ("", "")
) -> Result:
    """Show the events as they come, and return the result of the last.

    When decoding is done the canvas makes room for the whole text, printed once. Without a terminal nothing is shown.
    """
    palette = Palette(console)
    pane = Pane(drawing_of(lm, strategy, palette, around))
    last = follow(events, pane, palette, console)
    assert last.result is not None
    if console.is_terminal:
        cells = pane.drawing.final(last, texts_of(last.result), pieces_of(lm, special=False))
        leave(cells, pane, palette, console)
    return last.result


def follow(events: Iterable[Event], pane: Pane, palette: Palette, console: Console) -> Event:
    """Draw each event in place of the one before; returns the last, which leaves nothing in the terminal."""
    last = None
    with drawn(console) as draw:
        for last in events:
            pane.follow(last)
            draw(lambda: frame(pane, palette, console))
    assert last is not None
    return last


def leave(cells: Iterable[Cell], pane: Pane, palette: Palette, console: Console) -> None:
    """Print the finished text with its figures and the legend, to stay in the terminal."""
    console.print(joined(cells), soft_wrap=True)
    console.print(Group(Text(), Text(pane.line), palette.legend()))


@contextmanager
def drawn(console: Console) -> Iterator[Callable[[Callable[[], Group]], None]]:
    """A place in the terminal where frames are drawn over one another; without a terminal they are not even made."""
    with Live(console=console, auto_refresh=False, transient=True, vertical_overflow="crop") as live:

        def draw(make: Callable[[], Group]) -> None:
            if console.is_terminal:
                live.update(make(), refresh=True)

        yield draw


def frame(pane: Pane, palette: Palette, console: Console) -> Group:
    """The part of the canvas in view with its line of figures, never taller than the terminal."""
    width = inner_width(console)
    view, below = pane.view(width, max(console.height - _FRAME - 1, 1))
    return Group(*view, *below, shortened(palette.legend(), width))


def inner_width(console: Console) -> int:
    """The columns to draw in: one less than there are, as terminals differ by a column in some characters."""
    return max(console.width - 1, 1)


def shortened(text: Text, width: int) -> Text:
    """One line of at most ``width`` columns."""
    text.truncate(width, overflow="ellipsis")
    return text


def drawing_of(lm: LM, strategy: Strategy, palette: Palette, around: Sequence[str]) -> Drawing:
    """Draws what a model writes, coloured by the confidence that the strategy reads."""
    from soar_dlm.search.metrics import get_metric

    return Drawing(palette, pieces_of(lm), lm.end_token_ids, as_share(get_metric(strategy.metric)), around)


def pieces_of(lm: LM, special: bool = True) -> Pieces:
    """The model's tokens as text, with or without special tokens."""
    return Pieces(lambda ids: str(lm.tokenizer.decode(ids, skip_special_tokens=not special)))


def texts_of(result: Result) -> list[str]:
    """The text of each blank; a continuation is one."""
    texts: list[str] = getattr(result, "blanks", [result.text])
    return texts


def shown_on(console: Console) -> bool:
    """Whether standard output is the terminal that :func:`show` has already shown the text on."""
    return console.is_terminal and sys.stdout is not None and sys.stdout.isatty()


def as_share(metric: Metric) -> Callable[[float], float]:
    """Confidences of a metric on a scale from 0 to 1; negative entropy e becomes exp(e)."""
    if math.isinf(metric.low):
        return lambda confidence: math.exp(min(confidence - metric.high, 0.0))
    return lambda confidence: (confidence - metric.low) / (metric.high - metric.low)
