"""A task's results in one small file, from which every figure of the arena can be made again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.arena.choice import Trial, chosen
from benchmarks.arena.entrants import BASELINE, parts_of
from benchmarks.arena.files import write_text
from soar_dlm.errors import InputFileError, SettingsError
from soar_dlm.evals.comparison import Summary
from soar_dlm.evals.results import Record, Results
from soar_dlm.evals.statistics import mcnemar, wilson_interval
from soar_dlm.models.source import read_json


@dataclass(frozen=True)
class Tally:
    """A method on all test problems: which of them it solved, and sums over all of them.

    ``solved`` has a character for each problem in order, "1" if it was solved and "0" if not. ``tokens`` counts the
    tokens that were committed, ``forwards`` evaluations of one candidate.
    """

    solved: str
    tokens: int
    forwards: int
    steps: int
    seconds: float

    @property
    def verdicts(self) -> list[bool]:
        return [verdict == "1" for verdict in self.solved]

    def summary(self, baseline: Tally) -> Summary:
        """The method on its problems, compared with another on the same ones."""
        test, count, correct = mcnemar(self.verdicts, baseline.verdicts), len(self.solved), self.solved.count("1")
        return Summary(
            problems=count,
            correct=correct,
            interval=wilson_interval(correct, count),
            forwards=self.forwards / count,
            steps=self.steps / count,
            tokens_per_forward=self.tokens / max(self.forwards, 1),
            seconds=self.seconds,
            speed_up=baseline.seconds / self.seconds,
            gained=test.first_only,
            lost=test.second_only,
            p_value=test.p_value,
        )


def tallies(records: Iterable[Record]) -> dict[str, Tally]:
    """The records of each method, added up in the order of their problems."""
    by_method: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: record.index):
        by_method.setdefault(record.method, []).append(record)
    return {name: _added(own) for name, own in by_method.items()}


def _added(own: Sequence[Record]) -> Tally:
    return Tally(
        solved="".join("1" if record.correct else "0" for record in own),
        tokens=sum(round(record.tokens_per_forward * record.forwards) for record in own),
        forwards=sum(record.forwards for record in own),
        steps=sum(record.steps for record in own),
        seconds=round(sum(record.seconds for record in own), 4),
    )


@dataclass(frozen=True)
class TaskResult:
    """What is known of a task.

    ``settings``, ``machine`` and ``library`` are those of the test run. ``trials`` are all settings on the
    ``validation`` problems, by strategy and setting. ``test`` has a tally for each method that entered, in the order of
    tables; ``timing`` the same for some methods on a few problems, by the most rows in a forward.
    """

    settings: dict[str, Any]
    machine: dict[str, Any]
    library: list[dict[str, Any]]
    validation: int
    trials: Mapping[str, Mapping[str, Trial]]
    test: Mapping[str, Tally]
    timing: Mapping[int, Mapping[str, Tally]]

    @property
    def task(self) -> str:
        return str(self.settings["task"])

    @property
    def problems(self) -> int:
        return len(self.test[BASELINE].solved)

    @cached_property
    def choice(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """For each strategy the settings that entered and the bounds that chose them."""
        return choice_of(self.trials)

    def strategies(self) -> dict[str, list[str]]:
        """The names of the methods of each strategy."""
        found: dict[str, list[str]] = {}
        for name in self.test:
            found.setdefault(parts_of(name)[0], []).append(name)
        return found

    def picked(self, strategy: str, bound: str) -> str | None:
        """The method that a bound chose; None if the strategy has no setting within it."""
        settings = self.choice.get(strategy, {})
        return next((f"{strategy}: {one}" for one, bounds in settings.items() if bound in bounds), None)

    def against(self, name: str, other: str) -> Summary:
        return self.test[name].summary(self.test[other])


def choice_of(trials: Mapping[str, Mapping[str, Trial]]) -> dict[str, dict[str, tuple[str, ...]]]:
    """What enters the test, by strategy."""
    baseline, setting = parts_of(BASELINE)
    greedy = trials[baseline][setting].forwards
    return {strategy: chosen(own, greedy) for strategy, own in trials.items()}


def trials_of(runs: Iterable[Results]) -> dict[str, dict[str, Trial]]:
    """All settings on the validation problems, by strategy; each run must be finished and all on the same problems."""
    found: dict[str, dict[str, Trial]] = {}
    problems: set[str] = set()
    for run in runs:
        if not run.complete:
            raise SettingsError(f"The validation of {run.settings['order'][0]} and others has not finished; resume it.")
        problems.add(run.settings["problems_sha256"])
        for name, tally in tallies(run.records).items():
            strategy, setting = parts_of(name)
            found.setdefault(strategy, {})[setting] = Trial(tally.solved.count("1"), tally.forwards)
    if len(problems) > 1:
        raise SettingsError("These strategies were validated on different problems; validate all on the same.")
    return found


def write_result(result: TaskResult, path: Path) -> None:
    write_text(path, json.dumps({"task": result.task, **asdict(result)}, indent=2) + "\n")


def read_result(path: Path) -> TaskResult:
    """What :func:`write_result` wrote."""
    content = read_json(path)
    try:
        return TaskResult(
            settings=content["settings"],
            machine=content["machine"],
            library=content["library"],
            validation=content["validation"],
            trials={
                strategy: {setting: Trial(**one) for setting, one in own.items()}
                for strategy, own in content["trials"].items()
            },
            test=_tallies(content["test"]),
            timing={int(rows): _tallies(own) for rows, own in content["timing"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputFileError(f"{path} is not a result of the arena; make it with 'make arena'.") from error


def _tallies(content: Mapping[str, Any]) -> dict[str, Tally]:
    return {name: Tally(**one) for name, one in content.items()}
