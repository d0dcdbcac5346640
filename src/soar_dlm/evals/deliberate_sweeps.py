"""Sweeps of Deliberate: decoded once for each threshold, replayed for every ``accept`` and ``tries``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from soar_dlm import checks
from soar_dlm.errors import SettingsError
from soar_dlm.evals.comparison import Method, Summary, ratio, summary
from soar_dlm.evals.measured import BASELINE, Measured, metric_of, records_of, together
from soar_dlm.evals.replay import NEVER, UNSCORED, Course, Outcome
from soar_dlm.evals.results import Record, Results
from soar_dlm.evals.statistics import mcnemar, wilson_interval
from soar_dlm.search.deliberate import Deliberate
from soar_dlm.search.greedy import Greedy

QUANTILES = np.arange(0.05, 0.96, 0.05)
"""Where, among the scores that a sweep saw, the values of ``accept`` are taken."""

DIGITS = 4
"""Significant digits of ``accept``: what is written into a preset is what was measured."""


@dataclass(frozen=True)
class Point:
    """One setting of Deliberate. With ``skip`` = 0.0 it is its first draft alone, which is not verified."""

    threshold: float
    accept: float = NEVER
    tries: int = 0
    skip: float | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the strategy."""
        own = {"threshold": self.threshold, "accept": self.accept, "tries": self.tries}
        return own if self.skip is None else {**own, "skip": self.skip}

    @property
    def accepts(self) -> str:
        """What is accepted, in a word or a number."""
        if self.skip is not None:
            return "the draft"
        return "never" if self.accept >= NEVER else f"{self.accept:g}"

    @property
    def search(self) -> str:
        """What follows the draft, in words."""
        return "the first draft alone" if self.skip is not None else f"accept = {self.accept:g}, tries = {self.tries}"


def deliberate_methods(
    thresholds: Sequence[float],
    tries: int,
    drafts: Sequence[str],
    metric: str,
    length: int,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Method]:
    """Greedy, and Deliberate at every threshold with the most tries, such that its records can be replayed."""
    if not thresholds:
        raise SettingsError("A sweep needs at least one threshold.")
    checks.whole_number("length", length, 1)
    methods = {BASELINE: Method(Greedy(metric=metric), length, options or {}, BASELINE)}
    for threshold in thresholds:
        strategy = Deliberate(threshold=threshold, accept=NEVER, tries=tries, drafts=drafts, metric=metric)
        name = f"Deliberate, tau={threshold}"
        methods[name] = Method(strategy, length, options or {}, name, replay=True)
    return methods


@dataclass(frozen=True)
class DeliberateSweep(Measured[Point]):
    """What sweeps of Deliberate on one or more tasks measured; all points share the kinds of ``drafts``."""

    drafts: tuple[str, ...]

    def settings_of(self, point: Point) -> dict[str, Any]:
        """All settings of the strategy at a point, as plain JSON values."""
        return {**point.settings, "drafts": list(self.drafts), "metric": self.metric}

    def most_accurate(self) -> Point:
        """The point with the most right answers on all tasks together; then the fewest forwards.

        On no single task may it be more than one standard error below the best point of that task, unless this leaves
        no point.
        """
        on_each = self.level_on_each_task()
        return max([point for point in self.points if point in on_each] or self.points, key=self._worth)

    def cheapest(self, accuracy: float) -> Point:
        """The point with the fewest forwards among those of at least this accuracy, both as measured."""
        among = self.accurate(accuracy).points
        return min(among, key=lambda point: (among[point].forwards, -among[point].correct))

    def front(self) -> dict[Point, Summary]:
        """The points that no cheaper one is as accurate as, by forwards."""
        found: dict[Point, Summary] = {}
        most = -1
        for point in sorted(self.points, key=lambda point: (self.points[point].forwards, -self.points[point].correct)):
            if self.points[point].correct > most:
                found[point], most = self.points[point], self.points[point].correct
        return found

    def _worth(self, point: Point) -> tuple[int, float]:
        return self.points[point].correct, -self.points[point].forwards

    def _fastest(self) -> str:
        least = ratio(min(one.forwards for one in self.points.values()), self.greedy.forwards)
        return f"The least share of greedy's forwards is {least:.2f}. Ask for less, or sweep lower thresholds."


