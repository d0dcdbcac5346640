"""How far a long run has come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from soar_dlm.evals.results import Record


@contextmanager
def bar(title: str, total: int, console: Console) -> Iterator[Callable[[Record], None]]:
    """A bar with accuracy, forwards and time left, and a summary at its end; call what it yields with each record.

    Without a terminal, such as in the log of a job, it prints a line for every tenth of the records.
    """
    done, right, forwards = Counter[str](), Counter[str](), Counter[str]()

    def rates(name: str) -> str:
        return f"{name}: {right[name] / done[name]:.1%}, {forwards[name] / done[name]:.1f} forwards"

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[rates]}", markup=False),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        shown = progress.add_task(title, total=total, rates="")

        def count(record: Record) -> None:
            done[record.method] += 1
            right[record.method] += record.correct
            forwards[record.method] += record.forwards
            progress.update(shown, advance=1, rates=rates(record.method))
            so_far = done.total()
            if not console.is_terminal and so_far * 10 // total > (so_far - 1) * 10 // total:
                console.print(f"{title}: {so_far} of {total}; {rates(record.method)}", soft_wrap=True, markup=False)

        yield count
    for name, problems in done.items():
        console.print(f"{title}, {rates(name)} each, {problems} problems", soft_wrap=True, markup=False)


@contextmanager
def prompts_bar(console: Console, done: int, total: int) -> Iterator[Callable[[], None]]:
    """A bar of prompts, in a terminal only; call what it yields for each that is done."""
    columns = (TextColumn("decoding"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        shown = progress.add_task("decoding", total=total, completed=done)
        yield lambda: progress.advance(shown)
