"""The command's entry point: subcommands, and errors as one sentence instead of a stack trace."""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn, Optional, TextIO

import typer

from soar_dlm import __version__
from soar_dlm.cli.batch import batch
from soar_dlm.cli.bench import bench
from soar_dlm.cli.chat import chat
from soar_dlm.cli.evaluate import evaluate
from soar_dlm.cli.generate import generate
from soar_dlm.cli.infill import infill
from soar_dlm.cli.models import models
from soar_dlm.cli.plot import plot
from soar_dlm.cli.ray import RayCommand
from soar_dlm.cli.report import report
from soar_dlm.cli.screen import say
from soar_dlm.cli.serve import serve
from soar_dlm.cli.strategies import strategies
from soar_dlm.cli.sweep import sweep
from soar_dlm.cli.table import table
from soar_dlm.cli.tasks import tasks
from soar_dlm.cli.torchrun import nothing_to_do
from soar_dlm.cli.trace import trace
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
    "Write": {"generate": generate, "batch": batch, "chat": chat, "infill": infill},
    "Serve": {"serve": serve},
    "Measure and tune": {"eval": evaluate, "table": table, "sweep": sweep, "tune": tune, "bench": bench},
    "See": {"plot": plot, "report": report, "trace": trace},
    "Train": {"train": train},
    "Look up": {"models": models, "strategies": strategies, "tasks": tasks},
}
for panel, commands in _COMMANDS.items():
    for name, command in commands.items():
        app.command(name, rich_help_panel=panel, cls=RayCommand)(command)


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
    """Run the command. Whatever goes wrong is one sentence and an exit code, and what was begun is tidied up.

    SOAR_TRACEBACK=1 shows where in the source an error comes from.
    """
    warnings.showwarning = _show_warning
    _speak_utf8()
    _end_tidily()
    if os.environ.get("SOAR_TRACEBACK"):
        _run()
        return
    try:
        _run()
    except SystemExit as leaving:
        reason = _reason(leaving)
        if isinstance(reason, KeyboardInterrupt):
            _fail("Interrupted; what was finished before is kept.", 130)
        if isinstance(reason, BrokenPipeError):
            _fail("Nothing reads the output any more; it ends with what was written before.")
        raise
    except SoarError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail("Interrupted; what was finished before is kept.", 130)
    except MemoryError:
        _fail("There is not enough memory for this. Ask for less at a time, for example with --max-rows.")
    except RecursionError:
        _fail("Something in the input is nested too deeply.")
    except OSError as error:
        told = error.strerror or str(error)
        _fail(f"{error.filename}: {told}." if error.filename else f"{told}.")
    except Exception as error:
        _fail(
            f"Something went wrong that should not ({type(error).__name__}: {error}). Set SOAR_TRACEBACK=1 to see "
            "where, and please report it."
        )


def _run() -> None:
    if not nothing_to_do(sys.argv[1:]):
        app()


def _speak_utf8() -> None:
    """Text that comes and goes is UTF-8, whatever the locale says; whoever reads it refuses bytes that are not."""
    for stream, errors in (
        (sys.stdin, "surrogateescape"),
        (sys.stdout, "backslashreplace"),
        (sys.stderr, "backslashreplace"),
    ):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)


def _end_tidily() -> None:
    """Make the polite signals end the command as an exit does, so that locks and temporary folders go with it."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _leave)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def _reason(leaving: BaseException) -> BaseException | None:
    """What made the command leave, unless whoever caught it has answered it."""
    error: BaseException | None = leaving
    while error is not None and not isinstance(error, (KeyboardInterrupt, BrokenPipeError)):
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return error


def _fail(message: str, code: int = 1) -> NoReturn:
    """Say what went wrong and leave; what could not be written to standard output is given up."""
    say("error", message, "bold red")
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        sys.stdout = None  # else it would be tried, and told, once more
    sys.exit(code)


if __name__ == "__main__":
    main()
