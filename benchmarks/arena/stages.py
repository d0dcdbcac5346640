"""The three runs of the arena on a task: validation, test, timing. Each resumes where it was interrupted.

Their results are in ``results/TASK.validation/STRATEGY``, ``results/TASK.test`` and ``results/TASK.timing-ROWS``. On
validation each strategy has a folder of its own, so that another grid for one of them leaves the others' results alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.arena.choice import CAREFUL
from benchmarks.arena.entrants import ADAPTIVE, BASELINE, DELIBERATE, SOAR_2, Entrant, Grid, parts_of
from benchmarks.arena.tallies import Tally, TaskResult, choice_of, read_result, tallies, trials_of
from soar_dlm.cli.progress import bar
from soar_dlm.errors import SettingsError
from soar_dlm.evals.comparison import Method, compare
from soar_dlm.evals.results import ResultFolder, Results, result_folders
from soar_dlm.lm import LM
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.task import Task

VALIDATION, TEST, TIMING = "validation", "test", "timing"
STAGES = (VALIDATION, TEST, TIMING)
ROWS = (16, 1)
"""How many rows share a forward in the timing runs."""
TIMING_CHUNK = 24
"""Problems of a timing turn: more than a batch, so that it is full for most of the turn."""


def folder_of(output: Path, task: str, stage: str) -> Path:
    return output / "results" / f"{task}.{stage}"


def run_validation(lm: LM, task: Task, grids: Sequence[Grid], count: int, chunk: int, output: Path) -> None:
    """Every setting of every grid on the first ``count`` validation problems."""
    problems = task.distinct("validation", count)
    for grid in grids:
        folder = folder_of(output, task.name, VALIDATION) / _file_name(grid.strategy)
        _run(lm, task, problems, grid.entrants, chunk, folder)


def run_test(lm: LM, task: Task, grids: Sequence[Grid], count: int, chunk: int, output: Path) -> None:
    """The chosen settings on the first ``count`` test problems, in turns."""
    _run(lm, task, task.distinct("test", count), entering(task.name, grids, output), chunk, _test_folder(output, task))


def run_timing(lm: LM, task: Task, grids: Sequence[Grid], count: int, output: Path) -> None:
    """A few methods on ``count`` test problems, in turns, with as many rows in a forward as the engine of ``lm`` has.

    They are greedy, the careful settings of Adaptive Parallel, SOAR and Deliberate, and Deliberate's quickest.
    """
    timed = timed_methods(choice(task.name, output))
    entrants = [entrant for grid in grids for entrant in grid.entrants if entrant.name in timed]
    folder = folder_of(output, task.name, f"{TIMING}-{lm.engine_settings.max_rows}")
    _run(lm, task, task.distinct("test", count), entrants, TIMING_CHUNK, folder)


def _run(
    lm: LM, task: Task, problems: Sequence[Problem], entrants: Sequence[Entrant], chunk: int, folder: Path
) -> None:
    methods = {one.name: Method(one.method, task.canvas, label=one.name) for one in entrants}
    with bar(f"{task.name}, {folder.name}", len(problems) * len(methods), Console(stderr=True, highlight=False)) as on:
        compare(lm, task, problems, methods, chunk=chunk, folder=folder, on_record=on)


def choice(task: str, output: Path) -> dict[str, dict[str, tuple[str, ...]]]:
    """What the validation results choose, by strategy."""
    return choice_of(trials_of(_validation_runs(task, output)))


def entering(task: str, grids: Sequence[Grid], output: Path) -> list[Entrant]:
    """The chosen settings, in the order of the grids and by their forwards on validation problems."""
    found = choice(task, output)
    entrants = {one.name: one for grid in grids for one in grid.entrants}
    missing = [grid.strategy for grid in grids if grid.strategy not in found]
    if missing:
        raise SettingsError(f"{', '.join(missing)}: not validated on {task} yet; run the stage {VALIDATION!r} first.")
    names = [f"{grid.strategy}: {setting}" for grid in grids for setting in found[grid.strategy]]
    unknown = [name for name in names if name not in entrants]
    if unknown:
        raise SettingsError(
            f"{', '.join(unknown)}: validated on {task}, but no longer in the grid. Remove the results of the strategy "
            f"from {folder_of(output, task, VALIDATION)} and run the stage {VALIDATION!r} again."
        )
    return [entrants[name] for name in dict.fromkeys([BASELINE, *names])]


def timed_methods(found: Mapping[str, Mapping[str, tuple[str, ...]]]) -> list[str]:
    """Greedy, the careful settings of three strategies, and Deliberate's quickest setting."""
    names = [BASELINE]
    for strategy in (ADAPTIVE, SOAR_2, DELIBERATE):
        settings = found.get(strategy, {})
        quickest = list(settings)[:1] if strategy == DELIBERATE else []
        careful = [setting for setting, bounds in settings.items() if CAREFUL in bounds]
        names += [f"{strategy}: {setting}" for setting in quickest + careful]
    return list(dict.fromkeys(names))


def _validation_runs(task: str, output: Path) -> list[Results]:
    folder = folder_of(output, task, VALIDATION)
    if not folder.is_dir():
        raise SettingsError(f"{task} has no validation results yet; run the stage {VALIDATION!r} first.")
    return [ResultFolder(path).read() for path in result_folders([folder])]


def _test_folder(output: Path, task: Task) -> Path:
    return folder_of(output, task.name, TEST)


def compact_file(output: Path, task: str) -> Path:
    return output / f"{task}.json"


def result_of(output: Path, task: str) -> TaskResult | None:
    """A task's results from its folders, or where these say nothing yet from its compact file; None without any."""
    found, file = _from_folders(output, task), compact_file(output, task)
    return read_result(file) if found is None and file.exists() else found


def _from_folders(output: Path, task: str) -> TaskResult | None:
    """The chunks of the test run that every method has decoded, and all of validation and timing; None without any."""
    folder = folder_of(output, task, TEST)
    if not folder.is_dir():
        return None
    run = ResultFolder(folder).read()
    test = tallies(run.whole_chunks())
    if not test:
        return None
    trials = trials_of(runs := _validation_runs(task, output))
    order = list(dict.fromkeys(parts_of(name)[0] for name in run.settings["order"]))
    timing = {rows: folder_of(output, task, f"{TIMING}-{rows}") for rows in ROWS}
    return TaskResult(
        settings=run.settings,
        machine=run.machine,
        library=run.libraries,
        validation=runs[0].settings["problems"],
        trials={strategy: trials[strategy] for strategy in order},
        test={name: test[name] for name in run.settings["order"]},
        timing={rows: own for rows, path in timing.items() if path.is_dir() and (own := _timing(path))},
    )


def _timing(folder: Path) -> dict[str, Tally]:
    run = ResultFolder(folder).read()
    found = tallies(run.whole_chunks())
    return {name: found[name] for name in run.settings["order"] if name in found}


def _file_name(strategy: str) -> str:
    """A strategy's name in letters, digits and hyphens: Fréchet becomes frechet."""
    plain = unicodedata.normalize("NFKD", strategy).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
