"""``soar table``: the paper's tables from result folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from soar_dlm.cli.loading import import_library
from soar_dlm.errors import SettingsError

if TYPE_CHECKING:
    from soar_dlm.evals.tables import Grid, Judge

KINDS: dict[int, tuple[Judge, tuple[str, ...] | None]] = {
    1: ("correct", ("probability",)),
    2: ("correct", ("margin", "neg_entropy")),
    3: ("exact", None),
}
"""The tables of the paper: how answers are judged, and which metrics they show."""


def table(
    results: Annotated[list[Path], typer.Argument(help="Folders written by 'soar eval'.")],
    kind: Annotated[
        Optional[int],
        typer.Option("--table", help="1: methods, 2: other metrics, 3: infilling by exact match. Default: everything."),
    ] = None,
    style: Annotated[str, typer.Option("--format", help="terminal, markdown, latex or json.")] = "terminal",
) -> None:
    """Show results as the paper's tables, with intervals, significance, and the paper's own figures in brackets."""
    import_library()
    from soar_dlm.evals.results import ResultFolder, result_folders
    from soar_dlm.evals.tables import grid, rendered

    if kind is not None and kind not in KINDS:
        raise SettingsError(f"--table is 1, 2 or 3, not {kind}.")
    judge: Judge = "correct"
    metrics: tuple[str, ...] | None = None
    if kind is not None:
        judge, metrics = KINDS[kind]
    runs = [ResultFolder(folder).read() for folder in result_folders(results)]
    if kind == 3:
        runs = [run for run in runs if any(record.exact is not None for record in run.records)]
    made = grid(runs, judge, metrics) if runs else None
    if made is None or not made.cells:
        wanted = "to show" if kind is None else f"for Table {kind}"
        raise SettingsError(
            f"These results have nothing {wanted} yet: a table needs at least one chunk of problems that all methods "
            "have decoded."
        )
    if style == "terminal":
        show(made, Console())
    else:
        typer.echo(rendered(made, style), nl=False)


def show(made: Grid, console: Console) -> None:
    """Accuracy, interval and speed-up on separate lines, so that six columns fit into a narrow terminal."""
    from soar_dlm.evals.tables import GREEDY, accuracy_text, interval_text, notes, speed_text

    shown = Table(box=SIMPLE_HEAD, title=Text(made.model))
    shown.add_column("method", no_wrap=True)
    for column in made.columns:
        shown.add_column(Text(f"{column.task}\n{column.length}"), justify="right", overflow="fold")
    for row in made.rows:
        found = [made.cells.get((row, column)) for column in made.columns]
        label = row.label if row.metric == "probability" else f"{row.label} ({row.metric})"
        lines = [(label, accuracy_text, ""), ("", interval_text, "dim")]
        if row.label != GREEDY:
            lines.append(("  SpeedUp", speed_text, "cyan"))
        for title, text, style in lines:
            cells = (Text("" if cell is None else text(cell)) for cell in found)
            shown.add_row(Text(title), *cells, style=style)
    console.print(shown)
    for note in notes(made):
        console.print(note, markup=False, highlight=False)
