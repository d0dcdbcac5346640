"""``--watch --compare``: several strategies decode the same text, side by side."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.style import Style
from rich.table import Table
from rich.text import Text

from soar_dlm.cli.canvas import Palette, joined
from soar_dlm.cli.lists import listed
from soar_dlm.cli.method import Method, several
from soar_dlm.cli.watch import Pane, drawing_of, drawn, inner_width, pieces_of, shortened, texts_of
from soar_dlm.errors import SettingsError

if TYPE_CHECKING:
    from soar_dlm.lm import LM
    from soar_dlm.results import Event, Result
    from soar_dlm.search.strategy import Strategy

WIDE = 80
"""Columns that a terminal needs for strategies to be side by side."""

NARROWEST = 36
"""Columns that each of them needs then."""

_GAP, _TITLE = " │ ", Style(bold=True)


@dataclass
class Side:
    """A strategy at work: its events as far as they have come, what they look like, and the time they took."""

    name: str
    events: Iterator[Event]
    pane: Pane
    last: Event | None = None
    seconds: float = 0.0

    @property
    def done(self) -> bool:
        return self.last is not None and self.last.result is not None

    @property
    def result(self) -> Result:
        assert self.last is not None
        assert self.last.result is not None
        return self.last.result

    def step(self) -> None:
        started = time.perf_counter()
        self.last = next(self.events)
        self.seconds += time.perf_counter() - started
        self.pane.follow(self.last)


def check_compare(names: str | None, watch: bool, **others: bool) -> None:
    """Refuse what does not go with ``--compare``: ``others`` says which options were given."""
    if names is None:
        return
    if not watch:
        raise SettingsError("--compare shows strategies side by side while they decode; add --watch.")
    for option, given in others.items():
        if given:
            raise SettingsError(f"--compare decodes one text in several ways; leave out --{option}.")


def compared(names: str, given: Mapping[str, Any]) -> dict[str, Method]:
    """The strategies of these names; a setting applies to those that have it, and at least one must."""
    chosen = listed(names)
    if len(chosen) < 2 or len(set(chosen)) < len(chosen):
        raise SettingsError(
            f"--compare takes two or more different strategies separated by commas, such as greedy,soar, not {names!r}."
        )
    if "strategy" in given or "preset" in given:
        raise SettingsError("--compare names the strategies itself; leave out --strategy and --preset.")
    return several(chosen, given)


def show_compared(
    lm: LM,
    streams: Mapping[str, tuple[Strategy, Iterator[Event]]],
    console: Console,
    around: Sequence[str] = ("", ""),
) -> dict[str, Result]:
    """Show the strategies at work, then the text of each, and a table of what they took; returns their results.

    1. Each has an engine of its own and is shown after every step. One that is done stays as it is.
    2. Without a terminal only the table is shown.
    """
    palette = Palette(console)
    sides = [
        Side(name, events, Pane(drawing_of(lm, strategy, palette, around)))
        for name, (strategy, events) in streams.items()
    ]
    with drawn(console) as draw:
        while not all(side.done for side in sides):
            for side in sides:
                if not side.done:
                    side.step()
            draw(lambda: frame(sides, palette, console))
    if console.is_terminal:
        for side in sides:
            assert side.last is not None
            cells = side.pane.drawing.final(side.last, texts_of(side.result), pieces_of(lm, special=False))
            console.print(Text(side.name, _TITLE))
            console.print(joined(cells), soft_wrap=True)
            console.print()
        console.print(palette.legend())
    console.print(figures(sides))
    return {side.name: side.result for side in sides}


def figures(sides: Sequence[Side]) -> Table:
    """What each strategy took."""
    table = Table(box=SIMPLE_HEAD)
    table.add_column("strategy")
    for name in ("steps", "forwards", "tokens per forward", "mean confidence", "seconds"):
        table.add_column(name, justify="right")
    for side in sides:
        result = side.result
        numbers = (result.steps, result.forwards, f"{result.tokens_per_forward:.2f}", f"{result.mean_confidence:.4f}")
        table.add_row(side.name, *map(str, numbers), f"{side.seconds:.2f}")
    return table


def frame(sides: Sequence[Side], palette: Palette, console: Console) -> Group:
    """All canvases: in columns where they are wide enough, else one below the other."""
    width, height = inner_width(console), max(console.height - 2, 1)
    column = (width - len(_GAP) * (len(sides) - 1)) // len(sides)
    if console.width >= WIDE and column >= NARROWEST:
        lines = _columns(sides, column, height)
    else:
        lines = [line for side in sides for line in _stacked(side, width, height // len(sides))]
    return Group(*lines, shortened(palette.legend(), width))


def _columns(sides: Sequence[Side], width: int, height: int) -> list[Text]:
    """Titles on the first line and figures on the last, so that they can be compared."""
    views = [side.pane.view(width, max(height - 3, 1)) for side in sides]
    tall = max(len(view) for view, _ in views)
    columns = [
        [_title(side, width), *view, *[Text()] * (tall - len(view)), *below]
        for side, (view, below) in zip(sides, views, strict=True)
    ]
    return [_row(parts, width) for parts in zip(*columns, strict=True)]


def _row(parts: Sequence[Text], width: int) -> Text:
    row = Text()
    for place, part in enumerate(parts):
        filled = part.copy()
        filled.pad_right(max(width - part.cell_len, 0))
        row.append(_GAP if place else "").append_text(filled)
    return row


def _stacked(side: Side, width: int, height: int) -> list[Text]:
    view, below = side.pane.view(width, max(height - 3, 1))
    return [_title(side, width), *view, *below]


def _title(side: Side, width: int) -> Text:
    return shortened(Text(f"{side.name}, done" if side.done else side.name, _TITLE), width)
