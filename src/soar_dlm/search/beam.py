"""One step of the search for one request: propose, pool, merge, sort, cut."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from soar_dlm.errors import StrategyError
from soar_dlm.search.candidate import Candidate, Pool, Proposal, Reading
from soar_dlm.search.lengths import Lengths
from soar_dlm.search.strategy import Strategy


def advance(
    beam: Sequence[Candidate],
    readings: Sequence[Reading | None],
    strategy: Strategy,
    settle: Callable[[Candidate], Candidate],
    lengths: Lengths | None = None,
) -> list[Candidate]:
    """The next beam, best first.

    A candidate whose reading is None has no mask and stays in the pool. ``settle`` sees every new candidate before it
    is compared, and may complete it. ``lengths`` gives expand and delete their meaning; without it every token is an
    ordinary one.
    """
    made: list[Candidate] = []
    for origin, (candidate, reading) in enumerate(zip(beam, readings, strict=True)):
        if reading is None:
            made.append(candidate.kept(origin))
        else:
            for proposal in checked_proposals(strategy.propose(reading.confidence), reading.positions.size):
                made.append(settle(_committed(candidate, reading, proposal, origin, lengths)))

    def rank(candidate: Candidate) -> float:
        return checked_rank(strategy.rank(candidate))

    ranked = sorted(merge(made, rank), key=rank, reverse=True)
    any_parallel = any(candidate.last.mode == "parallel" for candidate in made)
    return ranked[: checked_width(strategy.width(Pool(ranked, beam[0], any_parallel)), strategy.beam)]


def _committed(
    candidate: Candidate, reading: Reading, proposal: Proposal, origin: int, lengths: Lengths | None
) -> Candidate:
    if lengths is None:
        return candidate.commit(reading, proposal, origin)
    affordable = replace(proposal, picks=lengths.affordable(candidate, reading, proposal.picks))
    return lengths.applied(candidate.commit(reading, affordable, origin))


def merge(pool: Iterable[Candidate], rank: Callable[[Candidate], float]) -> list[Candidate]:
    """One candidate per distinct canvas: the better ranked, the earlier-generated on ties, in order of generation."""
    best: dict[tuple[bytes, ...], Candidate] = {}
    for candidate in pool:
        rival = best.get(candidate.key)
        if rival is None or rank(candidate) > rank(rival):
            best[candidate.key] = candidate
    return list(best.values())


def checked_proposals(proposals: Any, size: int) -> list[Proposal]:
    """Proposals that can be committed to a reading of ``size`` positions, or an error that says what is wrong."""
    if not isinstance(proposals, Sequence) or not proposals:
        raise StrategyError(f"propose must return a list of at least one Proposal, not {proposals!r}.")
    for proposal in proposals:
        if not isinstance(proposal, Proposal) or proposal.mode not in ("search", "parallel"):
            raise StrategyError(f"propose must return Proposals of mode 'search' or 'parallel', not {proposal!r}.")
        picks = proposal.picks
        if not isinstance(picks, np.ndarray) or picks.ndim != 1 or picks.dtype.kind not in "iu" or not picks.size:
            raise StrategyError(f"The picks of a Proposal must be a non-empty array of indices, not {picks!r}.")
        if picks.min() < 0 or picks.max() >= size:
            raise StrategyError(f"A Proposal picks {picks.tolist()}, but there are {size} positions: 0 to {size - 1}.")
        if np.unique(picks).size < picks.size:
            raise StrategyError(f"A Proposal picks a position twice: {picks.tolist()}.")
    return list(proposals)


def checked_rank(value: Any) -> float:
    if not isinstance(value, Real) or math.isnan(value):
        raise StrategyError(f"rank must return a number, not {value!r}.")
    return float(value)


def checked_width(value: Any, beam: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= beam:
        raise StrategyError(f"width must return a whole number from 1 to the beam, {beam}, not {value!r}.")
    return int(value)
