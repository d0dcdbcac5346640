"""What is known of a task, strategy by strategy, in one small file from which the page can be made again.

Strategies are run one by one, perhaps on different days and machines. So each has its own trials on validation
problems, its own tallies on test problems, and for both where they come from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.arena.choice import Trial, chosen
from benchmarks.arena.entrants import BASELINE, GREEDY, parts_of
from benchmarks.arena.files import write_text
from benchmarks.arena.tallies import Tally, tallies
from soar_dlm.errors import InputFileError
from soar_dlm.evals.comparison import Summary
from soar_dlm.evals.results import Results
from soar_dlm.models.source import read_object

Choice = dict[str, tuple[str, ...]]
"""The settings of a strategy that enter the test, by rising forwards, each with the bounds that chose it."""

MODEL = ("model", "revision", "weights_sha256", "dtype", "default_options", "seed")
PROBLEMS = ("task", "canvas", "shots", "stop", "problems", "problems_sha256")
METHODS = ("methods",)
"""Settings that decide what is answered. The others, such as threads and versions, decide how fast."""


@dataclass(frozen=True)
class Origin:
    """Where results come from: the settings, the machine and the states of the library of the run that made them."""

    settings: dict[str, Any]
    machine: dict[str, Any]
    library: list[dict[str, Any]]

    @classmethod
    def of(cls, run: Results) -> Origin:
        return cls(condensed(run.settings), run.machine, run.libraries)

    @property
    def computer(self) -> str:
        """What times can be compared on: the processor or accelerator, the cores and the threads."""
        on_cpu = str(self.settings.get("device", "cpu")).startswith("cpu")
        name = self.machine["cpu"] if on_cpu else f"{self.machine['accelerator']}, {self.machine['cpu']}"
        return f"{name}, {self.machine['cores']} cores, {self.settings['threads']} threads"

    def differing(self, settings: Mapping[str, Any], *kinds: tuple[str, ...]) -> list[str]:
        """The names of the settings of these kinds that are not the same."""
        names = [name for kind in kinds for name in kind]
        return [name for name in names if self.settings.get(name) != settings.get(name)]


def condensed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A run's settings with its methods by their names, in order, each as the strategy that it is."""
    methods = {name: settings["methods"][name]["strategy"] for name in settings["order"]}
    return {name: value for name, value in settings.items() if name != "order"} | {"methods": methods}


@dataclass(frozen=True)
class Validation:
    """All settings of a strategy on the same validation problems, in the order of its grid."""

    origin: Origin
    trials: Mapping[str, Trial]

    @classmethod
    def of(cls, run: Results) -> Validation:
        """What a finished run says."""
        found = tallies(run.records)
        trials = {name: Trial(found[name].solved.count("1"), found[name].forwards) for name in run.settings["order"]}
        return cls(Origin.of(run), {parts_of(name)[1]: trial for name, trial in trials.items()})

    @property
    def methods(self) -> dict[str, str]:
        """The strategies that were tried, by the methods' names."""
        return dict(self.origin.settings["methods"])


@dataclass(frozen=True)
class Run:
    """Methods on the same test problems, in turns; ``tallies`` are by the methods' names."""

    origin: Origin
    tallies: Mapping[str, Tally]

    @classmethod
    def of(cls, run: Results) -> Run | None:
        """The problems that every method has decoded; None if there are none yet."""
        found = tallies(run.whole_chunks())
        return cls(Origin.of(run), {name: found[name] for name in run.settings["order"]}) if found else None

    @property
    def done(self) -> int:
        """How many problems were decoded."""
        return len(next(iter(self.tallies.values())).solved)

    @property
    def wanted(self) -> int:
        return int(self.origin.settings["problems"])

    @property
    def complete(self) -> bool:
        return self.done == self.wanted


@dataclass(frozen=True)
class Standing:
    """What is known of a strategy; ``test`` is None until it was tested."""

    validation: Validation
    test: Run | None = None


