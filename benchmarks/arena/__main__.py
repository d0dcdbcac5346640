"""Every strategy of the library at three or more settings, on the same problems of four tasks.

    python -m benchmarks.arena                                 decode everything, then report
    python -m benchmarks.arena --tasks mini-code               one task; several may run in processes of their own
    python -m benchmarks.arena --stages validation,test        without the timing runs, which want an idle machine
    python -m benchmarks.arena --show                          only report, from the results that are there

1. Validation: every setting of every strategy (benchmarks/arena/entrants.py) on the same problems.
2. Choice: at least three settings of each strategy, by the rule in benchmarks/arena/choice.py.
3. Test: all of them decode the same test problems in turns (soar_dlm.evals.comparison.compare).
4. Timing: greedy, Adaptive Parallel, SOAR and Deliberate on a few problems, with 16 rows and with one in a forward.
5. docs/arena.md, its figures and arena.json are made from the results of all tasks alone, and of each task a compact
   file from which they can be made again.

Interrupt it whenever you like: the same command resumes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.arena import pareto, report, stages
from benchmarks.arena.entrants import CONTESTS, contest, grids
from benchmarks.arena.files import write_text
from benchmarks.arena.tallies import TaskResult, write_result
from soar_dlm.cli.lists import listed
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.errors import SettingsError, SoarError, UnknownName
from soar_dlm.lm import load
from soar_dlm.tasks.catalogue import make_task


def decode(name: str, given: argparse.Namespace, wanted: Sequence[str]) -> None:
    """The wanted stages of a task."""
    event, task = contest(name), make_task(name)
    grid = grids(event)
    lm = load(event.model)
    if stages.VALIDATION in wanted:
        stages.run_validation(lm, task, grid, given.validation, given.chunk, given.output)
    if stages.TEST in wanted:
        stages.run_test(lm, task, grid, given.limit, given.chunk, given.output)
    if stages.TIMING in wanted and given.timing:
        for rows in stages.ROWS:
            timed = load(event.model, engine=EngineSettings(max_rows=rows))
            stages.run_timing(timed, task, grid, given.timing, given.output)


def write_report(output: Path, docs: Path) -> str:
    """The page, the figures and the data of all tasks that have results."""
    found = [result for name in CONTESTS if (result := stages.result_of(output, name)) is not None]
    if not found:
        raise SettingsError(f"There are no test results in {output} yet; run the arena without --show.")
    (docs / "figures").mkdir(parents=True, exist_ok=True)
    for result in found:
        write_result(result, stages.compact_file(output, result.task))
        pareto.draw(result, docs / "figures" / report.figure_name(result.task))
    text = report.markdown(found)
    write_text(docs / "arena.md", text)
    write_text(output / "arena.json", data(found))
    return text


def data(results: Sequence[TaskResult]) -> str:
    """arena.json."""
    return json.dumps({result.task: report.figures(result) for result in results}, indent=2) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.arena", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", default=",".join(CONTESTS), help="names separated by commas")
    parser.add_argument("--stages", default=",".join(stages.STAGES), help="any of validation, test and timing")
    parser.add_argument("--limit", type=int, default=1000, help="test problems of each task")
    parser.add_argument("--validation", type=int, default=200, help="problems of each task to choose settings on")
    parser.add_argument("--timing", type=int, default=48, help="problems of each timing run; 0 for none")
    parser.add_argument("--chunk", type=int, default=50, help="problems that a method decodes in one turn")
    parser.add_argument("--output", type=Path, default=Path("docs/results/arena"), help="folder for results and data")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder for the page and its figures")
    parser.add_argument("--show", action="store_true", help="only report, from the results that are there")
    given = parser.parse_args(arguments)
    try:
        pareto.check_drawable()
        tasks, wanted = listed(given.tasks), listed(given.stages)
        for name in tasks:
            contest(name)
        for stage in wanted:
            if stage not in stages.STAGES:
                raise UnknownName("stage", stage, stages.STAGES)
        for name in () if given.show else tasks:
            decode(name, given, wanted)
        if given.show or stages.TEST in wanted or stages.TIMING in wanted:
            print(write_report(given.output, given.docs))
    except SoarError as error:
        raise SystemExit(f"arena: {error}") from error


if __name__ == "__main__":
    main()
