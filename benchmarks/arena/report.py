"""The arena's page and its figures as data, from results alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from textwrap import fill
from typing import Any

from benchmarks.arena.choice import CAREFUL
from benchmarks.arena.entrants import BASELINE, GREEDY, SOAR_2, parts_of
from benchmarks.arena.tallies import Tally, TaskResult
from soar_dlm.evals.aup import accuracy_under_parallelism
from soar_dlm.evals.comparison import Summary
from soar_dlm.evals.reports import SIGNS, made_with, rate, table
from soar_dlm.evals.results import Results
from soar_dlm.evals.tables import sign

INTRODUCTION = f"""\
# The arena

Every strategy of this library on the same problems, counted alike: a forward is one evaluation of one canvas, whether
it drafts, looks ahead or verifies, and however many share a batch.

Settings come from validation problems alone. For each strategy the most accurate setting enters that takes at most 1/3
of greedy's forwards (*fast*), at most 2/3 (*middle*), at most as many (*careful*), and any number (*free*); where these
are fewer than three, the next most accurate follow. All methods then decode the same test problems in turns.

{SIGNS}

`make arena` decodes everything again; `python -m benchmarks.arena --show` makes this page from
[the results](results/arena).
"""

COLUMNS = """\
- *Accuracy* has its 95% interval (Wilson). *Forwards* and *steps* are means per problem; *rows* is forwards per step:
  how many canvases a problem has in a batch. *Tokens per forward* counts the tokens that were committed.
- *Seconds* are per problem, with the problems of a turn sharing batches of up to 32 rows; *speed-up* is greedy's time
  over the method's.
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
    runs = [Results(result.settings, result.machine, [], 0, 0) for result in results]
    return [wrapped(line) for line in dict.fromkeys(made_with(run) for run in runs)]


def wrapped(text: str) -> str:
    return fill(text, 120, break_on_hyphens=False)


def short_section(results: Sequence[TaskResult]) -> Iterator[str]:
    """For each task greedy (n=1), and the careful setting of each other strategy; the best of a task in bold."""
    yield wrapped(
        "Accuracy and forwards per problem: greedy with one token per step, and of each other strategy the careful "
        "setting, the most accurate on validation problems with at most greedy's forwards. Strategies that take more "
        "at every setting have none."
    )
    yield ""
    names = dict.fromkeys(name for result in results for name in result.strategies())
    columns = [_short_column(result) for result in results]
    rows = [[name, *(column.get(name, "") for column in columns)] for name in names]
    yield from table(["strategy", *(result.task for result in results)], rows)


def _short_column(result: TaskResult) -> dict[str, str]:
    picked = {strategy: result.picked(strategy, CAREFUL) for strategy in result.strategies()} | {GREEDY: BASELINE}
    found = {strategy: result.against(name, BASELINE) for strategy, name in picked.items() if name is not None}
    best = max(one.correct for one in found.values())
    return {strategy: _short_cell(one, "**" if one.correct == best else "") for strategy, one in found.items()}


def _short_cell(found: Summary, bold: str) -> str:
    return f"{bold}{found.accuracy:.1%}{sign(found)}{bold} at {found.forwards:.1f}"


def task_section(result: TaskResult) -> Iterator[str]:
    wanted, count = result.settings["problems"], result.problems
    shown = f"{count:,}" if count == wanted else f"{count:,} of {wanted:,}"
    yield wrapped(
        f"{result.settings['model']}, {shown} test problems, a canvas of {result.settings['canvas']}; settings from "
        f"{result.validation:,} validation problems."
    )
    yield ""
    yield f"![Accuracy over forwards and over seconds on {result.task}](figures/{figure_name(result.task)})"
    yield ""
    scores = aup(result)
    yield from table([*HEAD, *MORE], (_row(result, name, scores) for name in result.test))
    if result.timing:
        yield ""
        yield from timing_section(result)


def figure_name(task: str) -> str:
    return f"arena-{task}.svg"


