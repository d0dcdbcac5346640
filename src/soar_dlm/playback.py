"""A trace played back: the canvas after every step, without the model that filled it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, groupby, takewhile

from soar_dlm.engine.scene import Scene
from soar_dlm.engine.trace import BeamEntry, Trace
from soar_dlm.errors import InputFileError
from soar_dlm.results import MASK_SIGN, Event
from soar_dlm.search.candidate import Mode
from soar_dlm.search.question import Place


@dataclass(frozen=True)
class Cell:
    """A position of a blank: masked, or with a token that was committed in a step, by a mode, with some confidence.

    An early exit fills positions in with neither.
    """

    blank: int
    token: int | None = None
    confidence: float | None = None
    step: int | None = None
    mode: Mode | None = None


Canvas = Mapping[int, Cell]
"""Position -> cell, left to right."""


class Playback:
    """The canvases of a trace, each made from that of its parent once."""

    def __init__(self, trace: Trace) -> None:
        if trace.scene is None:
            raise InputFileError(
                "This trace does not say what its tokens mean: it was made without a tokenizer, or by an older version "
                "of soar-dlm. Decode again to make one that can be shown."
            )
        self.trace, self.scene = trace, trace.scene
        self._canvases: dict[Place, Canvas] = {Place(0, 0): start_of(trace.scene)}

    def canvas(self, place: Place) -> Canvas:
        """The canvas of an entry; that of Place(0, 0) is the one that decoding started from."""
        unmade: list[Place] = []
        at = place
        while at not in self._canvases:
            unmade.append(at)
            at = self.trace.at(at).parent
        for one in reversed(unmade):
            entry = self.trace.at(one)
            self._canvases[one] = after_step(self._canvases[entry.parent], entry, one.step, self.scene.filler)
        return self._canvases[place]

    def answer(self) -> list[Cell]:
        """The text of the answer: in each blank the tokens before the first that ends a text."""
        places = self.trace.places()
        canvas = self.canvas(places[-1]) if places else {}
        cells: list[Cell] = []
        for _, blank in groupby(canvas.values(), key=lambda cell: cell.blank):
            cells += takewhile(lambda cell: cell.token not in self.scene.ends, blank)
        return cells

    def standings(self) -> list[Place]:
        """What the search stood by at the start and after every step; a step that left nothing changes nothing."""
        places = [Place(0, 0)]
        for record in self.trace:
            places.append(Place(record.step, record.best) if record.beam else places[-1])
        return places

    def events(self) -> Iterator[Event]:
        """The steps as :meth:`LM.stream` showed them, without the result of the last."""
        forwards = 0
        for record, standing in zip(self.trace, self.standings()[1:], strict=True):
            forwards += record.forwards
            canvas = self.canvas(standing)
            cells = list(canvas.values())
            filler = self.scene.filler
            yield Event(
                step=record.step,
                forwards=forwards,
                text=text_of(canvas, self.scene),
                token_ids=[filler if cell.token is None else cell.token for cell in cells],
                masked=[cell.token is None for cell in cells],
                confidence=[cell.confidence for cell in cells],
                positions=list(canvas),
                blanks=[cell.blank for cell in cells],
                record=record,
                result=None,
            )


def start_of(scene: Scene) -> Canvas:
    """All blanks masked."""
    return {first + offset: Cell(blank) for blank, (first, size) in enumerate(scene.blanks) for offset in range(size)}


def after_step(before: Canvas, entry: BeamEntry, step: int, filler: int) -> Canvas:
    """The canvas that an entry leaves of its parent's; an entry that leaves no mask has had the rest filled in."""
    canvas = dict(before)
    for at, token, sure in zip(entry.positions, entry.tokens, entry.confidence, strict=True):
        if at in before:
            blank = before[at].blank
            canvas[at] = Cell(blank) if entry.mode == "reopened" else Cell(blank, token, sure, step, entry.mode)
    if any(size != 1 for size in entry.sizes):
        canvas = _moved(canvas, entry)
    if entry.left == 0:
        canvas = {at: cell if cell.token is not None else Cell(cell.blank, filler) for at, cell in canvas.items()}
    return canvas


def _moved(canvas: Canvas, entry: BeamEntry) -> dict[int, Cell]:
    """The canvas with as many masks as the entry says in place of each position whose size it changed."""
    sizes = {at: size for at, size in zip(entry.positions, entry.sizes, strict=True) if size != 1}
    places = sorted(sizes)
    shifts = [0, *accumulate(sizes[at] - 1 for at in places)]
    moved: dict[int, Cell] = {}
    for at, cell in canvas.items():
        first = at + shifts[bisect_left(places, at)]
        if at in sizes:
            moved |= {first + offset: Cell(cell.blank) for offset in range(sizes[at])}
        else:
            moved[first] = cell
    return moved


def text_of(canvas: Canvas, scene: Scene) -> str:
    """The blanks as text, masks as signs; special tokens are left out where the scene knows them as ends."""
    pieces = []
    for masked, run in groupby(canvas.values(), key=lambda cell: cell.token is None):
        for cell in run:
            ended = cell.token in scene.ends
            pieces.append(MASK_SIGN if masked else "" if ended else scene.pieces.get(cell.token or 0, ""))
    return "".join(pieces)
