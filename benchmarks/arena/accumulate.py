"""What is known of a task by now: what result folders say, and what the compact file says of everything else.

1. Of a strategy's validation a finished folder counts, or else the compact file.
2. Of its test a finished folder counts, or else the compact file. Where neither is finished, the one with more problems
   counts, the folder if they have as many.
3. A test counts only if its settings are those that the validation chooses, so another grid drops the old test.
4. Timing runs are treated as tests are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.arena.choice import CAREFUL
from benchmarks.arena.compact import (
    MODEL,
    PROBLEMS,
    Choice,
    Run,
    Standing,
    TaskResult,
    Validation,
    choice_of,
    entering,
    read_result,
    write_result,
)
from benchmarks.arena.entrants import ADAPTIVE, BASELINE, DELIBERATE, GREEDY, SOAR_2, contest, grids
from benchmarks.arena.files import locked
from benchmarks.arena.places import TEST, VALIDATION, compact_file, report_lock, strategy_folder, timing_folder
from soar_dlm.evals.results import MANIFEST, ResultFolder, Results

ROWS = (16, 1)
"""How many rows share a forward in the timing runs."""
TIMED = (GREEDY, ADAPTIVE, SOAR_2, DELIBERATE)
"""The strategies of the timing runs."""


def save(output: Path, task: str) -> None:
    """Bring a task's compact file up to date."""
    with locked(report_lock(output)):
        save_all(output, [task])


def save_all(output: Path, tasks: Sequence[str]) -> tuple[list[TaskResult], list[str]]:
    """Bring compact files up to date, by a process that holds the lock; what they hold now, and what they leave out."""
    results, notes = [], []
    for task in tasks:
        result, left_out = known(output, task)
        if result.strategies:
            write_result(result, compact_file(output, task))
            results.append(result)
        notes += left_out
    return results, notes


def known(output: Path, task: str) -> tuple[TaskResult, list[str]]:
    """All that is known of a task, and what folders hold that is left out."""
    file = compact_file(output, task)
    old = read_result(file) if file.exists() else TaskResult(task, {}, {})
    validations, notes = _validations(output, old)
    choice = _choices(validations)
    strategies = {}
    for strategy, validation in validations.items():
        before = old.strategies.get(strategy)
        names = entering(strategy, choice[strategy]) if strategy in choice else None
        test, left_out = _latest(
            _read(strategy_folder(output, task, TEST, strategy)),
            None if before is None else before.test,
            None if names is None else {name: validation.methods[name] for name in names},
        )
        strategies[strategy] = Standing(validation, test)
        notes += [f"{task}: the test of {strategy} {reason}" for reason in left_out]
    methods = {name: method for one in validations.values() for name, method in one.methods.items()}
    timed = {name: methods[name] for name in timed_methods(choice)} if choice else None
    timing = {}
    for rows in ROWS:
        run, left_out = _latest(_read(timing_folder(output, task, rows)), old.timing.get(rows), timed)
        if run is not None:
            timing[rows] = run
        notes += [f"{task}: the timing run with batches of {rows} {reason}" for reason in left_out]
    return TaskResult(task, strategies, timing), notes


def _validations(output: Path, old: TaskResult) -> tuple[dict[str, Validation], list[str]]:
    """The validation of each strategy, in the order of tables, and what has not finished."""
    found: dict[str, Validation] = {}
    notes = []
    order = [grid.strategy for grid in grids(contest(old.task))]
    for strategy in dict.fromkeys([*order, *old.strategies]):
        folder = _read(strategy_folder(output, old.task, VALIDATION, strategy))
        if folder is not None and folder.complete:
            found[strategy] = Validation.of(folder)
        elif strategy in old.strategies:
            found[strategy] = old.strategies[strategy].validation
        elif folder is not None:
            notes.append(f"{old.task}: {strategy} is left out: its validation has not finished.")
    return found, notes


def _read(folder: Path) -> Results | None:
    return ResultFolder(folder).read() if (folder / MANIFEST).exists() else None


def _choices(validations: Mapping[str, Validation]) -> dict[str, Choice]:
    """What enters of each strategy that was validated on the problems that greedy was validated on."""
    if GREEDY not in validations:
        return {}
    settings = validations[GREEDY].origin.settings
    alike = {name: one for name, one in validations.items() if not one.origin.differing(settings, MODEL, PROBLEMS)}
    return choice_of({name: one.trials for name, one in alike.items()})


def _latest(
    folder: Results | None, before: Run | None, methods: Mapping[str, str] | None
) -> tuple[Run | None, list[str]]:
    """Which counts, what a folder or what the compact file says, and what does not.

    ``methods`` are those that are chosen now; None if that cannot be said.
    """
    fresh = None if folder is None else Run.of(folder)
    runs = [run for run in (fresh, before) if run is not None]
    found = [run for run in runs if methods is None or run.origin.settings["methods"] == methods]
    left_out = [] if found == runs else ["has results of settings that are no longer chosen; they are left out."]
    if folder is None or (folder.complete and fresh in found):
        return next(iter(found), None), left_out
    latest = max(found, key=lambda run: (run.complete, run.done), default=None)  # of equals the first, the folder's
    if not folder.complete and latest is not fresh:
        done = 0 if fresh is None else fresh.done
        left_out.append(f"has not finished ({done} of {folder.settings['problems']} problems); earlier results count.")
    elif fresh is None:
        left_out.append("has just begun; it is left out.")
    return latest, left_out


def timed_methods(found: Mapping[str, Choice]) -> list[str]:
    """Greedy, the careful settings of three strategies, and Deliberate's quickest setting."""
    names = [BASELINE]
    for strategy in TIMED[1:]:
        settings = found.get(strategy, {})
        quickest = list(settings)[:1] if strategy == DELIBERATE else []
        careful = [setting for setting, bounds in settings.items() if CAREFUL in bounds]
        names += [f"{strategy}: {setting}" for setting in quickest + careful]
    return list(dict.fromkeys(names))