@dataclass(frozen=True)
class TaskResult:
    """What is known of a task: its strategies in the order of tables, and the timing runs by their most rows."""

    task: str
    strategies: Mapping[str, Standing]
    timing: Mapping[int, Run]

    def comparable(self) -> tuple[TaskResult | None, list[str]]:
        """What can be compared with greedy, and what is left out; None without test results of greedy.

        A strategy must have been tested and validated with greedy's model on greedy's problems.
        """
        greedy = self.strategies.get(GREEDY)
        if greedy is None or greedy.test is None:
            return None, [f"{self.task} is left out: greedy is not tested yet."] if self.strategies else []
        found, notes = {}, []
        for strategy, standing in self.strategies.items():
            reason = _reason(standing, greedy.validation.origin, greedy.test.origin)
            if reason is None:
                found[strategy] = standing
            else:
                notes.append(f"{self.task}: {strategy} is left out: {reason}.")
        return replace(self, strategies=found), notes

    @cached_property
    def baseline(self) -> Run:
        """The test of greedy; only a comparable result is sure to have it."""
        run = self.strategies[GREEDY].test
        assert run is not None
        return run

    @property
    def settings(self) -> dict[str, Any]:
        """Those of greedy's test; what decides the answers is the same for all that can be compared."""
        return self.baseline.origin.settings

    @property
    def validation(self) -> int:
        """How many problems settings were chosen on."""
        return int(self.strategies[GREEDY].validation.origin.settings["problems"])

    @cached_property
    def runs(self) -> dict[str, Run]:
        """The tests, by strategy."""
        return {name: standing.test for name, standing in self.strategies.items() if standing.test is not None}

    @cached_property
    def test(self) -> dict[str, Tally]:
        """All methods that were tested."""
        return {name: tally for run in self.runs.values() for name, tally in run.tallies.items()}

    @cached_property
    def choice(self) -> dict[str, Choice]:
        return choice_of({strategy: standing.validation.trials for strategy, standing in self.strategies.items()})

    @property
    def unfinished(self) -> dict[str, Run]:
        """The strategies that have not decoded all test problems; they are in no figure, and have no AUP."""
        return {strategy: run for strategy, run in self.runs.items() if not run.complete}

    @property
    def finished(self) -> dict[str, list[str]]:
        """The methods of each strategy that has decoded all problems, and greedy's in any case."""
        own = {GREEDY: self.baseline, **{name: run for name, run in self.runs.items() if run.complete}}
        return {strategy: list(run.tallies) for strategy, run in own.items()}

    def run_of(self, name: str) -> Run:
        """The run that a method was tested in."""
        return self.runs[parts_of(name)[0]]

    @cached_property
    def computers(self) -> list[str]:
        """The machines that methods were tested on, greedy's first."""
        return list(dict.fromkeys(run.origin.computer for run in (self.baseline, *self.runs.values())))

    def timed_with_greedy(self, name: str) -> bool:
        """Whether a method and greedy decoded as many problems on the same machine."""
        run = self.run_of(name)
        return (run.origin.computer, run.done) == (self.baseline.origin.computer, self.baseline.done)

    def speed_up(self, name: str) -> float | None:
        """Greedy's time over the method's; None if it cannot be compared."""
        return self.against(name, BASELINE).speed_up if self.timed_with_greedy(name) else None

    def picked(self, strategy: str, bound: str) -> str | None:
        """The method that a bound chose; None if the strategy has no setting within it."""
        settings = self.choice.get(strategy, {})
        return next((f"{strategy}: {one}" for one, bounds in settings.items() if bound in bounds), None)

    def against(self, name: str, other: str) -> Summary:
        return self.test[name].summary(self.test[other])


def _reason(standing: Standing, validation: Origin, test: Origin) -> str | None:
    """Why a strategy cannot be compared with greedy; None if it can."""
    if standing.test is None:
        return "it is not tested yet"
    for verb, own, greedys in (
        ("validated", standing.validation.origin, validation),
        ("tested", standing.test.origin, test),
    ):
        if differing := own.differing(greedys.settings, MODEL, PROBLEMS):
            return f"it was {verb} with other settings than greedy ({', '.join(differing)})"
    return None


def choice_of(trials: Mapping[str, Mapping[str, Trial]]) -> dict[str, Choice]:
    """What enters the test, by strategy; greedy must be among them, and all on the same problems."""
    greedy = trials[GREEDY][parts_of(BASELINE)[1]].forwards
    return {strategy: chosen(own, greedy) for strategy, own in trials.items()}


def entering(strategy: str, choice: Choice) -> list[str]:
    """The names of the methods of a strategy that enter the test; greedy with one token per step always does."""
    names = [f"{strategy}: {setting}" for setting in choice]
    return list(dict.fromkeys([BASELINE, *names])) if strategy == GREEDY else names


def write_result(result: TaskResult, path: Path) -> None:
    write_text(path, json.dumps(asdict(result), indent=2) + "\n")


def read_result(path: Path) -> TaskResult:
    """What :func:`write_result` wrote."""
    content = read_object(path)
    try:
        return TaskResult(
            task=content["task"],
            strategies={strategy: _standing(own) for strategy, own in content["strategies"].items()},
            timing={int(rows): _run(own) for rows, own in content["timing"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputFileError(f"{path} is not a result of the arena; make it with 'make arena'.") from error


def _standing(content: Mapping[str, Any]) -> Standing:
    validation, test = content["validation"], content["test"]
    trials = {setting: Trial(**one) for setting, one in validation["trials"].items()}
    return Standing(Validation(_origin(validation["origin"]), trials), None if test is None else _run(test))


def _run(content: Mapping[str, Any]) -> Run:
    return Run(_origin(content["origin"]), {name: Tally(**one) for name, one in content["tallies"].items()})


def _origin(content: Mapping[str, Any]) -> Origin:
    origin = Origin(content["settings"], content["machine"], content["library"])
    _ = origin.computer, [origin.settings[name] for name in (*PROBLEMS, *METHODS, "model", "dtype", "versions")]
    return origin
