"""The points on which the authors' released code departs from their Algorithm 1.

``PAPER`` is Algorithm 1 and the default everywhere; ``RELEASED`` are presets for reproducing published numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from soar_dlm.search.candidate import Candidate


@dataclass(frozen=True)
class Rules:
    """How candidates are ranked, how much a parallel step commits, when the beam collapses and when it ends.

    ``collapses(new, previous)`` gets the best new candidates, at most K and best first (none if all of them were merged
    into complete ones), and the best candidate of the step before; True cuts the beam to one.
    ``ends_with_best``: a block is finished once the *best* candidate has filled it, not every candidate.
    ``bans_mask``: the mask token is never predicted.
    """

    rank: Callable[[Candidate], float]
    parallel_limit: int | None
    collapses: Callable[[Sequence[Candidate], Candidate], bool]
    ends_with_best: bool
    bans_mask: bool


def mean_per_step(candidate: Candidate) -> float:
    return candidate.score / max(candidate.steps, 1)


def sum_per_token(candidate: Candidate) -> float:
    return candidate.confidence_sum


def mean_per_token(candidate: Candidate) -> float:
    return candidate.confidence_sum / max(candidate.committed, 1)


def best_is_parallel(new: Sequence[Candidate], previous: Candidate) -> bool:
    return bool(new) and new[0].last.mode == "parallel"


def any_is_parallel(new: Sequence[Candidate], previous: Candidate) -> bool:
    return any(candidate.last.mode == "parallel" for candidate in new)


def any_is_parallel_and_best_gained_two(new: Sequence[Candidate], previous: Candidate) -> bool:
    return any_is_parallel(new, previous) and int(previous.open.sum() - new[0].open.sum()) >= 2


PAPER = Rules(mean_per_step, None, best_is_parallel, ends_with_best=False, bans_mask=True)

RELEASED = {
    "llada": Rules(sum_per_token, 5, any_is_parallel, ends_with_best=False, bans_mask=False),
    "dream": Rules(mean_per_token, 5, any_is_parallel_and_best_gained_two, ends_with_best=True, bans_mask=False),
}
