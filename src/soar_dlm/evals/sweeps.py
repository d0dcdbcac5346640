"""Sweeps over thresholds and beams (the paper's Figures 4 and 5), and which setting to take from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any

from soar_dlm import checks
from soar_dlm.errors import SettingsError
from soar_dlm.evals.comparison import Method, Summary, summary
from soar_dlm.evals.results import Record, Results
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.soar import Soar
from soar_dlm.search.strategy import Strategy

BASELINE = "Greedy"
SAME = ("model", "revision", "weights_sha256")
"""What sweeps must have in common to be pooled, besides their metric and their points."""


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
class Sweep:
    """What sweeps on one or more tasks measured: every point on all problems together, and on each task's."""

    model: str
    metric: str
    greedy: Summary
    points: Points
    tasks: Mapping[str, Points]

    def with_beam(self, beam: int) -> Sweep:
        """The points with this beam."""
        return self._only(lambda point, _: point.beam == beam)

    def within(self, speed: float | None = None, forwards: float | None = None) -> Sweep:
        """The points at least ``speed`` times as fast as greedy by wall time, with at most this share of its forwards.

        Wall time varies with what else the machine does; forwards do not.
        """
        if speed is not None:
            checks.real_number("speed", speed, 0, inf)
        if forwards is not None:
            checks.real_number("forwards", forwards, 0, inf)
        found = self._only(
            lambda _, one: (
                (speed is None or one.speed_up >= speed)
                and (forwards is None or one.forwards <= forwards * self.greedy.forwards)
            )
        )
        if not found.points:
            fastest = max(one.speed_up for one in self.points.values())
            least = min(one.forwards for one in self.points.values()) / self.greedy.forwards
            raise SettingsError(
                f"No setting of the sweep is that fast. The fastest takes 1/{fastest:.2f} of greedy's time; the least "
                f"share of greedy's forwards is {least:.2f}. Ask for less, or sweep lower thresholds."
            )
        return found

    def cautious(self) -> Setting:
        """The most cautious point that the problems cannot tell from the best.

        1. The accuracy of a point, on the problems of all tasks together, may be one standard error below the best.
        2. On no single task may it be more than one standard error below the best point of that task. If this leaves
           no point, only the first rule counts.
        3. The highest threshold wins, then the greater accuracy, then the fewer forwards.

        The most accurate point of a few hundred problems is often a low threshold that was lucky.
        """
        level = level_with_best(self.points)
        on_each = [point for point in level if all(point in level_with_best(own) for own in self.tasks.values())]

        def caution(point: Setting) -> tuple[float, int, float]:
            return point.threshold, self.points[point].correct, -self.points[point].forwards

        return max(on_each or level, key=caution)

    def fastest(self, accuracy: float) -> Setting:
        """The point with the greatest speed-up among those of at least this accuracy, both as measured."""
        checks.real_number("accuracy", accuracy, 0, 1)
        among = [point for point, one in self.points.items() if one.accuracy >= accuracy]
        if not among:
            best = max(one.accuracy for one in self.points.values())
            raise SettingsError(f"No setting of the sweep is that accurate; the best has {best:.1%}.")
        return max(among, key=lambda point: (self.points[point].speed_up, self.points[point].accuracy))

    def _only(self, keep: Callable[[Setting, Summary], bool]) -> Sweep:
        kept = {point: one for point, one in self.points.items() if keep(point, one)}
        tasks = {name: {point: own[point] for point in kept} for name, own in self.tasks.items()}
        return replace(self, points=kept, tasks=tasks)


def level_with_best(points: Points) -> list[Setting]:
    """The points at most one standard error of the best accuracy below it."""
    best = max(points.values(), key=lambda one: one.correct)
    error = sqrt(best.accuracy * (1 - best.accuracy) / best.problems)
    return [point for point, one in points.items() if one.accuracy >= best.accuracy - error]


def pooled(runs: Sequence[Results]) -> Sweep:
    """The sweeps of one model with one metric and the same points, on a different task each."""
    first = runs[0]
    tasks: dict[str, Points] = {}
    records: list[Record] = []
    for run in runs:
        if BASELINE not in run.settings["methods"]:
            raise SettingsError("These are not the results of a sweep; make one with soar sweep.")
        own = run.whole_chunks()
        if not own:
            raise SettingsError(f"The sweep on {run.settings['task']} has not finished its first chunk of problems.")
        _check_poolable(first, run, tasks)
        records += [replace(record, index=record.index + len(records)) for record in own]
        tasks[run.settings["task"]] = _points(run, own)
    return Sweep(
        model=first.settings["model"],
        metric=first.settings["methods"][BASELINE]["metric"],
        greedy=summary(records, BASELINE)[BASELINE],
        points=_points(first, records),
        tasks=tasks,
    )


def _points(run: Results, records: Sequence[Record]) -> Points:
    """What the records say of every point that ``run`` names, against greedy."""
    methods = run.settings["methods"]
    return {
        Setting(methods[name]["threshold"], methods[name]["beam"]): one
        for name, one in summary(records, BASELINE).items()
        if name != BASELINE
    }


def _check_poolable(first: Results, run: Results, tasks: Mapping[str, Points]) -> None:
    for name in SAME:
        if run.settings[name] != first.settings[name]:
            raise SettingsError(
                f"These sweeps have a different {name}: {first.settings[name]} and {run.settings[name]}. "
                "Name sweeps of one model."
            )
    same_points = run.settings["methods"].keys() == first.settings["methods"].keys()
    if not same_points or _metric(run) != _metric(first):
        raise SettingsError("These sweeps have different metrics, thresholds or beams; make them with the same ones.")
    if run.settings["task"] in tasks:
        raise SettingsError(f"Two of these sweeps are on {run.settings['task']}; name one for each task.")


def _metric(run: Results) -> Any:
    return run.settings["methods"][BASELINE]["metric"]