def is_deliberate(run: Results) -> bool:
    """Whether these are the results of a sweep of Deliberate."""
    return any("replay" in method for method in run.settings["methods"].values())


def pooled_deliberate(runs: Sequence[Results]) -> DeliberateSweep:
    """The sweeps of one model with one metric, the same thresholds, tries and drafts, on a different task each."""
    first, tasks = runs[0], records_of(runs)
    records = together(tasks)
    swept = {name: method for name, method in first.settings["methods"].items() if name != BASELINE}
    replay = next(iter(swept.values()))["replay"]
    names = {name: method["threshold"] for name, method in swept.items()}
    accepts = accepts_among(records)
    tries = min(replay["tries"], _most_branches(records))  # more than were ever followed change nothing
    points = list(points_of(list(names.values()), accepts, tries))
    return DeliberateSweep(
        model=first.settings["model"],
        metric=metric_of(first),
        greedy=summary(records, BASELINE)[BASELINE],
        points=_measured(records, names, points),
        tasks={name: _measured(own, names, points) for name, own in tasks.items()},
        drafts=tuple(replay["drafts"]),
    )


def _most_branches(records: Sequence[Record]) -> int:
    return max((len(record.course.branches) for record in records if record.course is not None), default=0)


def accepts_among(records: Sequence[Record]) -> list[float]:
    """Values of ``accept`` to consider, lowest first: quantiles of the scores seen, and never."""
    courses = [record.course for record in records if record.course is not None]
    scores = [stage.score for course in courses for stage in course.stages if stage.score != UNSCORED]
    found = np.quantile(scores, QUANTILES) if scores else np.empty(0)
    return sorted({NEVER, *(float(f"{score:.{DIGITS}g}") for score in found)})


def points_of(thresholds: Sequence[float], accepts: Sequence[float], tries: int) -> Iterator[Point]:
    """Every threshold: its draft alone, and every ``accept`` with every number of tries up to the most."""
    for threshold in thresholds:
        yield Point(threshold, skip=0.0)
        for most in range(tries + 1):
            yield from (Point(threshold, accept, most) for accept in accepts)


def _measured(records: Sequence[Record], names: Mapping[str, float], points: Sequence[Point]) -> dict[Point, Summary]:
    """What the records say of every point; ``names`` are the methods with their thresholds."""
    ordered = sorted(records, key=lambda record: record.index)
    greedy = [record.correct for record in ordered if record.method == BASELINE]
    courses: dict[float, list[Course]] = {threshold: [] for threshold in names.values()}
    for record in ordered:
        if record.method in names:
            if record.course is None:
                raise SettingsError("These results lack what a sweep of Deliberate records; make it again.")
            courses[names[record.method]].append(record.course)
    return {
        point: _summary(
            [course.outcome(point.accept, point.tries, point.skip) for course in courses[point.threshold]], greedy
        )
        for point in points
    }


def _summary(outcomes: Sequence[Outcome], greedy: Sequence[bool]) -> Summary:
    """A point against greedy. Its time was not measured."""
    count, correct = len(outcomes), sum(one.correct for one in outcomes)
    test = mcnemar([one.correct for one in outcomes], greedy)
    return Summary(
        problems=count,
        correct=correct,
        interval=wilson_interval(correct, count),
        forwards=sum(one.forwards for one in outcomes) / count,
        steps=sum(one.steps for one in outcomes) / count,
        tokens_per_forward=nan,
        seconds=nan,
        speed_up=nan,
        gained=test.first_only,
        lost=test.second_only,
        p_value=test.p_value,
    )
