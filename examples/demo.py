"""A first look: a small diffusion language model at work, and what searching over the order of its words buys.

The model, mini-llada, comes with the package in LLaDA's on-disk layout. It solves held-out problems of three kinds,
decoded by greedy, adaptive parallel, position beam search and SOAR side by side.
"""

from __future__ import annotations

import time

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import soar_dlm as soar

MODEL = "mini-llada"
TASKS = ("mini-gsm", "mini-code", "mini-sudoku")
PROBLEMS = 16
THRESHOLD = 0.99  # small models are surer than they should be: above the paper's 0.9
STRATEGIES = {
    "greedy": soar.Greedy(),
    "adaptive": soar.AdaptiveParallel(threshold=THRESHOLD),
    "PBS, K=2": soar.PositionBeam(beam=2),
    "SOAR, K=2": soar.Soar(beam=2, threshold=THRESHOLD),
}


def watch(lm: soar.LM, task: soar.Task, problem: soar.Problem, console: Console) -> None:
    """A canvas filling up, a line for every few steps."""
    console.print(f"[dim]{escape(problem.prompt.strip())}[/dim]\n", highlight=False)
    for event in lm.stream(problem.prompt, STRATEGIES["SOAR, K=2"], max_new_tokens=task.canvas):
        if event.result is not None or event.step % 3 == 1:
            line = event.text.rstrip("░").replace("\n", " / ")
            console.print(f"  step {event.step:2}  {escape(line)}", highlight=False, no_wrap=True, overflow="ellipsis")


def compare(lm: soar.LM, task: soar.Task, table: Table) -> None:
    """One row per strategy: how many of the same problems it solves, and at what cost."""
    problems = task.distinct("test", PROBLEMS)
    for name, strategy in STRATEGIES.items():
        started = time.perf_counter()
        results = lm.generate([problem.prompt for problem in problems], strategy, max_new_tokens=task.canvas)
        seconds = time.perf_counter() - started
        right = sum(task.all_correct(problems, [result.text for result in results]))
        forwards = sum(result.forwards for result in results)
        committed = sum(result.tokens_per_forward * result.forwards for result in results)
        table.add_row(
            task.name if name == "greedy" else "",
            name,
            f"{right} of {len(problems)}",
            f"{forwards / len(results):.1f}",
            f"{committed / forwards:.2f}",
            f"{seconds:.1f}",
            end_section=strategy is list(STRATEGIES.values())[-1],
        )


def main() -> None:
    console = Console()
    lm = soar.load(MODEL)
    first = soar.make_task(TASKS[0])
    console.print(f"[bold]{MODEL}[/bold] writes on a masked canvas, in the order SOAR finds:\n", highlight=False)
    watch(lm, first, first.distinct("test", 1)[0], console)

    table = Table(box=SIMPLE_HEAD)
    for column in ("task", "strategy"):
        table.add_column(column)
    for column in ("solved", "forwards", "tokens/forward", "seconds"):
        table.add_column(column, justify="right")
    console.print(f"\n{PROBLEMS} held-out problems of each task, decoded by each strategy ...", highlight=False)
    for name in TASKS:
        compare(lm, soar.make_task(name), table)
    console.print(table)
    console.print(
        "Forwards are model evaluations per problem. All 1,000 problems of each task: docs/results/table1/table1.md\n"
        "Next: soar generate -m mini-llada -n 56 --watch "
        '"Eva wins 10 stickers. Eva finds 18 more stickers. Eva sells 3 stickers. '
        'How many stickers does Eva have now?"',
        highlight=False,
        soft_wrap=True,
    )


if __name__ == "__main__":
    main()
