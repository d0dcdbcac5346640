"""``soar table``: the paper's tables from result folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from soar_dlm.cli.loading import import_library

if TYPE_CHECKING:
    from soar_dlm.evals.tables import Cell, Grid


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
    """Accuracy, interval and speed on separate lines, so that six columns fit into a narrow terminal."""
    from soar_dlm.evals.tables import accuracy_text, area_text, curve_rows, details, interval_text, label_of, notes

    shown = Table(box=SIMPLE_HEAD, title=Text(made.model))
    shown.add_column("method", no_wrap=True)
    for column in made.columns:
        title = "\n".join(part for part in (column.task, str(column.length), column.decoding) if part)
        shown.add_column(Text(title), justify="right", overflow="fold")
    for row in made.rows:
        found = [made.cells.get((row, column)) for column in made.columns]
        lines: list[tuple[str, Callable[[Cell], str], str]] = [
            (label_of(row), accuracy_text, ""),
            ("", interval_text, "dim"),
        ]
        lines += [(f"  {title}", text, "cyan") for title, text in details(row)]
        for title, text, style in lines:
            cells = (Text("" if cell is None else text(cell)) for cell in found)
            shown.add_row(Text(title), *cells, style=style)
    for row in curve_rows(made):
        areas = [made.areas.get((row, column)) for column in made.columns]
        cells = (Text("" if area is None else area_text(area)) for area in areas)
        shown.add_row(Text(f"AUP, {label_of(row)}"), *cells)
    console.print(shown)
    for note in notes(made):
        console.print(note, markup=False, highlight=False)
