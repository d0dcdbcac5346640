"""AUP, accuracy under parallelism: a curve of accuracy over tokens per forward as one number."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import exp

from soar_dlm import checks
from soar_dlm.errors import SettingsError

PENALTY = 3.0
"""alpha: how fast the weight of an accuracy falls with its distance from the best."""
DROP = 5.0
"""Points more than this many percentage points less accurate than the slowest are left out."""


def accuracy_under_parallelism(points: Iterable[tuple[float, float]], best: float) -> float:
    """The AUP of (tokens per forward, accuracy in percent) pairs, one for each setting of a method.

    1. The points are sorted by their tokens per forward, rho_1 <= rho_2 <= ...; those with an accuracy y_i below
       y_1 - 5 are left out.
    2. AUP = rho_1 y_1 + sum over i > 1 of (rho_i - rho_(i-1)) (y_i W(y_i) + y_(i-1) W(y_(i-1))) / 2, an area under the
       curve, with the weight W(y) = min(exp(-3 (1 - y / ``best``)), 1).

    ``best`` is the greatest accuracy of any method on the task, in percent. The definition is that of d3LLM (Qian et
    al., 2026, arXiv:2601.07568), whose leaderboard ranks models by it.
    """
    checks.real_number("best", best, 0.0, 100.0)
    curve = sorted(points)
    if not curve:
        raise SettingsError("AUP needs at least one point.")
    for parallelism, accuracy in curve:
        checks.real_number("tokens per forward", parallelism, 0.0, float("inf"), open_low=True)
        checks.real_number("accuracy", accuracy, 0.0, best)
    least = curve[0][1] - DROP
    kept = [(parallelism, accuracy) for parallelism, accuracy in curve if accuracy >= least]
    area = kept[0][0] * kept[0][1]
    for (before, earlier), (after, later) in pairwise(kept):
        area += (after - before) * (_weighted(later, best) + _weighted(earlier, best)) / 2
    return area


def _weighted(accuracy: float, best: float) -> float:
    return accuracy * min(exp(-PENALTY * (1 - accuracy / best)), 1.0) if best else 0.0
