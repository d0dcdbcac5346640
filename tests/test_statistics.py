from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soar_dlm.errors import SettingsError
from soar_dlm.evals.statistics import accuracy_by_confidence, mcnemar, rank_correlation, wilson_interval

PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=24)


@given(st.integers(1, 400).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))))
def test_wilson_ends_are_the_rates_at_z_standard_errors(counts: tuple[int, int]) -> None:
    successes, trials = counts
    low, high = wilson_interval(successes, trials, 1.96)
    assert 0 <= low <= successes / trials <= high <= 1
    for end in (low, high):
        assert (successes / trials - end) ** 2 == pytest.approx(1.96**2 * end * (1 - end) / trials, abs=1e-9)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"), [(0, 10, 0.0, 0.2775), (8, 10, 0.4902, 0.9433), (500, 1000, 0.4691, 0.5309)]
)
def test_wilson_known_values(successes: int, trials: int, low: float, high: float) -> None:
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=5e-5)


def test_wilson_without_trials_knows_nothing_and_impossible_counts_are_refused() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)
    for successes, trials in ((3, 2), (-1, 2)):
        with pytest.raises(SettingsError, match="successes"):
            wilson_interval(successes, trials)


@given(PAIRS)
def test_mcnemar_adds_up_every_split_no_likelier_than_the_one_seen(pairs: list[tuple[bool, bool]]) -> None:
    found = mcnemar([a for a, _ in pairs], [b for _, b in pairs])
    assert found.first_only == pairs.count((True, False))
    assert found.second_only == pairs.count((False, True))
    size = found.first_only + found.second_only
    chances = [Fraction(comb(size, count), 2**size) for count in range(size + 1)]
    likely = chances[found.first_only]
    assert found.p_value == float(sum(chance for chance in chances if chance <= likely))


def test_mcnemar_by_enumerating_coin_flips() -> None:
    """Two gains against eight losses: of all 1024 outcomes of ten fair coins, those at least as lopsided."""
    lopsided = sum(abs(sum(flips) - 5) >= 3 for flips in itertools.product((0, 1), repeat=10))
    found = mcnemar([True] * 2 + [False] * 8 + [True] * 5, [False] * 2 + [True] * 8 + [True] * 5)
    assert found.p_value == lopsided / 1024


def test_mcnemar_without_discordant_pairs_is_one_and_many_pairs_do_not_overflow() -> None:
    assert mcnemar([True, False], [True, False]).p_value == 1.0
    assert mcnemar([], []).p_value == 1.0
    assert mcnemar([True] * 1500, [False] * 1500).p_value == 0.0
    assert mcnemar([True, False] * 1000, [False, True] * 1000).p_value == 1.0


def test_numpy_values_give_what_python_values_give() -> None:
    """Sums of NumPy booleans overflowed: more than 62 discordant pairs had p = 1."""
    first, second = np.array([True] * 80 + [False] * 20), np.array([False] * 80 + [True] * 20)
    assert mcnemar(first, second) == mcnemar(first.tolist(), second.tolist())
    assert mcnemar(first, second).p_value == pytest.approx(1.1e-9, rel=0.1)
    assert isinstance(mcnemar(first, second).first_only, int)
    assert wilson_interval(np.int8(60), np.int8(100)) == wilson_interval(60, 100)
    confidence = np.linspace(0, 1, 100, dtype=np.float32)
    assert rank_correlation(confidence, first) == rank_correlation(confidence.tolist(), first.tolist())
    assert accuracy_by_confidence(confidence, first) == accuracy_by_confidence(confidence.tolist(), first.tolist())


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=15))
def test_rank_correlation_equals_pearson_of_counted_ranks(pairs: list[tuple[int, bool]]) -> None:
    first, second = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    found = rank_correlation(first, second)
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert found is None
        return
    ranks = [[sum(y < x for y in side) + (side.count(x) + 1) / 2 for x in side] for side in (first, second)]
    assert found == pytest.approx(np.asarray(np.corrcoef(ranks))[0, 1], abs=1e-12)


def test_rank_correlation_sees_order_not_distance() -> None:
    assert rank_correlation([0.1, 0.2, 0.9], [1, 2, 300]) == pytest.approx(1.0)
    assert rank_correlation([0.1, 0.2, 0.9], [3, 2, 1]) == pytest.approx(-1.0)


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.5, 0.9]), st.booleans()), max_size=23), st.integers(1, 6))
def test_bins_are_equally_filled_and_keep_every_problem(pairs: list[tuple[float, bool]], bins: int) -> None:
    found = accuracy_by_confidence([c for c, _ in pairs], [right for _, right in pairs], bins)
    sizes = [part.count for part in found]
    assert len(found) == min(bins, len(pairs))
    assert sum(sizes) == len(pairs)
    assert max(sizes, default=0) - min(sizes, default=0) <= 1
    assert sum(part.correct for part in found) == sum(right for _, right in pairs)
    edges = [edge for part in found for edge in (part.low, part.high)]
    assert edges == sorted(edges)


def test_bins_by_hand() -> None:
    found = accuracy_by_confidence([0.9, 0.1, 0.4, 0.8, 0.3], [True, False, True, True, False], bins=2)
    assert [(part.low, part.high, part.count, part.accuracy) for part in found] == [
        (0.1, 0.4, 3, 1 / 3),
        (0.8, 0.9, 2, 1.0),
    ]


def test_sides_of_different_lengths_and_no_bins_are_refused() -> None:
    for refused in (
        lambda: mcnemar([True], []),
        lambda: rank_correlation([1.0], []),
        lambda: accuracy_by_confidence([0.5], [True], 0),
    ):
        with pytest.raises(SettingsError):
            refused()
