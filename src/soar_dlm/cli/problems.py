"""The tasks that a command measures on, and their problems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer
from rich.console import Console
from rich.text import Text

from soar_dlm import checks
from soar_dlm.cli.loading import status
from soar_dlm.errors import SettingsError

if TYPE_CHECKING:
    from soar_dlm.tasks.problem import Problem, Split
    from soar_dlm.tasks.task import Task

DataDir = Annotated[
    Optional[Path], typer.Option(help="Folder with the files of published benchmarks. Default: the Hub.")
]
Protocol = Annotated[str, typer.Option(help="'paper' decodes the full canvas, 'library' stops where the text ends.")]
Chunk = Annotated[int, typer.Option(help="Problems that a method decodes in one turn.")]
Repair = Annotated[
    bool, typer.Option("--repair", help="Move damaged lines of the results aside, and decode their problems again.")
]
AllowCode = Annotated[
    bool, typer.Option("--allow-code-execution", help="Run what the model writes, which judging code tasks needs.")
]

UnsafeSandbox = Annotated[
    bool, typer.Option("--unsafe-sandbox", help="Run it even where it cannot be kept from your files and processes.")
]


def prepared(name: str, data_dir: Path | None, allow_code: bool, console: Console, unsafe: bool = False) -> Task:
    """The task called ``name``; one that runs the model's code is refused unless that is allowed and safe."""
    from soar_dlm.tasks.catalogue import make_task

    task = make_task(name, data_dir)
    if task.runs_code:
        from soar_dlm.tasks.sandbox.consent import require_consent

        require_consent(task.name, allowed=allow_code, unsafe=unsafe)
        show_missing_walls(console)
    return task


def problems_of(task: Task, split: Split, limit: int | None) -> list[Problem]:
    """The first problems of a split, or without a limit the whole test set.

    Problems that are drawn one by one could be asked for without end, so there is a bound.
    """
    from soar_dlm.tasks.fixed_sets import MOST
    from soar_dlm.tasks.published import PublishedTask

    if limit is not None:
        checks.whole_number("limit", limit, 1)
        if limit > MOST and not isinstance(task, PublishedTask):
            raise SettingsError(f"--limit is {limit:,}, more than the {MOST:,} problems that can be drawn at once.")
    with status(f"Getting the problems of {task.name} ..."):
        return task.test_set() if limit is None else task.distinct(split, limit)


def show_missing_walls(console: Console) -> None:
    """Say which protections against model-written code this system does not offer."""
    from soar_dlm.tasks.execution import missing_walls
    from soar_dlm.tasks.sandbox.walls import WALLS

    missing = [WALLS[wall] for wall in WALLS if wall in missing_walls()]
    if missing:
        head = ("Not possible on this system for model-written code:", "yellow")
        console.print(Text.assemble(head, f" {'; '.join(missing)}."))
