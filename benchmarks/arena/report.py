"""The arena's page and its figures as data, from results alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from string import ascii_uppercase
from textwrap import fill
from typing import Any

from benchmarks.arena.choice import CAREFUL, MIDDLE
from benchmarks.arena.compact import Run, TaskResult
from benchmarks.arena.entrants import BASELINE, CONTESTS, GREEDY, SOAR_2, grids, parts_of
from soar_dlm.evals.aup import accuracy_under_parallelism
from soar_dlm.evals.comparison import Summary
from soar_dlm.evals.reports import SIGNS, made_with, rate, table
from soar_dlm.evals.results import Results
from soar_dlm.evals.tables import sign

INTRODUCTION = f"""\
# The arena

Every strategy of this library on the same problems, counted alike: a forward is one evaluation of one canvas, whether
it drafts, looks ahead or verifies, and however many share a batch.

Settings come from validation problems alone. For each strategy the most accurate setting enters that takes at most a
third of greedy's forwards (*fast*), at most 9/20 of them (*middle*: half, with a tenth to spare, as test problems may
take a little more), at most as many (*careful*), and any number (*free*); where these are fewer than three, the next
most accurate follow. All methods then decode the same test problems.

Strategies run one after the other, perhaps on different days and machines; the settings of a strategy take turns. So
accuracy, forwards and steps can be compared across all of them, seconds only roughly, and only on the same machine. The
timing runs below the tables are there for that: in them a few methods take turns, chunk by chunk.

{SIGNS}

`make arena` decodes whatever has no results yet, `python -m benchmarks.arena --again` everything; `--tasks` and
`--strategies` limit either to a part. `python -m benchmarks.arena --show` makes this page from
[the results](results/arena).
"""

COLUMNS = """\
- *Accuracy* has its 95% interval (Wilson). *Forwards* and *steps* are means per problem; *rows* is forwards per step:
  how many canvases a problem has in a batch. *Tokens per forward* counts the tokens that were committed.
- *Seconds* are per problem, with the problems of a turn sharing batches of up to 32 rows; *speed-up* is greedy's time
  over the method's, where both ran on the same machine.
- *p* is McNemar's exact test on the same problems, with those gained and lost: against greedy (n=1), and against the
  careful setting of SOAR (K=2).
- *AUP*, accuracy under parallelism, is a strategy's weighted area under accuracy over tokens per forward, all of its
  settings together (Qian et al., 2026, arXiv:2601.07568). An accuracy counts less the further it is below the best of
  the task. Settings more than 5 points below the strategy's own slowest do not count at all, so a strategy that gains
  much from more forwards has a low AUP for it.