def _row(result: TaskResult, name: str, scores: Mapping[str, float]) -> list[str]:
    found, (strategy, setting) = result.against(name, BASELINE), parts_of(name)
    soar = reference(result)
    first = result.strategies()[strategy][0] == name
    return [
        strategy if first else "",
        setting,
        ", ".join(result.choice[strategy].get(setting, ())),
        rate(found) + sign(found),
        f"{found.forwards:.1f}",
        f"{found.forwards / found.steps:.2f}",
        f"{found.steps:.1f}",
        f"{found.tokens_per_forward:.2f}",
        f"{found.seconds / found.problems:.3f}",
        f"{found.speed_up:.2f}",
        "" if name == BASELINE else p_text(found),
        "" if soar in (None, name) else p_text(result.against(name, str(soar))),
        f"{scores[strategy]:.1f}" if first else "",
    ]


def reference(result: TaskResult) -> str | None:
    """The SOAR that all others are tested against; None if it takes more forwards than greedy at every setting."""
    return result.picked(SOAR_2, CAREFUL)


def p_text(found: Summary) -> str:
    value = f"{found.p_value:.0e}" if found.p_value < 0.001 else f"{found.p_value:.3f}"
    return f"{value} (+{found.gained}/-{found.lost})"


def aup(result: TaskResult) -> dict[str, float]:
    """The AUP of each strategy; the best accuracy is that of any method on the task."""
    points = {name: result.against(name, BASELINE) for name in result.test}
    best = 100 * max(one.accuracy for one in points.values())
    return {
        strategy: accuracy_under_parallelism(
            [(points[name].tokens_per_forward, 100 * points[name].accuracy) for name in names], best
        )
        for strategy, names in result.strategies().items()
    }


def timing_section(result: TaskResult) -> Iterator[str]:
    """Forwards and seconds as shares of greedy's in the same run, for each batch size."""
    count = len(next(iter(result.timing.values()))[BASELINE].solved)
    yield wrapped(
        f"Time beside forwards on {count} problems, both as shares of greedy's in the same run. A batch has at most "
        "that many rows."
    )
    yield ""
    head = ["method"]
    for rows in result.timing:
        head += [f"forwards, batch {rows}", f"seconds, batch {rows}"]
    methods = dict.fromkeys(name for own in result.timing.values() for name in own)
    yield from table(head, ([name, *_shares(result.timing.values(), name)] for name in methods))


def _shares(runs: Iterable[Mapping[str, Tally]], name: str) -> Iterator[str]:
    for own in runs:
        tally, greedy = own.get(name), own[BASELINE]
        yield "" if tally is None else f"{tally.forwards / greedy.forwards:.2f}"
        yield "" if tally is None else f"{tally.seconds / greedy.seconds:.2f}"


def figures(result: TaskResult) -> dict[str, Any]:
    """Everything the page shows of a task, and where it comes from; methods are tested against all settings of SOAR."""
    rivals = result.strategies().get(SOAR_2, [])
    return {
        "settings": result.settings,
        "machine": result.machine,
        "library": result.library,
        "problems": result.problems,
        "validation": result.validation,
        "trials": {
            strategy: {setting: asdict(one) for setting, one in own.items()} for strategy, own in result.trials.items()
        },
        "chosen": result.choice,
        "soar": reference(result),
        "aup": aup(result),
        "methods": {
            name: {
                **result.against(name, BASELINE).as_dict(),
                "against_soar": {other: _tested(result.against(name, other)) for other in rivals if other != name},
            }
            for name in result.test
        },
        "timing": {str(rows): _ratios(own) for rows, own in result.timing.items()},
    }


def _tested(found: Summary) -> dict[str, Any]:
    return {"gained": found.gained, "lost": found.lost, "p_value": found.p_value}


def _ratios(own: Mapping[str, Tally]) -> dict[str, Any]:
    greedy = own[BASELINE]
    return {
        name: {
            "problems": len(one.solved),
            "forwards": one.forwards,
            "seconds": one.seconds,
            "forwards_of_greedy": one.forwards / greedy.forwards,
            "seconds_of_greedy": one.seconds / greedy.seconds,
        }
        for name, one in own.items()
    }
