from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soar_dlm.search.subsets import best_subsets, fewest_positions

CONFIDENCES = st.lists(st.sampled_from([0.1, 0.2, 0.25, 0.5, 0.5, 0.75, 0.9]) | st.floats(-5, 1, width=32), max_size=9)


@given(CONFIDENCES, st.integers(1, 5), st.integers(1, 12))
def test_k_best_subsets_equal_brute_force(values: list[float], n: int, k: int) -> None:
    confidence = np.array(values, dtype=np.float32)
    found = best_subsets(confidence, n, k)
    size = min(n, len(values))
    if size == 0:
        assert found == []
        return
    top = np.argsort(-confidence, kind="stable")[: fewest_positions(len(values), size, k)]
    everything = [math.fsum(float(confidence[i]) for i in subset) for subset in itertools.combinations(top, size)]
    means = [math.fsum(float(confidence[i]) for i in subset) for subset in found]
    assert len(found) == min(k, len(everything))
    assert len({tuple(sorted(subset.tolist())) for subset in found}) == len(found)
    assert means == sorted(everything, reverse=True)[:k]


def test_ties_prefer_the_lower_position() -> None:
    flat = np.full(6, 0.5, dtype=np.float32)
    assert [subset.tolist() for subset in best_subsets(flat, 1, 3)] == [[0], [1], [2]]
    assert [subset.tolist() for subset in best_subsets(flat, 2, 3)] == [[0, 1], [0, 2], [1, 2]]


@pytest.mark.parametrize(
    ("masked", "n", "k", "m"), [(10, 1, 4, 4), (10, 2, 2, 3), (10, 2, 4, 4), (10, 3, 4, 4), (3, 2, 9, 3), (2, 5, 2, 2)]
)
def test_fewest_positions(masked: int, n: int, k: int, m: int) -> None:
    assert fewest_positions(masked, n, k) == m


def test_no_subset_comes_twice() -> None:
    """Most can be reached in several ways: (1, 3) from (0, 3) as well as from (1, 2)."""
    flat = np.full(6, 0.5, dtype=np.float32)
    assert [tuple(subset) for subset in best_subsets(flat, 2, 15)] == list(itertools.combinations(range(6), 2))


def test_large_choices_are_not_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    """C(200, 20) subsets exist; the search may look at no more than a few for each one it returns."""
    looked = 0
    real = math.fsum

    def counting(values: Iterable[float]) -> float:
        nonlocal looked
        looked += 1
        return real(values)

    monkeypatch.setattr(math, "fsum", counting)
    confidence = np.linspace(1, 0, 200, dtype=np.float32)
    assert len(best_subsets(confidence, 20, 50)) == 50
    assert looked <= 50 * 20