"""
HEAD = ("strategy", "setting", "chosen as", "accuracy", "forwards", "rows", "steps", "tokens per forward", "seconds")
MORE = ("speed-up", "p against greedy", "p against SOAR", "AUP")


def markdown(results: Sequence[TaskResult]) -> str:
    lines = [INTRODUCTION, *_made_with(results), "", "## In short", "", *short_section(results)]
    lines += ["", "## What the columns mean", "", COLUMNS.rstrip()]
    for result in results:
        lines += ["", f"## {result.task}", "", *task_section(result)]
    return "\n".join(lines) + "\n"


def _made_with(results: Sequence[TaskResult]) -> list[str]:
    """Where each model ran, each line once."""
    origins = [run.origin for result in results for run in result.runs.values()]
    runs = [Results(origin.settings, origin.machine, [], 0, 0) for origin in origins]
    return [wrapped(line) for line in dict.fromkeys(made_with(run) for run in runs)]


def wrapped(text: str) -> str:
    return fill(text, 120, break_on_hyphens=False)


def short_section(results: Sequence[TaskResult]) -> Iterator[str]:
    """For each task greedy (n=1), and of each other strategy the careful setting, then the middle one."""
    yield wrapped(
        "Accuracy and forwards per problem: greedy with one token per step, and of each other strategy the careful "
        "setting, the most accurate on validation problems with at most greedy's forwards. Strategies that take more "
        "at every setting have none. The best of a task is in bold."
    )
    yield ""
    yield from short_table(results, CAREFUL)
    yield ""
    yield "The same of the middle settings, which are to keep to half of greedy's forwards:"
    yield ""
    yield from short_table(results, MIDDLE)


def short_table(results: Sequence[TaskResult], bound: str) -> Iterator[str]:
    """Greedy, and the setting of each other strategy that this bound chose; the best of a task in bold."""
    present = {name for result in results for name in result.finished}
    names = [name for name in _order() if name in present]
    columns = [_short_column(result, bound) for result in results]
    rows = [[name, *(column.get(name, "") for column in columns)] for name in names]
    yield from table(["strategy", *(result.task for result in results)], (row for row in rows if any(row[1:])))


def _order() -> list[str]:
    """The strategies of all contests, in the order of tables."""
    return list(dict.fromkeys(grid.strategy for event in CONTESTS.values() for grid in grids(event)))


def _short_column(result: TaskResult, bound: str) -> dict[str, str]:
    picked = {strategy: result.picked(strategy, bound) for strategy in result.finished} | {GREEDY: BASELINE}
    found = {strategy: result.against(name, BASELINE) for strategy, name in picked.items() if name is not None}
    best = max(one.correct for one in found.values())
    return {strategy: _short_cell(one, "**" if one.correct == best else "") for strategy, one in found.items()}


def _short_cell(found: Summary, bold: str) -> str:
    return f"{bold}{found.accuracy:.1%}{sign(found)}{bold} at {found.forwards:.1f}"


def task_section(result: TaskResult) -> Iterator[str]:
    yield wrapped(
        f"{result.settings['model']}, {_problems(result.baseline)} test problems, a canvas of "
        f"{result.settings['canvas']}; settings from {result.validation:,} validation problems."
    )
    yield ""
    others = [f"{strategy} ({_problems(run)})" for strategy, run in result.unfinished.items() if strategy != GREEDY]
    if others:
        yield wrapped(
            f"Not finished: {', '.join(others)}. For these p compares the problems that both have decoded; the figure, "
            "AUP and the table in short leave them out."
        )
        yield ""
    yield f"![Accuracy over forwards and over seconds on {result.task}](figures/{figure_name(result.task)})"
    yield ""
    if len(result.computers) > 1:
        yield wrapped(f"Seconds were measured on {len(result.computers)} machines: {', '.join(_machines(result))}.")
        yield ""
    scores = aup(result)
    yield from table([*HEAD, *MORE], (_row(result, name, scores) for name in result.test))
    if result.timing:
        yield ""
        yield from timing_section(result)


def _problems(run: Run) -> str:
    return f"{run.done:,}" if run.complete else f"{run.done:,} of {run.wanted:,}"


def _machines(result: TaskResult) -> Iterator[str]:
    for computer in result.computers:
        greedy = "greedy's, " if computer == result.baseline.origin.computer else ""
        yield f"{_letter(result, computer)} ({greedy}{computer})"


def _letter(result: TaskResult, computer: str) -> str:
    return ascii_uppercase[result.computers.index(computer)]


def figure_name(task: str) -> str:
    return f"arena-{task}.svg"


def _row(result: TaskResult, name: str, scores: Mapping[str, float]) -> list[str]:
    found, (strategy, setting) = result.against(name, BASELINE), parts_of(name)
    soar = reference(result)
    first = next(iter(result.run_of(name).tallies)) == name
    speed_up = result.speed_up(name)
    return [
        strategy if first else "",
        setting,
        ", ".join(result.choice[strategy].get(setting, ())),
        rate(found) + sign(found),
        f"{found.forwards:.1f}",
        f"{found.forwards / found.steps:.2f}",
        f"{found.steps:.1f}",
        f"{found.tokens_per_forward:.2f}",
        _seconds(result, name),
        "" if speed_up is None else f"{speed_up:.2f}",
        "" if name == BASELINE else p_text(found),
        "" if soar in (None, name) else p_text(result.against(name, str(soar))),
        f"{scores[strategy]:.1f}" if first and strategy in scores else "",
    ]


def _seconds(result: TaskResult, name: str) -> str:
    """Seconds per problem, with the letter of the machine if there are several."""
    run = result.run_of(name)
    seconds = f"{run.tallies[name].seconds / run.done:.3f}"
    return seconds if len(result.computers) == 1 else f"{seconds} ({_letter(result, run.origin.computer)})"


def reference(result: TaskResult) -> str | None:
    """The SOAR that all others are tested against; None if it takes more forwards than greedy at every setting."""
    return result.picked(SOAR_2, CAREFUL)


def p_text(found: Summary) -> str:
    value = f"{found.p_value:.0e}" if found.p_value < 0.001 else f"{found.p_value:.3f}"
    return f"{value} (+{found.gained}/-{found.lost})"


def aup(result: TaskResult) -> dict[str, float]:
    """The AUP of each strategy that has finished; the best accuracy is that of any of their methods."""
    points = {name: result.against(name, BASELINE) for names in result.finished.values() for name in names}
    best = 100 * max(one.accuracy for one in points.values())
    return {
        strategy: accuracy_under_parallelism(
            [(points[name].tokens_per_forward, 100 * points[name].accuracy) for name in names], best
        )
        for strategy, names in result.finished.items()
    }


def timing_section(result: TaskResult) -> Iterator[str]:
    """Forwards and seconds as shares of greedy's in the same run, for each batch size."""
    counts = " and ".join(dict.fromkeys(_problems(run) for run in result.timing.values()))
    computers = " and ".join(dict.fromkeys(run.origin.computer for run in result.timing.values()))
    where = "" if [computers] == result.computers else f" ({computers})"
    yield wrapped(
        f"Time beside forwards on {counts} problems{where}, decoded in turns, both as shares of greedy's in the same "
        "run. A batch has at most that many rows. It empties at the end of a turn, earlier for methods whose problems "
        "differ in how long they take; their forwards then share their fixed costs with fewer others."
    )
    yield ""
    head = ["method"]
    for rows in result.timing:
        head += [f"forwards, batch {rows}", f"seconds, batch {rows}"]
    methods = dict.fromkeys(name for run in result.timing.values() for name in run.tallies)
    yield from table(head, ([name, *_shares(result.timing.values(), name)] for name in methods))


