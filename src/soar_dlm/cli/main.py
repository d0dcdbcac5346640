"""The command's entry point: subcommands, and errors as one sentence instead of a stack trace."""

from __future__ import annotations

import sys
from typing import Annotated, Optional

import typer

from soar_dlm import __version__
from soar_dlm.cli.evaluate import evaluate
from soar_dlm.cli.generate import generate
from soar_dlm.cli.infill import infill
from soar_dlm.cli.models import models
from soar_dlm.cli.sweep import sweep, tune
from soar_dlm.cli.table import table
from soar_dlm.cli.train import train
from soar_dlm.errors import SoarError

app = typer.Typer(
    name="soar",
    help="Decode diffusion language models with search: better text where the model is unsure, speed where it is sure.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(generate)
app.command()(infill)
app.command()(models)
app.command()(train)
app.command("eval")(evaluate)
app.command()(table)
app.command()(sweep)
app.command()(tune)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"soar-dlm {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        Optional[bool], typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = None,
) -> None:
    pass


def main() -> None:
    try:
        app()
    except SoarError as error:
        typer.secho("error: ", fg="red", bold=True, err=True, nl=False)
        typer.echo(str(error), err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
