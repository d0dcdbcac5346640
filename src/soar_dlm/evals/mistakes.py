"""Where a decoding first departs from the one right answer, according to its trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from soar_dlm.engine.trace import BeamEntry, Trace
from soar_dlm.search.candidate import Mode


@dataclass(frozen=True)
class Mistake:
    """The first step towards an answer that committed a wrong token.

    ``before`` counts the positions committed before that step, ``together`` those committed in it. ``confidence`` is
    that of the most confident wrong token. ``beside`` says whether the beam after the step still held a candidate
    without a mistake: if so, the search saw a right way and ranked it lower.
    """

    step: int
    before: int
    together: int
    mode: Mode
    confidence: float
    beside: bool


def first_mistake(trace: Trace, right: Mapping[int, int]) -> Mistake | None:
    """The first mistake of the answer, given the ``right`` token of each canvas position; None if it has none."""
    before = 0
    flawless = [True]  # for each candidate of the beam: no mistake so far
    for record, chosen in zip(trace, trace.path(), strict=True):
        flawless = [flawless[entry.origin] and not _wrong(entry, right) for entry in record.beam]
        wrong = _wrong(chosen, right)
        if wrong:
            return Mistake(record.step, before, len(chosen.positions), chosen.mode, max(wrong), any(flawless))
        before += len(chosen.positions)
    return None


def _wrong(entry: BeamEntry, right: Mapping[int, int]) -> list[float]:
    """The confidence of each wrong token that a step committed."""
    commits = zip(entry.positions, entry.tokens, entry.confidence, strict=True)
    return [confidence for position, token, confidence in commits if right[position] != token]
