"""Over thresholds and beams: the paper's Figures 4 and 5 as numbers, and the setting to take from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from soar_dlm import checks
from soar_dlm.errors import SettingsError
from soar_dlm.evals.comparison import Method, Summary
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.soar import Soar
from soar_dlm.search.strategy import Strategy

BASELINE = "Greedy"


@dataclass(frozen=True)
class Setting:
    """One point of a sweep of SOAR."""

    threshold: float
    beam: int

    @property
    def name(self) -> str:
        return f"SOAR, tau={self.threshold}, K={self.beam}"


def settings(thresholds: Sequence[float], beams: Sequence[int]) -> list[Setting]:
    return [Setting(threshold, beam) for beam in beams for threshold in thresholds]


def sweep_methods(
    points: Sequence[Setting], metric: str, length: int, options: Mapping[str, Any] | None = None
) -> dict[str, Method]:
    """Greedy, and SOAR at every point, with the same ``options`` of decoding."""
    if not points:
        raise SettingsError("A sweep needs at least one threshold and one beam size.")
    checks.whole_number("length", length, 1)
    strategies: dict[str, Strategy] = {BASELINE: Greedy(metric=metric)}
    for point in points:
        strategies[point.name] = Soar(beam=point.beam, threshold=point.threshold, metric=metric)
    return {name: Method(strategy, length, options or {}, label=name) for name, strategy in strategies.items()}


def best(found: Mapping[Setting, Summary], speed: float | None = None, accuracy: float | None = None) -> Setting:
    """The most accurate point at least ``speed`` times as fast as greedy, or the fastest of at least ``accuracy``.

    Without either, the most accurate one; ties go to the faster.
    """
    if speed is not None and accuracy is not None:
        raise SettingsError("Ask for a speed or for an accuracy, not for both.")
    if accuracy is not None:
        checks.real_number("accuracy", accuracy, 0, 1)
    among = {
        point: one
        for point, one in found.items()
        if (speed is None or one.speed_up >= speed) and (accuracy is None or one.accuracy >= accuracy)
    }
    if not among:
        fastest = max(found.values(), key=lambda one: one.speed_up)
        surest = max(found.values(), key=lambda one: one.accuracy)
        raise SettingsError(
            f"No setting of the sweep gets there. The fastest is {fastest.speed_up:.2f} times as fast as greedy, "
            f"the most accurate has {surest.accuracy:.1%}."
        )
    if accuracy is not None:
        return max(among, key=lambda point: (among[point].speed_up, among[point].accuracy))
    return max(among, key=lambda point: (among[point].correct, among[point].speed_up))
