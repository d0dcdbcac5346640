"""Where a decoding first departs from the one right answer, according to its trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from soar_dlm.engine.trace import BeamEntry, Trace
from soar_dlm.search.candidate import Mode
from soar_dlm.search.question import Place

Wrong = Mapping[int, Place]
"""The wrong tokens on a canvas: their position, and where the trace has the step that committed them."""


@dataclass(frozen=True)
class Mistake:
    """The first step towards an answer that committed a wrong token and was not taken back.

    ``before`` counts the positions that were filled before that step, ``together`` those committed in it.
    ``confidence`` is that of the most confident wrong token. ``beside`` says whether the step left a candidate without
    a mistake, or the search completed one at any time: if so, it saw a right way and ranked it lower.
    """

    step: int
    before: int
    together: int
    mode: Mode
    confidence: float
    beside: bool


def first_mistake(trace: Trace, right: Mapping[int, int]) -> Mistake | None:
    """The first mistake of the answer, given the ``right`` token of each canvas position; None if it has none.

    The canvas must keep its length.
    """
    canvases = _canvases(trace, right)
    path = trace.places()
    wrong = canvases[path[-1]] if path else {}
    if not wrong:
        return None
    place = min(wrong.values())
    entry = trace.at(place)
    sure = dict(zip(entry.positions, entry.confidence, strict=True))
    left = {Place(place.step, number) for number in trace.steps[place.step - 1].frontier()}
    return Mistake(
        step=place.step,
        before=sum(_gained(trace.at(earlier)) for earlier in path[: path.index(place)]),
        together=len(entry.positions),
        mode=entry.mode,
        confidence=max(sure[position] for position, committed in wrong.items() if committed == place),
        beside=any(not found and (at in left or not trace.at(at).left) for at, found in canvases.items()),
    )


def _canvases(trace: Trace, right: Mapping[int, int]) -> dict[Place, Wrong]:
    """What is wrong on each canvas of the trace."""
    found: dict[Place, Wrong] = {}
    for record in trace:
        for number, entry in enumerate(record.beam):
            place = Place(record.step, number)
            before = found[entry.parent] if entry.after else {}
            kept = {position: committed for position, committed in before.items() if position not in entry.positions}
            commits = zip(entry.positions, entry.tokens, strict=True) if entry.mode != "reopened" else ()
            found[place] = kept | {position: place for position, token in commits if right[position] != token}
    return found


def _gained(entry: BeamEntry) -> int:
    return -len(entry.positions) if entry.mode == "reopened" else len(entry.positions)
