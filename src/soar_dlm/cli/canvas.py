"""A canvas as it is drawn in the terminal: tokens coloured by confidence, masks and ends as signs, lines folded."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, takewhile
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

if TYPE_CHECKING:
    from soar_dlm.results import Event

MASK, END, UNKNOWN = "░", "∎", "\N{REPLACEMENT CHARACTER}"
TAB, PLAIN = "    ", Style.null()

_INK = (17, 17, 17)
_PAPERS = ((255, 173, 165), (255, 236, 153), (170, 230, 175))
"""Dark ink on light paper, red to yellow to green: as legible on a dark terminal as on a light one."""


@dataclass(frozen=True)
class Cell:
    """Some text of one style; ``fresh`` if it was written in the latest step."""

    text: str
    style: Style = PLAIN
    fresh: bool = False


class Palette:
    """How the terminal shows a confidence between 0 and 1.

    Where there are colours, as dark text on a background from red to green. Without them (``NO_COLOR``), unsure is
    reversed, middling underlined and sure plain.
    """

    def __init__(self, console: Console) -> None:
        self._system = None if console.no_color else console.color_system

    def style(self, share: float) -> Style:
        share = min(max(share, 0.0), 1.0)
        third = min(int(share * 3), 2)
        if self._system is None:
            return (Style(reverse=True), Style(underline=True), PLAIN)[third]
        if self._system == "standard":  # 16 colours
            return Style(color="black", bgcolor=("bright_red", "bright_yellow", "bright_green")[third])
        return Style.parse(f"{_rgb(_INK)} on {_rgb(paper(share))}")

    def legend(self) -> Text:
        text = Text(f"{MASK} masked  {END} end of text  ")
        for share, name in ((0.0, "unsure"), (0.5, "in between"), (1.0, "sure")):
            text.append(f" {name} ", style=self.style(share))
        return text


def paper(share: float) -> tuple[int, int, int]:
    """The background of a confidence: red for 0, yellow for one half, green for 1."""
    low = 0 if share < 0.5 else 1
    part = share * 2 - low
    red, green, blue = (round(one + (other - one) * part) for one, other in zip(*_PAPERS[low : low + 2], strict=True))
    return red, green, blue


def _rgb(colour: tuple[int, int, int]) -> str:
    return "rgb({},{},{})".format(*colour)


class Pieces:
    """Token ids to the text that each adds, so that the pieces read as the text does.

    A token that ends in the middle of a character adds nothing; the one that completes the character adds it.
    """

    def __init__(self, decode: Callable[[list[int]], str]) -> None:
        self._decode = lru_cache(maxsize=1 << 16)(lambda ids: decode(list(ids)))

    def of(self, ids: Sequence[int]) -> list[str]:
        pieces: list[str] = []
        start = read = 0
        for end in range(1, len(ids) + 1):
            known, whole = self._decode(tuple(ids[start:read])), self._decode(tuple(ids[start:end]))
            complete = not whole.endswith(UNKNOWN) or end - read > 3  # a character has at most 4 bytes
            pieces.append(whole[len(known) :] if complete else "")
            if complete:
                start, read = read, end
        if read < len(ids):
            pieces[-1] = UNKNOWN
        return pieces


class Drawing:
    """Draws the events of one request.

    ``around`` is the text before, between and after the blanks; ``share`` maps a confidence to 0 (unsure) to 1 (sure).
    """

    def __init__(
        self,
        palette: Palette,
        pieces: Pieces,
        end_ids: Iterable[int],
        share: Callable[[float], float],
        around: Sequence[str] = ("", ""),
    ) -> None:
        self._palette, self._pieces, self._ends, self._share = palette, pieces, frozenset(end_ids), share
        self._around = [Cell(clean(piece)) for piece in around]
        self._before: dict[int, int] = {}

    def cells(self, event: Event) -> list[Cell]:
        """The canvas from left to right; what differs from the event before is fresh."""
        now = {
            place: token
            for place, token, masked in zip(event.positions, event.token_ids, event.masked, strict=True)
            if not masked
        }
        fresh = {place for place, token in now.items() if self._before.get(place) != token}
        self._before = now
        cells = [self._around[0]]
        for blank, after in enumerate(self._around[1:]):
            places = [index for index, number in enumerate(event.blanks) if number == blank]
            for kind, run in groupby(places, key=lambda index: self._kind(event, index)):
                cells += self._run(event, kind, list(run), fresh)
            cells.append(after)
        return cells

    def final(self, event: Event, texts: Sequence[str], pieces: Pieces) -> list[Cell]:
        """The finished text in place of the canvas: nothing after its end, and no special tokens.

        ``texts`` has the text of each blank, and ``pieces`` must read tokens as it does.
        """
        cells = [self._around[0]]
        for blank, (text, after) in enumerate(zip(texts, self._around[1:], strict=True)):
            places = [index for index, number in enumerate(event.blanks) if number == blank]
            run = list(takewhile(lambda index: self._kind(event, index) == "text", places))
            left = len(text)
            for index, piece in zip(run, pieces.of([event.token_ids[index] for index in run]), strict=True):
                cells.append(Cell(clean(piece[:left]), self._style(event.confidence[index])))
                left -= len(piece[:left])
            cells += [Cell(END)] if len(run) < len(places) and not after.text else []
            cells.append(after)
        return cells

    def _kind(self, event: Event, index: int) -> str:
        if event.masked[index]:
            return "mask"
        return "end" if event.token_ids[index] in self._ends else "text"

    def _run(self, event: Event, kind: str, run: list[int], fresh: set[int]) -> Iterator[Cell]:
        if kind == "mask":
            yield Cell(MASK * len(run))
        elif kind == "end":
            known = [share for index in run if (share := event.confidence[index]) is not None]
            style = self._style(sum(known) / len(known) if known else None)
            sign = END if len(run) == 1 else f"{END}\N{MULTIPLICATION SIGN}{len(run)}"
            yield Cell(sign, style, any(event.positions[index] in fresh for index in run))
        else:
            pieces = self._pieces.of([event.token_ids[index] for index in run])
            for index, piece in zip(run, pieces, strict=True):
                yield Cell(clean(piece), self._style(event.confidence[index]), event.positions[index] in fresh)

    def _style(self, confidence: float | None) -> Style:
        return PLAIN if confidence is None else self._palette.style(self._share(confidence))


def clean(text: str) -> str:
    """Text that cannot move the cursor or disturb the line: only newlines stay; tabs become spaces."""
    return "".join(_clean(character) for character in text)


@lru_cache(maxsize=1 << 14)
def _clean(character: str) -> str:
    kind = unicodedata.category(character)
    if kind == "Cf" or "\ufe00" <= character <= "\ufe0f":  # joiners, directions, variants: terminals differ in them
        return ""
    if character == "\n" or character.isprintable():
        return character
    if character == "\t":
        return TAB
    if character < " ":
        return chr(0x2400 + ord(character))
    return " " if kind == "Zs" else UNKNOWN


def joined(cells: Iterable[Cell]) -> Text:
    """All cells as one text; the terminal folds it."""
    text = Text()
    for cell in cells:
        text.append(cell.text, cell.style)
    return text


def folded(cells: Iterable[Cell], width: int) -> tuple[list[Text], list[int]]:
    """The cells as lines of at most ``width`` columns, and the numbers of the lines with something fresh on them."""
    lines, used = [Text()], 0
    fresh: list[int] = []
    for cell in cells:
        for character in cell.text:
            taken = 0 if character == "\n" else cell_len(character)
            if character == "\n" or used + taken > width:
                lines.append(Text())
                used = 0
            if character != "\n":
                lines[-1].append(character, cell.style)
                used += taken
            if cell.fresh and (not fresh or fresh[-1] != len(lines) - 1):
                fresh.append(len(lines) - 1)
    return lines, fresh


class Window:
    """Which lines of a tall canvas are in view: it moves no further than needed to show the latest change."""

    def __init__(self) -> None:
        self._top = 0

    def top(self, count: int, fresh: Sequence[int], height: int) -> int:
        """The first line in view, of ``count`` lines with changes in ``fresh``, where ``height`` lines have room."""
        if fresh and not any(self._top <= line < self._top + height for line in fresh):
            nearest = min(fresh, key=lambda line: abs(line - (self._top + height // 2)))
            self._top = nearest if nearest < self._top else nearest - height + 1
        self._top = max(min(self._top, count - height), 0)
        return self._top
