"""Statistics of right and wrong answers: exact where counts are small, plain functions of numbers throughout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, sqrt

import numpy as np
import numpy.typing as npt

from soar_dlm.errors import SettingsError

Floats = npt.NDArray[np.float64]


def wilson_interval(successes: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's score interval of a success rate; ``z`` = 1.96 for 95%. Without trials it is (0, 1)."""
    if not 0 <= successes <= trials:
        raise SettingsError(f"successes must lie between 0 and the number of trials ({trials}), not {successes}.")
    if trials == 0:
        return 0.0, 1.0
    rate, weight = successes / trials, z * z / trials
    centre = (rate + weight / 2) / (1 + weight)
    half = z * sqrt(rate * (1 - rate) / trials + weight / (4 * trials)) / (1 + weight)
    return max(0.0, min(rate, centre - half)), min(1.0, max(rate, centre + half))  # rounding kept out


@dataclass(frozen=True)
class McNemar:
    """Two methods on the same problems: how often only one of them was right, and the p-value of that split."""

    first_only: int
    second_only: int
    p_value: float


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> McNemar:
    """McNemar's exact test: the two-sided binomial p-value of the discordant pairs, 1 if there are none."""
    _need_pairs(first, second)
    first_only = sum(a and not b for a, b in zip(first, second, strict=True))
    second_only = sum(b and not a for a, b in zip(first, second, strict=True))
    discordant = first_only + second_only
    tail = sum(comb(discordant, count) for count in range(min(first_only, second_only) + 1))
    return McNemar(first_only, second_only, min(1.0, 2 * tail / 2**discordant))


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's correlation, equal values sharing their mean rank; None if one side has a single value only."""
    _need_pairs(first, second)
    if len(set(first)) < 2 or len(set(second)) < 2:
        return None
    a, b = _centred_ranks(first), _centred_ranks(second)
    return float(a @ b / sqrt(float(a @ a) * float(b @ b)))


@dataclass(frozen=True)
class Bin:
    """Problems of similar confidence: from ``low`` to ``high``, ``correct`` of ``count`` answered rightly."""

    low: float
    high: float
    count: int
    correct: int

    @property
    def accuracy(self) -> float:
        return self.correct / self.count


def accuracy_by_confidence(confidences: Sequence[float], correct: Sequence[bool], bins: int = 5) -> list[Bin]:
    """Problems sorted by confidence and cut into ``bins`` parts whose sizes differ by one at most; empty ones drop.

    Equal confidences keep the order in which they came, so one value may fall into two neighbouring bins.
    """
    _need_pairs(confidences, correct)
    if bins < 1:
        raise SettingsError(f"bins must be a whole number of at least 1, not {bins}.")
    confidence, right = np.asarray(confidences, dtype=np.float64), np.asarray(correct, dtype=bool)
    parts = np.array_split(np.argsort(confidence, kind="stable"), bins)
    return [
        Bin(float(confidence[part[0]]), float(confidence[part[-1]]), len(part), int(right[part].sum()))
        for part in parts
        if len(part)
    ]


def _centred_ranks(values: Sequence[float]) -> Floats:
    """Ranks less their mean; equal values get the mean of the ranks they take up together."""
    _, places, counts = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(counts) - (counts - 1) / 2
    centred: Floats = mean_ranks[places.reshape(-1)] - (len(values) + 1) / 2
    return centred


def _need_pairs(first: Sequence[object], second: Sequence[object]) -> None:
    if len(first) != len(second):
        raise SettingsError(f"Both sides must be of the same problems, but one has {len(first)}, one {len(second)}.")
