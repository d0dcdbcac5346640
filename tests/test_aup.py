"""Accuracy under parallelism, by hand and on points of its authors' leaderboard."""

from __future__ import annotations

from math import exp

import pytest

from soar_dlm.errors import SettingsError
from soar_dlm.evals.aup import accuracy_under_parallelism


def test_one_point_is_a_rectangle() -> None:
    assert accuracy_under_parallelism([(2.0, 60.0)], 80.0) == pytest.approx(120.0)


def test_without_a_loss_it_is_the_area_under_the_curve() -> None:
    assert accuracy_under_parallelism([(1.0, 80.0), (3.0, 80.0), (4.0, 80.0)], 80.0) == pytest.approx(4 * 80.0)


def test_worked_example() -> None:
    """From 1 to 3 tokens per forward accuracy falls from 80 to 76; the best of all methods has 80.

    1 * 80 + (3 - 1) * (80 * 1 + 76 * exp(-3 * 4 / 80)) / 2 = 80 + 80 + 76 * exp(-0.15)
    """
    points = [(1.0, 80.0), (3.0, 76.0)]
    assert accuracy_under_parallelism(points, 80.0) == pytest.approx(160 + 76 * exp(-0.15))
    assert accuracy_under_parallelism(points, 80.0) == pytest.approx(225.4138, abs=1e-4)
    assert accuracy_under_parallelism(reversed(points), 80.0) == pytest.approx(225.4138, abs=1e-4)


@pytest.mark.parametrize(
    ("points", "score"),
    [
        ([(1.0, 72.55)], 72.55),  # LLaDA
        ([(1.0, 74.79), (2.77, 74.68)], 205.781),  # Fast-dLLM
        ([(1.0, 74.98), (2.88, 74.39)], 213.756),  # D2F
        ([(1.0, 74.0), (5.14, 72.63)], 358.142),  # dParallel
    ],
)
def test_points_of_the_leaderboard(points: list[tuple[float, float]], score: float) -> None:
    """GSM8K with LLaDA models as in d3LLM's AUP_leaderboard/data_llada.yaml, where the best accuracy is 74.98."""
    assert accuracy_under_parallelism(points, 74.98) == pytest.approx(score, abs=1e-3)


def test_points_far_below_the_slowest_are_left_out() -> None:
    near, far = (2.0, 75.0), (9.0, 74.9)
    assert accuracy_under_parallelism([(1.0, 80.0), near, far], 80.0) == pytest.approx(
        accuracy_under_parallelism([(1.0, 80.0), near], 80.0)
    )


def test_a_gain_counts_whatever_its_size() -> None:
    gain = 70 + (70 * exp(-3 * 10 / 80) + 80) / 2
    assert accuracy_under_parallelism([(1.0, 70.0), (2.0, 80.0)], 80.0) == pytest.approx(gain)


def test_where_nothing_is_solved_it_is_nothing() -> None:
    assert accuracy_under_parallelism([(1.0, 0.0), (2.0, 0.0)], 0.0) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("points", "best"), [([], 50.0), ([(0.0, 50.0)], 50.0), ([(1.0, 51.0)], 50.0), ([(1.0, 50.0)], 101.0)]
)
def test_points_are_checked(points: list[tuple[float, float]], best: float) -> None:
    with pytest.raises(SettingsError):
        accuracy_under_parallelism(points, best)
