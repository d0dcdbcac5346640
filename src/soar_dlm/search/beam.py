"""One step of the search for one request: propose, pool, merge, sort, cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from soar_dlm.search.candidate import Candidate, Proposal, Reading
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

    A candidate whose reading is None had nothing to fill and stays in the pool. ``settle`` sees every new candidate
    before it is compared, and may complete it. ``lengths`` makes expand and delete what they are; without it every
    token is an ordinary one.
    """
    pool: list[Candidate] = []
    for origin, (candidate, reading) in enumerate(zip(beam, readings, strict=True)):
        if reading is None:
            pool.append(candidate.kept(origin))
        else:
            for proposal in strategy.propose(reading.confidence):
                pool.append(settle(_committed(candidate, reading, proposal, origin, lengths)))
    ranked = sorted(merge(pool, strategy.rank), key=strategy.rank, reverse=True)
    new = [candidate for candidate in ranked if candidate.last.mode != "kept"]
    return ranked[: strategy.width(new, beam[0])]


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
