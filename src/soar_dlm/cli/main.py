"""The command's entry point: subcommands, and errors as one sentence instead of a stack trace."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Optional, TextIO

import typer
from rich.console import Console
from rich.text import Text

from soar_dlm import __version__
from soar_dlm.cli.chat import chat
from soar_dlm.cli.evaluate import evaluate
from soar_dlm.cli.generate import generate
from soar_dlm.cli.infill import infill
from soar_dlm.cli.models import models
from soar_dlm.cli.strategies import strategies
from soar_dlm.cli.sweep import sweep
from soar_dlm.cli.table import table
from soar_dlm.cli.tasks import tasks
from soar_dlm.cli.train import train
from soar_dlm.cli.tune import tune
from soar_dlm.errors import SoarError

app = typer.Typer(
    name="soar",
    help="Decode diffusion language models with search: better text where the model is unsure, speed where it is sure.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    "Write": {"generate": generate, "chat": chat, "infill": infill},
    "Measure and tune": {"eval": evaluate, "table": table, "sweep": sweep, "tune": tune},
    "Train": {"train": train},
    "Look up": {"models": models, "strategies": strategies, "tasks": tasks},
}
for panel, commands in _COMMANDS.items():
    for name, command in commands.items():
        app.command(name, rich_help_panel=panel)(command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"soar-dlm {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        Optional[bool],
        typer.Option("--version", "-V", help="Show the version and exit.", callback=_version, is_eager=True),
    ] = None,
) -> None:
    pass


def say(word: str, message: str, style: str) -> None:
    """``word: message`` on standard error; the word has a colour in a terminal that shows colours."""
    text = Text.assemble((f"{word}:", style), " ", message)
    Console(stderr=True, highlight=False).print(text, soft_wrap=True)


_PACKAGE = str(Path(__file__).parents[1])
_show_foreign_warning = warnings.showwarning


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Our own warnings are sentences for the user, who need not know which line of the source they come from."""
    if filename.startswith(_PACKAGE):
        say("warning", str(message), "bold yellow")
    else:
        _show_foreign_warning(message, category, filename, lineno, file, line)


def main() -> None:
    warnings.showwarning = _show_warning
    try:
        app()
    except SoarError as error:
        say("error", str(error), "bold red")
        sys.exit(1)


if __name__ == "__main__":
    main()
