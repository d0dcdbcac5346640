"""``soar plot``: the paper's figures from result folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from soar_dlm.cli import completion
from soar_dlm.cli.lists import listed
from soar_dlm.cli.loading import import_library
from soar_dlm.errors import SettingsError, UnknownName
from soar_dlm.plots import FIGURES

ALL = "all"


def plot(
    name: Annotated[
        str,
        typer.Argument(
            help=f"{', '.join(FIGURES)}, or {ALL}.",
            autocompletion=completion.figures,
        ),
    ],
    results: Annotated[list[Path], typer.Argument(help="Folders written by 'soar eval' or 'soar sweep'.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the figures; made if need be.")] = Path(),
    formats: Annotated[str, typer.Option("--format", help="svg, png, pdf; separate several by commas.")] = "svg",
    dark: Annotated[
        bool, typer.Option("--dark", help="Draw for dark pages. A light SVG follows the reader's own setting.")
    ] = False,
) -> None:
    """Draw the paper's figures from results and traces, each with its data as CSV beside it.

    For example: [cyan]soar eval -m mini-llada -t mini-gsm --traces -o results[/cyan], then
    [cyan]soar plot all results -o figures[/cyan]
    """
    import_library()
    from soar_dlm import files
    from soar_dlm.evals.runs import read_runs
    from soar_dlm.plots.catalogue import pictures
    from soar_dlm.plots.figure import Picture
    from soar_dlm.plots.runs import NothingToDraw
    from soar_dlm.plots.style import DARK, FORMATS, LIGHT, Theme, check_drawable

    check_drawable()
    if name not in (*FIGURES, ALL):
        raise UnknownName("figure called", name, (*FIGURES, ALL))
    kinds = [kind.lower().removeprefix(".") for kind in listed(formats)]
    for kind in kinds:
        if kind not in FORMATS:
            raise UnknownName("format called", kind, FORMATS)
    if not kinds:
        raise SettingsError("Name at least one format.")
    console, theme = Console(stderr=True, highlight=False), Theme(DARK if dark else LIGHT)
    found = pictures(FIGURES if name == ALL else [name], read_runs(results))
    drawn = {file: one for file, one in found.items() if isinstance(one, Picture)}
    missing = [one for one in found.values() if isinstance(one, NothingToDraw)]
    if not drawn:
        raise SettingsError("\n".join(map(str, missing)))
    with files.explained("write", output):
        output.mkdir(parents=True, exist_ok=True)
    for file, picture in drawn.items():
        for kind in kinds:
            picture.write(output / f"{file}.{kind}", theme)
        picture.write_csv(output / f"{file}.csv")
        console.print(f"{file}: {', '.join(kinds)}, csv", markup=False)
    for reason in missing:
        console.print(f"Left out: {reason}", markup=False, style="dim")
