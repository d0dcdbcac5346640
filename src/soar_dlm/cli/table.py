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

if TYPE_CHECKING:
    from soar_dlm.evals.tables import Grid


def table(
    results: Annotated[list[Path], typer.Argument(help="Folders written by 'soar eval'.")],
    kind: Annotated[
        Optional[int],
        typer.Option("--table", help="1: methods, 2: other metrics, 3: infilling by exact match. Default: everything."),
    ] = None,
    style: Annotated[str, typer.Option("--format", help="terminal, markdown, latex, html or json.")] = "terminal",
) -> None:
    """Show results as the paper's tables, with intervals, significance, and the paper's own figures in brackets."""
    import_library()
    from soar_dlm.evals.tables import read_table, rendered

    made = read_table(*results, number=kind)
    if style == "terminal":
        show(made, Console())
    else:
        typer.echo(rendered(made, style), nl=False)


def show(made: Grid, console: Console) -> None:
    """Accuracy, interval and speed-up on separate lines, so that six columns fit into a narrow terminal."""
    from soar_dlm.evals.manifest import GREEDY
    from soar_dlm.evals.tables import accuracy_text, interval_text, label_of, notes, speed_text

    shown = Table(box=SIMPLE_HEAD, title=Text(made.model))
    shown.add_column("method", no_wrap=True)
    for column in made.columns:
        shown.add_column(Text(f"{column.task}\n{column.length}"), justify="right", overflow="fold")
    for row in made.rows:
        found = [made.cells.get((row, column)) for column in made.columns]
        lines = [(label_of(row), accuracy_text, ""), ("", interval_text, "dim")]
        if row.label != GREEDY:
            lines.append(("  SpeedUp", speed_text, "cyan"))
        for title, text, style in lines:
            cells = (Text("" if cell is None else text(cell)) for cell in found)
            shown.add_row(Text(title), *cells, style=style)
    console.print(shown)
    for note in notes(made):
        console.print(note, markup=False, highlight=False)