def _shares(runs: Iterable[Run], name: str) -> Iterator[str]:
    for run in runs:
        tally, greedy = run.tallies.get(name), run.tallies[BASELINE]
        yield "" if tally is None else f"{tally.forwards / greedy.forwards:.2f}"
        yield "" if tally is None else f"{tally.seconds / greedy.seconds:.2f}"


def figures(result: TaskResult) -> dict[str, Any]:
    """Everything the page shows of a task, and where it comes from; methods are tested against all settings of SOAR."""
    rivals = list(result.runs[SOAR_2].tallies) if SOAR_2 in result.runs else []
    return {
        "origins": {strategy: asdict(run.origin) for strategy, run in result.runs.items()},
        "problems": result.baseline.done,
        "validation": result.validation,
        "trials": {
            strategy: {setting: asdict(one) for setting, one in standing.validation.trials.items()}
            for strategy, standing in result.strategies.items()
        },
        "chosen": result.choice,
        "soar": reference(result),
        "aup": aup(result),
        "methods": {
            name: {
                **result.against(name, BASELINE).as_dict(),
                "speed_up": result.speed_up(name),
                "against_soar": {other: _tested(result.against(name, other)) for other in rivals if other != name},
            }
            for name in result.test
        },
        "timing": {str(rows): _ratios(run) for rows, run in result.timing.items()},
    }


def _tested(found: Summary) -> dict[str, Any]:
    return {"gained": found.gained, "lost": found.lost, "p_value": found.p_value}


def _ratios(run: Run) -> dict[str, Any]:
    greedy = run.tallies[BASELINE]
    return {
        "origin": asdict(run.origin),
        "methods": {
            name: {
                "problems": len(one.solved),
                "forwards": one.forwards,
                "seconds": one.seconds,
                "forwards_of_greedy": one.forwards / greedy.forwards,
                "seconds_of_greedy": one.seconds / greedy.seconds,
            }
            for name, one in run.tallies.items()
        },
    }
