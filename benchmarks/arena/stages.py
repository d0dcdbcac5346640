"""The three runs of the arena on a task: validation, test, timing. Each resumes where it was interrupted.

The unit of work is one strategy on one task. Its validation and its test have folders of their own,
``results/TASK.validation/STRATEGY`` and ``results/TASK.test/STRATEGY``, in which its settings take turns. So strategies
can run in any order, in several processes and on several days; each is saved in the compact file as soon as it is done.
The timing runs, ``results/TASK.timing-ROWS``, have several strategies that take turns.

What the compact file holds already, of the same settings on the same problems, is not decoded again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.arena.accumulate import TIMED, known, save, timed_methods
from benchmarks.arena.compact import METHODS, MODEL, PROBLEMS, Choice, Origin, choice_of, condensed, entering
from benchmarks.arena.entrants import GREEDY, Entrant, Grid
from benchmarks.arena.files import locked
from benchmarks.arena.places import TEST, TIMING, VALIDATION, file_name, strategy_folder, timing_folder
from soar_dlm.cli.progress import bar
from soar_dlm.errors import SettingsError
from soar_dlm.evals.comparison import Method, compare, settings_of
from soar_dlm.evals.results import MANIFEST, ResultFolder
from soar_dlm.lm import LM
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.task import Task

SEED = 0
TIMING_CHUNK = 96
"""Problems of a timing turn: many batches, because the last one empties as its problems finish."""


@dataclass(frozen=True)
class Counts:
    """How many problems each stage has, and how many a method decodes in one turn."""

    validation: int = 200
    test: int = 1000
    timing: int = 192
    chunk: int = 50


@dataclass(frozen=True)
class Work:
    """Methods to decode some problems with, in turns; ``title`` says what it is."""

    title: str
    entrants: Sequence[Entrant]
    problems: Sequence[Problem]
    chunk: int
    folder: Path


@dataclass(frozen=True)
class Bout:
    """A task with its model and all its strategies; results go to ``output``.

    With ``again`` what the compact file has already is decoded as well.
    """

    lm: LM
    task: Task
    grids: Sequence[Grid]
    output: Path
    counts: Counts
    again: bool = False

    def validate(self, strategies: Iterable[str]) -> None:
        """Every setting of each of these strategies on the same validation problems."""
        for grid in self._wanted(strategies):
            standing = known(self.output, self.task.name)[0].strategies.get(grid.strategy)
            self._do(self._validation(grid), None if standing is None else standing.validation.origin)

    def test(self, strategies: Iterable[str]) -> None:
        """The chosen settings of each of these strategies on the same test problems."""
        wanted = self._wanted(strategies)
        choice = self._choice(grid.strategy for grid in wanted)
        problems = self.task.distinct("test", self.counts.test)
        for grid in wanted:
            names, own = entering(grid.strategy, choice[grid.strategy]), {one.name: one for one in grid.entrants}
            folder = strategy_folder(self.output, self.task.name, TEST, grid.strategy)
            title = f"{self.task.name}, {TEST}, {grid.strategy}"
            before = known(self.output, self.task.name)[0].strategies[grid.strategy].test
            self._do(
                Work(title, [own[name] for name in names], problems, self.counts.chunk, folder),
                before.origin if before is not None and before.complete else None,
            )

    def time(self) -> None:
        """A few methods on some test problems, in turns, with as many rows in a forward as the model's engine has.

        They are greedy, the careful settings of Adaptive Parallel, SOAR and Deliberate, and Deliberate's quickest.
        """
        names = timed_methods(self._choice(grid.strategy for grid in self.grids if grid.strategy in TIMED))
        entrants = [entrant for grid in self.grids for entrant in grid.entrants if entrant.name in names]
        rows = self.lm.engine_settings.max_rows
        title, folder = f"{self.task.name}, {TIMING}, {rows} rows", timing_folder(self.output, self.task.name, rows)
        before = known(self.output, self.task.name)[0].timing.get(rows)
        problems = self.task.distinct("test", self.counts.timing)
        self._do(
            Work(title, entrants, problems, TIMING_CHUNK, folder),
            before.origin if before is not None and before.complete else None,
        )

    def _wanted(self, strategies: Iterable[str]) -> list[Grid]:
        """Their grids in the order of tables, greedy's first."""
        names = set(strategies)
        return [grid for grid in self.grids if grid.strategy in names]

    def _validation(self, grid: Grid) -> Work:
        return Work(
            title=f"{self.task.name}, {VALIDATION}, {grid.strategy}",
            entrants=grid.entrants,
            problems=self.task.distinct("validation", self.counts.validation),
            chunk=self.counts.chunk,
            folder=strategy_folder(self.output, self.task.name, VALIDATION, grid.strategy),
        )

    def _choice(self, strategies: Iterable[str]) -> dict[str, Choice]:
        """What enters of greedy and of these strategies, all of which must have been validated with today's grids."""
        found = known(self.output, self.task.name)[0].strategies
        grids = self._wanted([GREEDY, *strategies])
        if missing := [grid.strategy for grid in grids if grid.strategy not in found]:
            raise SettingsError(
                f"{', '.join(missing)}: not validated on {self.task.name} yet. Finish the stage {VALIDATION!r} first: "
                f"--stages {VALIDATION} --strategies {','.join(map(file_name, missing))}."
            )
        for grid in grids:
            work = self._validation(grid)
            if differing := self._differing(found[grid.strategy].validation.origin, work):
                remove = f"remove {work.folder} and " if work.folder.exists() else ""
                raise SettingsError(
                    f"{grid.strategy}: validated on {self.task.name} with other settings ({', '.join(differing)}). "
                    f"Use those, or {remove}run --stages {VALIDATION} --strategies {file_name(grid.strategy)}."
                )
        return choice_of({grid.strategy: found[grid.strategy].validation.trials for grid in grids})

    def _methods(self, work: Work) -> dict[str, Method]:
        """The methods by their names, with the thresholds that settings record."""
        ready = {one.name: one.method.bound(self.lm.model.facts.thresholds) for one in work.entrants}
        return {name: Method(strategy, self.task.canvas, label=name) for name, strategy in ready.items()}

    def _differing(self, before: Origin, work: Work) -> list[str]:
        """The settings by which earlier results are not those that this work would have."""
        settings: dict[str, Any] = settings_of(self.lm, self.task, work.problems, self._methods(work), work.chunk, SEED)
        return before.differing(condensed(settings), MODEL, PROBLEMS, METHODS)

    def _do(self, work: Work, before: Origin | None) -> None:
        """Decode what is left to do, and save it; nothing if a finished run like it is in the compact file alone."""
        console = Console(stderr=True, highlight=False)
        if (work.folder / MANIFEST).exists():
            started = Origin.of(ResultFolder(work.folder).read())
            if differing := self._differing(started, work):
                raise SettingsError(
                    f"{work.folder} has results of other settings ({', '.join(differing)}). Use those, or remove the "
                    "folder to decode anew."
                )
        elif before is not None and not self.again:
            differing = self._differing(before, work)
            if not differing:
                console.print(f"{work.title}: done before, by the compact file", soft_wrap=True)
                return
            console.print(
                f"{work.title}: the compact file has other settings ({', '.join(differing)}); decoded anew",
                soft_wrap=True,
            )
        methods = self._methods(work)
        busy = f"Another process is at {work.title}; name other strategies with --strategies."
        with (
            locked(work.folder / "lock", busy),
            bar(work.title, len(work.problems) * len(methods), console) as on_record,
        ):
            compare(
                self.lm,
                self.task,
                work.problems,
                methods,
                chunk=work.chunk,
                folder=work.folder,
                seed=SEED,
                on_record=on_record,
            )
        save(self.output, self.task.name)
