"""``soar generate``: continue one prompt or many."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from rich.console import Console

from soar_dlm.cli import options as opt
from soar_dlm.cli.batch import BatchWriter, Line, read_lines, run_batch, trace_record
from soar_dlm.cli.files import Output, read_input
from soar_dlm.cli.groups import takes
from soar_dlm.cli.loading import import_library, loaded
from soar_dlm.cli.method import Method
from soar_dlm.cli.resume import Progress, progress_of
from soar_dlm.cli.stats import Totals
from soar_dlm.errors import PromptError, SettingsError
from soar_dlm.options import GenerateOptions, make_options

if TYPE_CHECKING:
    from soar_dlm.lm import LM
    from soar_dlm.search.strategy import Strategy

SEPARATOR = "---"
"""The line between several texts for one prompt."""


@takes(loading=opt.LOADING, method=opt.METHOD, decoding=opt.GENERATE)
def generate(
    *,
    prompt: Annotated[
        Optional[str], typer.Argument(help="Text to continue. Default: --input, or standard input.")
    ] = None,
    model: opt.Model,
    decoding: dict[str, Any],
    n: opt.Samples = None,
    method: dict[str, Any],
    input_file: opt.InputFile = None,
    jsonl: opt.JsonLines = False,
    output: opt.OutputFile = None,
    overwrite: opt.Overwrite = False,
    resume: opt.Resume = False,
    trace: opt.TraceFile = None,
    stats: opt.Stats = False,
    watch: opt.Watch = False,
    loading: dict[str, Any],
) -> None:
    """Continue a prompt, or every prompt of a JSON-lines file.

    For example: [cyan]soar generate -m GSAI-ML/LLaDA-8B-Base "The capital of France is" --watch[/cyan]

    Many prompts: [cyan]soar generate -m GSAI-ML/LLaDA-8B-Instruct --chat -i prompts.jsonl -o answers.jsonl[/cyan]
    """
    many = jsonl or (input_file is not None and input_file.suffix == ".jsonl")
    _check_combination(many, watch, n, resume, overwrite, output)
    make_options(GenerateOptions, decoding)
    source = _source(prompt, input_file, jsonl, many)
    decoding["trace"] = trace is not None
    totals = Totals() if stats else None
    if not many:
        target, traces = Output(output, overwrite=overwrite), _traces(trace, overwrite=overwrite)
        lm, strategy = _ready(model, loading, method)
        _one(lm, strategy, source, target, traces, n, decoding, totals, watch)
        return
    lines, found = read_lines(source), Progress()
    if not lines:
        raise PromptError("The input has no prompts; write one JSON object per line.")
    if resume:
        assert output is not None
        found = progress_of(output, trace, lines)
        target, traces = Output(output, keep=found.output_bytes), _traces(trace, keep=found.trace_bytes)
    else:
        target = Output(output, overwrite=overwrite, resumable=True)
        traces = _traces(trace, overwrite=overwrite, resumable=True)
    left = [line for line in lines if line.index not in found.done]
    writer = BatchWriter(target, traces, len(found.done), found.failed)
    lm, strategy = _ready(model, loading, method)
    _many(lm, strategy, left, writer, n, decoding, totals)


def _check_combination(
    many: bool, watch: bool, n: int | None, resume: bool, overwrite: bool, output: Path | None
) -> None:
    if watch and (many or n is not None):
        raise SettingsError("--watch shows one text; leave it out with JSON lines and with --n.")
    if resume and (not many or output is None or str(output) == "-"):
        raise SettingsError("--resume continues a run from JSON lines (--input) to a file (--output); give both.")
    if resume and overwrite:
        raise SettingsError("--resume keeps what is in the output and --overwrite replaces it; choose one.")


def _traces(path: Path | None, **how: Any) -> Output | None:
    return None if path is None else Output(path, **how)


def _ready(model: str, loading: dict[str, Any], method: dict[str, Any]) -> tuple[LM, Strategy]:
    import_library()
    chosen = Method(method)
    lm = loaded(model, loading)
    return lm, chosen.strategy(lm)


def _one(
    lm: LM,
    strategy: Strategy,
    prompt: str,
    output: Output,
    trace: Output | None,
    n: int | None,
    decoding: dict[str, Any],
    totals: Totals | None,
    watch: bool,
) -> None:
    console = Console(stderr=True)
    started, shown = time.perf_counter(), False
    if watch:
        from soar_dlm.cli.watch import show, shown_on

        results = [show(lm, lm.stream(prompt, strategy, **decoding), strategy, console)]
        shown = output.is_stdout and shown_on(console)
    else:
        found: Any = lm.generate(prompt, strategy, **decoding, **opt.given(n=n))
        results = found if isinstance(found, list) else [found]
    seconds = time.perf_counter() - started
    if not shown:
        output.write(f"\n{SEPARATOR}\n".join(result.text for result in results))
    for sample, result in enumerate(results):
        if trace is not None:
            trace.write_json(trace_record(0, prompt, result, None if n is None else sample))
        if totals is not None:
            totals.add(result)
    if totals is not None:
        console.print(totals.table(seconds))


def _many(
    lm: LM,
    strategy: Strategy,
    lines: list[Line],
    writer: BatchWriter,
    n: int | None,
    decoding: dict[str, Any],
    totals: Totals | None,
) -> None:
    console = Console(stderr=True, highlight=False)
    started = time.perf_counter()
    with _bar(console, writer.done, writer.done + len(lines)) as advance:
        for results in run_batch(lm, lines, writer, strategy, n, decoding):
            advance()
            if totals is not None:
                for result in results:
                    totals.add(result)
    if totals is not None:
        console.print(totals.table(time.perf_counter() - started))
    if writer.failed:
        console.print(f'{writer.failed} of {writer.done} prompts failed; see the records with "error".', style="red")
        raise typer.Exit(1)


@contextmanager
def _bar(console: Console, done: int, total: int) -> Iterator[Callable[[], None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("decoding"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("decoding", total=total, completed=done)
        yield lambda: bar.advance(task)


def _source(prompt: str | None, input_file: Path | None, jsonl: bool, many: bool) -> str:
    """What to decode: a prompt, or JSON lines."""
    if prompt is not None and input_file is not None:
        raise SettingsError("Give the prompt as an argument or in a file with --input, not both.")
    if prompt is not None and jsonl:
        raise SettingsError("--jsonl reads prompts from --input or standard input; leave out the argument.")
    if prompt is not None:
        return prompt
    if input_file is None and sys.stdin.isatty():
        raise SettingsError("There is no prompt. Give one as an argument, with --input FILE, or on standard input.")
    path = input_file or Path("-")
    text = read_input(path).removesuffix("\n")
    if not many and not text.strip():
        name = "Standard input" if str(path) == "-" else str(path)
        raise PromptError(f'{name} is empty. Give it some text to continue, or the argument "" for an empty prompt.')
    return text
