"""A first look at what searching buys: a small diffusion language model solves sudokus, decoded in four ways.

The model, mini-llada, comes with the package in LLaDA's on-disk layout. The usual way to decode it, greedy, writes one
token per step. Writing two per step halves the time and costs accuracy. SOAR writes many tokens where the model is sure
and searches where it is not. Deliberate writes a draft, masks parts of it again to see whether they hold, and tries
other tokens if they do not.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.columns import Columns
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import soar_dlm as soar

MODEL, TASK, PROBLEMS = "mini-llada", "mini-sudoku", 100
GREEDY, TWO, SOAR, DELIBERATE = "greedy", "greedy, two tokens per step", "SOAR", "Deliberate"


def grid(title: str, text: str, solution: str | None = None) -> Text:
    """A sudoku under a title, with the cells that differ from the solution marked."""
    shown = Text(f"{title}\n", style="bold")
    right = solution.split() if solution is not None else text.split()
    for row in range(6):
        for written, wanted in zip(text.split()[6 * row : 6 * row + 6], right[6 * row : 6 * row + 6], strict=False):
            shown.append(written, style="not bold" if written == wanted else "bold red reverse").append(" ")
        shown.append("\n" if row < 5 else "")
    return shown


def watch(lm: soar.LM, task: soar.Task, problem: soar.Problem, console: Console) -> None:
    """The canvas after each of the first steps, side by side."""
    givens = problem.prompt.removeprefix("Sudoku").removesuffix("Solution")
    frames = [grid("the puzzle", givens)]
    for event in lm.stream(problem.prompt, max_new_tokens=task.canvas):
        lines = [" ".join(line.replace(" ", "")) for line in event.text.strip("\n").split("\n")[:6]]
        if event.step in (1, 3, 5) or event.result is not None:
            frames.append(Text(f"step {event.step}\n", style="bold").append("\n".join(lines), style="not bold"))
    console.print(Padding(Columns(frames, padding=(0, 4)), (1, 2)))


def compare(lm: soar.LM, task: soar.Task, problems: Sequence[soar.Problem], console: Console) -> dict[str, list[str]]:
    """A table of what each way of decoding solves and costs; returns the answers."""
    strategies = {
        GREEDY: soar.Greedy(),
        TWO: soar.Greedy(tokens_per_step=2),
        SOAR: lm.strategy("soar"),
        DELIBERATE: lm.strategy("deliberate"),
    }
    table = Table(box=SIMPLE_HEAD)
    for name, side in (
        ("decoded by", "left"),
        ("solved", "right"),
        ("forwards per puzzle", "right"),
        ("seconds", "right"),
    ):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    answers = {}
    for name, strategy in strategies.items():
        started = time.perf_counter()
        with console.status(f"{len(problems)} sudokus, decoded by {name} ..."):
            prompts = [problem.prompt for problem in problems]
            results = lm.generate(prompts, strategy, max_new_tokens=task.canvas, trace=False)
        seconds = time.perf_counter() - started
        answers[name] = [result.text for result in results]
        solved = sum(task.all_correct(problems, answers[name]))
        forwards = sum(result.forwards for result in results) / len(results)
        table.add_row(name, f"{solved} of {len(problems)}", f"{forwards:.1f}", f"{seconds:.1f}")
    console.print(table)
    return answers


def show_difference(
    task: soar.Task, problems: Sequence[soar.Problem], answers: dict[str, list[str]], console: Console
) -> None:
    """A puzzle that Deliberate solves and greedy does not, and how many of these and of the opposite there are."""
    greedy, searched = (task.all_correct(problems, answers[name]) for name in (GREEDY, DELIBERATE))
    gained = [place for place, pair in enumerate(zip(greedy, searched, strict=True)) if pair == (False, True)]
    lost = sum(pair == (True, False) for pair in zip(greedy, searched, strict=True))
    console.print(
        f"Deliberate solves {len(gained)} puzzles that greedy does not; greedy solves {lost} that it does not."
    )
    if gained:
        place = gained[0]
        problem = problems[place]
        givens = problem.prompt.removeprefix("Sudoku").removesuffix("Solution")
        frames = [grid("one of them", givens)]
        frames += [grid(name, answers[name][place], problem.answer) for name in (GREEDY, DELIBERATE)]
        console.print(Padding(Columns(frames, padding=(0, 4)), (1, 2)))


def main() -> None:
    console = Console(highlight=False)
    lm = soar.load(MODEL)
    task = soar.make_task(TASK)
    problems = task.distinct("test", PROBLEMS)
    console.print(f"[bold]{MODEL}[/bold] writes on a masked canvas, in the order SOAR finds:")
    watch(lm, task, problems[0], console)
    answers = compare(lm, task, problems, console)
    show_difference(task, problems, answers, console)
    console.print("Every strategy on 1,000 puzzles, and on three other tasks: docs/arena.md", soft_wrap=True)
    console.print(
        "Next: soar generate -m mini-llada -n 56 --watch "
        '"Eva wins 10 stickers. Eva finds 18 more stickers. Eva sells 3 stickers. '
        'How many stickers does Eva have now?"',
        soft_wrap=True,
    )


if __name__ == "__main__":
    main()
