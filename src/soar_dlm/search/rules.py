"""Where the authors' released code departs from their Algorithm 1.

``PAPER`` is Algorithm 1 and the default everywhere; ``RELEASED`` are presets for reproducing published numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from soar_dlm.search.candidate import Candidate, Pool


@dataclass(frozen=True)
class Rules:
    """How candidates are ranked, how much a parallel step commits, when the beam collapses and when decoding ends.

    ``collapses(pool)``: True cuts the beam to one. ``ends_with_best``: decoding ends once the *best* candidate has no
    mask, not every candidate. ``bans_mask``: the mask token is never predicted.
    """

    rank: Callable[[Candidate], float]
    parallel_limit: int | None
    collapses: Callable[[Pool], bool]
    ends_with_best: bool
    bans_mask: bool


def mean_per_step(candidate: Candidate) -> float:
    return candidate.score / max(candidate.steps, 1)


def sum_per_token(candidate: Candidate) -> float:
    return candidate.confidence_sum


def mean_per_token(candidate: Candidate) -> float:
    return candidate.confidence_sum / max(candidate.committed, 1)


def best_new_is_parallel(pool: Pool) -> bool:
    """Eq. 13: the best of the new candidates came from parallel mode."""
    best = next((candidate for candidate in pool.ranked if candidate.last.mode != "kept"), None)
    return best is not None and best.last.mode == "parallel"


def any_parallel_and_best_gained(masks: int) -> Callable[[Pool], bool]:
    """Any candidate of the step came from parallel mode, and the best has this many masks fewer than the last best.

    The best may be a kept one.
    """

    def collapses(pool: Pool) -> bool:
        return pool.any_parallel and pool.previous.left - pool.ranked[0].left >= masks

    return collapses


PAPER = Rules(mean_per_step, None, best_new_is_parallel, ends_with_best=False, bans_mask=True)

RELEASED = {
    "llada": Rules(sum_per_token, 5, any_parallel_and_best_gained(1), ends_with_best=False, bans_mask=False),
    "dream": Rules(mean_per_token, 5, any_parallel_and_best_gained(2), ends_with_best=True, bans_mask=False),
}
