"""Every strategy of the library at three or more settings, on the same problems of four tasks.

    python -m benchmarks.arena                                       decode everything, then report
    python -m benchmarks.arena --tasks mini-code --strategies klass  one strategy on one task
    python -m benchmarks.arena --stages timing                       the timing runs, which want an idle machine
    python -m benchmarks.arena --show                                only report, from the results that are there

1. Validation: every setting of a strategy (benchmarks/arena/entrants.py) on the same problems, in turns.
2. Choice: at least three settings of the strategy, by the rule in benchmarks/arena/choice.py.
3. Test: these decode the same test problems, in turns. It needs the validation of the strategy and of greedy.
4. Timing: greedy, Adaptive Parallel, SOAR and Deliberate in turns on a few problems, with 16 rows and with one in a
   forward.
5. docs/arena.md, its figures and arena.json are made from the results of all tasks alone.

The unit of work is one strategy on one task. Units can run in any order, in several processes, on several days and
machines: each goes into the compact file of its task, TASK.json, as soon as it is done. Commit these files: the page
can be made from them alone, and a new checkout goes on where the last one stopped. Interrupt a unit whenever you like:
the same command resumes it from its folder of results.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.arena import pareto, report
from benchmarks.arena.accumulate import ROWS, save_all
from benchmarks.arena.compact import TaskResult
from benchmarks.arena.entrants import CONTESTS, contest, grids
from benchmarks.arena.files import locked, write_text
from benchmarks.arena.places import STAGES, TEST, TIMING, VALIDATION, file_name, report_lock
from benchmarks.arena.stages import Bout, Counts
from soar_dlm.cli.lists import listed
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.errors import SettingsError, SoarError, UnknownName
from soar_dlm.lm import load
from soar_dlm.tasks.catalogue import make_task


def decode(name: str, given: argparse.Namespace, strategies: Sequence[str], wanted: Sequence[str]) -> None:
    """The wanted stages of a task."""
    event, task = contest(name), make_task(name)
    grid = grids(event)
    counts = Counts(given.validation, given.limit, given.timing, given.chunk)
    bout = Bout(load(event.model), task, grid, given.output, counts, given.again)
    if VALIDATION in wanted:
        bout.validate(strategies)
    if TEST in wanted:
        bout.test(strategies)
    if TIMING in wanted and given.timing:
        for rows in ROWS:
            timed = load(event.model, engine=EngineSettings(max_rows=rows))
            replace(bout, lm=timed).time()


def strategies_of(text: str, known: Iterable[str]) -> list[str]:
    """The strategies in a list, by their names as in tables or by their file names; some have a comma in their name."""
    names = {file_name(name): name for name in known}
    parts, found = listed(text), []
    while parts:
        count = next((size for size in (2, 1) if file_name(",".join(parts[:size])) in names), None)
        if count is None:
            raise UnknownName("strategy", file_name(parts[0]), names)
        found.append(names[file_name(",".join(parts[:count]))])
        parts = parts[count:]
    if not found:
        raise SettingsError("--strategies names none; leave it out for all of them.")
    return found


def stages_of(text: str | None, some: bool) -> list[str]:
    """The stages in a list; by default all. For ``some`` strategies there is no timing, which compares strategies."""
    if text is None:
        return [VALIDATION, TEST] if some else list(STAGES)
    found = listed(text)
    for stage in found:
        if stage not in STAGES:
            raise UnknownName("stage", stage, STAGES)
    if some and TIMING in found:
        raise SettingsError("The timing runs compare strategies with each other; run them without --strategies.")
    return found


def write_report(output: Path, docs: Path) -> str | None:
    """The page, the figures and the data of all tasks that have results; None without any.

    What is left out goes to stderr.
    """
    with locked(report_lock(output)):
        results, notes = save_all(output, list(CONTESTS))
        shown = []
        for result in results:
            found, left_out = result.comparable()
            notes += left_out
            if found is not None:
                shown.append(found)
        for note in notes:
            print(f"arena: {note}", file=sys.stderr)
        if not shown:
            return None
        (docs / "figures").mkdir(parents=True, exist_ok=True)
        for result in shown:
            pareto.draw(result, docs / "figures" / report.figure_name(result.task))
        text = report.markdown(shown)
        write_text(docs / "arena.md", text)
        write_text(output / "arena.json", data(shown))
    return text


def data(results: Sequence[TaskResult]) -> str:
    """arena.json."""
    return json.dumps({result.task: report.figures(result) for result in results}, indent=2) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.arena", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", default=",".join(CONTESTS), help="names separated by commas")
    parser.add_argument("--strategies", help="names as in the tables, or such as soar-k-2, separated by commas")
    parser.add_argument(
        "--stages", help="any of validation, test and timing; all by default, but no timing with --strategies"
    )
    parser.add_argument("--limit", type=int, default=1000, help="test problems of each task")
    parser.add_argument("--validation", type=int, default=200, help="problems of each task to choose settings on")
    parser.add_argument("--timing", type=int, default=192, help="problems of each timing run; 0 for none")
    parser.add_argument("--chunk", type=int, default=50, help="problems that a method decodes in one turn")
    parser.add_argument("--output", type=Path, default=Path("docs/results/arena"), help="folder for results and data")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder for the page and its figures")
    parser.add_argument("--again", action="store_true", help="decode also what the compact files have already")
    parser.add_argument("--show", action="store_true", help="only report, from the results that are there")
    given = parser.parse_args(arguments)
    try:
        pareto.check_drawable()
        tasks, wanted = listed(given.tasks), stages_of(given.stages, given.strategies is not None)
        known = {name: [grid.strategy for grid in grids(contest(name))] for name in tasks}
        strategies = {
            name: own if given.strategies is None else strategies_of(given.strategies, own)
            for name, own in known.items()
        }
        for name in () if given.show else tasks:
            decode(name, given, strategies[name], wanted)
        if given.show or TEST in wanted or TIMING in wanted:
            page = write_report(given.output, given.docs)
            if page is not None:
                print(page)
            elif given.show:
                raise SettingsError(f"There are no test results in {given.output} yet; run the arena without --show.")
    except SoarError as error:
        raise SystemExit(f"arena: {error}") from error


if __name__ == "__main__":
    main()
