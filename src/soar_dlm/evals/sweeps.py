"""Sweeps over thresholds and beams (the paper's Figures 4 and 5), and which setting to take from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from soar_dlm import checks
from soar_dlm.errors import SettingsError
from soar_dlm.evals.comparison import Method, Summary, summary
from soar_dlm.evals.measured import BASELINE, Measured, level_with_best, metric_of, records_of, together
from soar_dlm.evals.results import Record, Results
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.soar import Soar
from soar_dlm.search.strategy import Strategy


@dataclass(frozen=True)
class Setting:
    """One point of a sweep of SOAR; with a beam of 1 it is Adaptive Parallel."""

    threshold: float
    beam: int

    @property
    def name(self) -> str:
        return f"SOAR, tau={self.threshold}, K={self.beam}"


Points = Mapping[Setting, Summary]


def settings(thresholds: Sequence[float], beams: Sequence[int]) -> list[Setting]:
    return [Setting(threshold, beam) for beam in beams for threshold in thresholds]


def sweep_methods(
    points: Sequence[Setting], metric: str, length: int, options: Mapping[str, Any] | None = None
) -> dict[str, Method]:
    """Greedy, and SOAR at every point, with the same decoding ``options``."""
    if not points:
        raise SettingsError("A sweep needs at least one threshold and one beam size.")
    checks.whole_number("length", length, 1)
    strategies: dict[str, Strategy] = {BASELINE: Greedy(metric=metric)}
    for point in points:
        strategies[point.name] = Soar(beam=point.beam, threshold=point.threshold, metric=metric)
    return {name: Method(strategy, length, options or {}, label=name) for name, strategy in strategies.items()}


@dataclass(frozen=True)
class Sweep(Measured[Setting]):
    """What sweeps of SOAR on one or more tasks measured."""

    def with_beam(self, beam: int) -> Sweep:
        """The points with this beam."""
        found = self.only(lambda point, _: point.beam == beam)
        if not found.points:
            beams = ", ".join(map(str, sorted({point.beam for point in self.points})))
            raise SettingsError(f"The sweep has no points with a beam of {beam}; its beams are {beams}.")
        return found

    def cautious(self) -> Setting:
        """The most cautious point that the problems cannot tell from the best.

        1. The accuracy of a point, on the problems of all tasks together, may be one standard error below the best.
        2. On no single task may it be more than one standard error below the best point of that task. If this leaves
           no point, only the first rule counts.
        3. The highest threshold wins, then the greater accuracy, then the fewer forwards.

        The most accurate point of a few hundred problems is often a low threshold that was lucky. Where forwards are
        limited, a narrow beam can afford a higher threshold than a wide one; to decide on the beam yourself, use
        :meth:`with_beam` first.
        """
        level, on_each = level_with_best(self.points), self.level_on_each_task()

        def caution(point: Setting) -> tuple[float, int, float]:
            return point.threshold, self.points[point].correct, -self.points[point].forwards

        return max([point for point in level if point in on_each] or level, key=caution)

    def fastest(self, accuracy: float) -> Setting:
        """The point with the greatest speed-up among those of at least this accuracy, both as measured."""
        among = self.accurate(accuracy).points
        return max(among, key=lambda point: (among[point].speed_up, among[point].accuracy))


def pooled(runs: Sequence[Results]) -> Sweep:
    """The sweeps of one model with one metric and the same points, on a different task each."""
    first, tasks = runs[0], records_of(runs)
    records = together(tasks)
    return Sweep(
        model=first.settings["model"],
        metric=metric_of(first),
        greedy=summary(records, BASELINE)[BASELINE],
        points=_points(first, records),
        tasks={name: _points(first, own) for name, own in tasks.items()},
    )


def _points(run: Results, records: Sequence[Record]) -> Points:
    """What the records say of every point that ``run`` names, against greedy."""
    methods = run.settings["methods"]
    return {
        Setting(methods[name]["threshold"], methods[name]["beam"]): one
        for name, one in summary(records, BASELINE).items()
        if name != BASELINE
    }
