"""Statistics of right and wrong answers, as plain functions of numbers or arrays; exact where counts are small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, sqrt
from typing import Any, SupportsInt

import numpy as np
import numpy.typing as npt

from soar_dlm.errors import SettingsError

Floats = npt.NDArray[np.float64]
Verdicts = Sequence[bool] | npt.NDArray[np.bool_]
Numbers = Sequence[float] | npt.NDArray[Any]


def wilson_interval(successes: SupportsInt, trials: SupportsInt, z: float = 1.96) -> tuple[float, float]:
    """Wilson's score interval of a success rate; ``z`` = 1.96 for 95%. Without trials it is (0, 1)."""
    right, count = int(successes), int(trials)  # NumPy's integers overflow
    if not 0 <= right <= count:
        raise SettingsError(f"successes must be between 0 and the number of trials ({count}), not {right}.")
    if count == 0:
        return 0.0, 1.0
    rate, weight = right / count, z * z / count
    centre = (rate + weight / 2) / (1 + weight)
    half = z * sqrt(rate * (1 - rate) / count + weight / (4 * count)) / (1 + weight)
    return max(0.0, min(rate, centre - half)), min(1.0, max(rate, centre + half))  # rounding kept out


@dataclass(frozen=True)
class McNemar:
    """Two methods on the same problems: how often only one of them was right, and the p-value of that split."""

    first_only: int
    second_only: int
    p_value: float


def mcnemar(first: Verdicts, second: Verdicts) -> McNemar:
    """McNemar's exact test: the two-sided binomial p-value of the discordant pairs, 1 if there are none."""
    _need_pairs(first, second)
    pairs = [(bool(a), bool(b)) for a, b in zip(first, second, strict=True)]  # NumPy's integers overflow
    first_only, second_only = pairs.count((True, False)), pairs.count((False, True))
    discordant = first_only + second_only
    tail = sum(comb(discordant, count) for count in range(min(first_only, second_only) + 1))
    return McNemar(first_only, second_only, min(1.0, 2 * tail / 2**discordant))


def rank_correlation(first: Numbers, second: Numbers) -> float | None:
    """Spearman's correlation, equal values sharing their mean rank; None if all values of a side are equal."""
    _need_pairs(first, second)
    if len(set(first)) < 2 or len(set(second)) < 2:
        return None
    a, b = _centred_ranks(first), _centred_ranks(second)
    return float(a @ b / sqrt(float(a @ a) * float(b @ b)))


@dataclass(frozen=True)
class Bin:
    """Problems with confidences from ``low`` to ``high``; ``correct`` of ``count`` were solved."""

    low: float
    high: float
    count: int
    correct: int

    @property
    def accuracy(self) -> float:
        return self.correct / self.count


def accuracy_by_confidence(confidences: Numbers, correct: Verdicts, bins: int = 5) -> list[Bin]:
    """Problems sorted by confidence and cut into ``bins`` parts whose sizes differ by at most one; no part is empty.

    Equal confidences keep their order, so one value may be in two neighbouring bins.
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


def _centred_ranks(values: Numbers) -> Floats:
    """Ranks minus their mean; equal values get the mean of the ranks they share."""
    _, places, counts = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(counts) - (counts - 1) / 2
    centred: Floats = mean_ranks[places.reshape(-1)] - (len(values) + 1) / 2
    return centred


def _need_pairs(first: Numbers, second: Numbers) -> None:
    if len(first) != len(second):
        raise SettingsError(
            f"Both sides must have the same problems, but one has {len(first)}, the other {len(second)}."
        )
