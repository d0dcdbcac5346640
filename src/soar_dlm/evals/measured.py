"""What sweeps of one model on several tasks measured, whatever their points are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any, Generic, TypeVar

from typing_extensions import Self

from soar_dlm import checks
from soar_dlm.errors import SettingsError
from soar_dlm.evals.comparison import Summary, ratio
from soar_dlm.evals.results import Record, Results
from soar_dlm.options import in_blocks

BASELINE = "Greedy"
SAME = ("model", "revision", "weights_sha256")
"""What sweeps must have in common to be pooled, besides their metric and their points."""

P = TypeVar("P")


@dataclass(frozen=True)
class Measured(Generic[P]):
    """Every point of the sweeps on all problems together, and on each task's."""

    model: str
    metric: str
    greedy: Summary
    points: Mapping[P, Summary]
    tasks: Mapping[str, Mapping[P, Summary]]

    def within(self, speed: float | None = None, forwards: float | None = None) -> Self:
        """The points at least ``speed`` times as fast as greedy by wall time, with at most this share of its forwards.

        Wall time varies with what else the machine does; forwards do not.
        """
        if speed is not None:
            checks.real_number("speed", speed, 0, inf)
        if forwards is not None:
            checks.real_number("forwards", forwards, 0, inf)
        found = self.only(
            lambda _, one: (
                (speed is None or one.speed_up >= speed)
                and (forwards is None or one.forwards <= forwards * self.greedy.forwards)
            )
        )
        if not found.points:
            raise SettingsError(f"No setting of the sweep is that fast. {self._fastest()}")
        return found

    def _fastest(self) -> str:
        fastest = max(one.speed_up for one in self.points.values())
        least = ratio(min(one.forwards for one in self.points.values()), self.greedy.forwards)
        return (
            f"The fastest takes 1/{fastest:.2f} of greedy's time; the least share of greedy's forwards is {least:.2f}. "
            "Ask for less, or sweep lower thresholds."
        )

    def accurate(self, accuracy: float) -> Self:
        """The points of at least this accuracy, as measured."""
        checks.real_number("accuracy", accuracy, 0, 1)
        found = self.only(lambda _, one: one.accuracy >= accuracy)
        if not found.points:
            best = max(one.accuracy for one in self.points.values())
            raise SettingsError(f"No setting of the sweep is that accurate; the best has {best:.1%}.")
        return found

    def level_on_each_task(self) -> set[P]:
        """The points that are at most one standard error below the best point of each task."""
        return set(self.points).intersection(*map(level_with_best, self.tasks.values()))

    def only(self, keep: Callable[[P, Summary], bool]) -> Self:
        kept = {point: one for point, one in self.points.items() if keep(point, one)}
        tasks = {name: {point: own[point] for point in kept} for name, own in self.tasks.items()}
        return replace(self, points=kept, tasks=tasks)


def level_with_best(points: Mapping[P, Summary]) -> list[P]:
    """The points at most one standard error of the best accuracy below it."""
    best = max(points.values(), key=lambda one: one.correct)
    error = sqrt(best.accuracy * (1 - best.accuracy) / best.problems)
    return [point for point, one in points.items() if one.accuracy >= best.accuracy - error]


def records_of(runs: Sequence[Results]) -> dict[str, list[Record]]:
    """Task -> records, of sweeps of one model with one metric and the same points, on a different task each."""
    found: dict[str, list[Record]] = {}
    for run in runs:
        if not _is_sweep(run.settings["methods"]):
            raise SettingsError("These are not the results of a sweep; make one with soar sweep.")
        own = run.whole_chunks()
        if not own:
            raise SettingsError(f"The sweep on {run.settings['task']} has not finished its first chunk of problems.")
        _check_poolable(runs[0], run, found)
        found[run.settings["task"]] = own
    return found


def _is_sweep(methods: Mapping[str, Any]) -> bool:
    """Whether there is greedy, and points of one kind."""
    points = [method for name, method in methods.items() if name != BASELINE]
    whole = all(point["threshold"] is not None and point["beam"] is not None for point in points)
    return BASELINE in methods and bool(points) and whole and len({"replay" in point for point in points}) == 1


def together(tasks: Mapping[str, Sequence[Record]]) -> list[Record]:
    """The records of all tasks, their problems numbered through."""
    records: list[Record] = []
    for own in tasks.values():
        records += [replace(record, index=record.index + len(records)) for record in own]
    return records


def metric_of(run: Results) -> Any:
    return run.settings["methods"][BASELINE]["metric"]


def _check_poolable(first: Results, run: Results, tasks: Mapping[str, Any]) -> None:
    for name in SAME:
        if run.settings[name] != first.settings[name]:
            raise SettingsError(
                f"These sweeps have a different {name}: {first.settings[name]} and {run.settings[name]}. "
                "Name sweeps of one model."
            )
    if _points(run) != _points(first) or metric_of(run) != metric_of(first):
        raise SettingsError(
            "These sweeps have different metrics, thresholds or other settings; make them with the same ones."
        )
    if run.settings["task"] in tasks:
        raise SettingsError(f"Two of these sweeps are on {run.settings['task']}; name one for each task.")


def _points(run: Results) -> dict[str, Any]:
    """Every method with what must be alike in all sweeps: what can be replayed, blocks and caches."""
    own = run.settings["methods"].items()
    return {name: (method.get("replay"), in_blocks(method.get("options", {}))) for name, method in own}
