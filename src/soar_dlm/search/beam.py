"""Beam search over the order of filling: the one search behind all of the paper's methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from soar_dlm.search.candidate import Candidate, Pool, Proposal
from soar_dlm.search.contract import checked_proposals, checked_rank, checked_width
from soar_dlm.search.question import Reading, Search
from soar_dlm.search.start import Start

if TYPE_CHECKING:
    from soar_dlm.search.strategy import Strategy


def beam_search(strategy: Strategy, start: Start) -> Search:
    """Read every candidate of the beam, advance, and so on until the strategy's rules say that it is done."""
    beam = [start.candidate]
    while not finished(beam, strategy.rules.ends_with_best):
        readings = yield from start.read(beam, strategy.wanted)
        beam = advance(beam, readings, strategy, start)
        start.report(beam, [strategy.rank(candidate) for candidate in beam])
    return beam[0]


def finished(beam: Sequence[Candidate], ends_with_best: bool) -> bool:
    deciding = beam[:1] if ends_with_best else beam
    return not any(candidate.open.any() for candidate in deciding)


def advance(
    beam: Sequence[Candidate], readings: Sequence[Reading | None], strategy: Strategy, start: Start
) -> list[Candidate]:
    """The next beam, best first: propose, commit, merge, sort, cut.

    A candidate whose reading is None has no mask and stays in the pool.
    """
    made: list[Candidate] = []
    for origin, (candidate, reading) in enumerate(zip(beam, readings, strict=True)):
        if reading is None:
            made.append(candidate.kept(origin))
        else:
            for proposal in proposals(strategy, reading):
                made.append(start.commit(candidate, reading, proposal, origin))

    def rank(candidate: Candidate) -> float:
        return checked_rank(strategy.rank(candidate))

    ranked = sorted(merge(made, rank), key=rank, reverse=True)
    any_parallel = any(candidate.last.mode == "parallel" for candidate in made)
    return ranked[: checked_width(strategy.width(Pool(ranked, beam[0], any_parallel)), strategy.beam)]


def proposals(strategy: Strategy, reading: Reading) -> list[Proposal]:
    """What the strategy proposes, checked.

    With ``defer_end``, an end token is committed alone, by a model that is unsure, only if every position read is one:
    where a proposal would do so otherwise, the strategy proposes again for the positions that do not end the text.
    """
    found = checked_proposals(strategy.propose(reading), len(reading))
    if not strategy.defer_end or reading.ends.all():
        return found
    if not any(one.mode == "search" and one.picks.size == 1 and reading.ends[one.picks[0]] for one in found):
        return found
    others = np.flatnonzero(~reading.ends)
    again = checked_proposals(strategy.propose(reading.at(others)), others.size)
    return [Proposal(others[one.picks], one.mode) for one in again]


def merge(pool: Iterable[Candidate], rank: Callable[[Candidate], float]) -> list[Candidate]:
    """One candidate per distinct canvas: the better ranked, the earlier-generated on ties, in order of generation."""
    best: dict[tuple[bytes, ...], Candidate] = {}
    for candidate in pool:
        rival = best.get(candidate.key)
        if rival is None or rank(candidate) > rank(rival):
            best[candidate.key] = candidate
    return list(best.values())
