"""``soar generate``: continue one prompt or many."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from soar_dlm.cli import options as opt
from soar_dlm.cli.compare import check_compare, compared, show_compared
from soar_dlm.cli.files import SEPARATOR, STREAM, Output, check_apart, open_input, read_text
from soar_dlm.cli.groups import takes
from soar_dlm.cli.loading import import_library, loaded
from soar_dlm.cli.method import Method
from soar_dlm.cli.progress import prompts_bar
from soar_dlm.cli.resume import Progress, progress_of
from soar_dlm.cli.screen import say, screen
from soar_dlm.cli.stats import Totals
from soar_dlm.cli.writer import BatchWriter, run_batch
from soar_dlm.errors import PromptError, SettingsError
from soar_dlm.files import explained
from soar_dlm.options import GenerateOptions, make_options
from soar_dlm.prompt_lines import Line, option_names, read_lines
from soar_dlm.records import trace_record
from soar_dlm.strict_json import json_line

if TYPE_CHECKING:
    from soar_dlm.lm import LM
    from soar_dlm.search.strategy import Strategy


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
    compare: opt.Compare = None,
    loading: dict[str, Any],
) -> None:
    """Continue a prompt, or every prompt of a JSON-lines file.

    For example: [cyan]soar generate -m GSAI-ML/LLaDA-8B-Base "The capital of France is" --watch[/cyan]

    Two strategies side by side: [cyan]soar generate -m mini-llada "..." --watch --compare greedy,soar[/cyan]

    Many prompts: [cyan]soar generate -m GSAI-ML/LLaDA-8B-Instruct --chat -i prompts.jsonl -o answers.jsonl[/cyan]
    """
    many = jsonl or (input_file is not None and input_file.suffix == ".jsonl")
    check_compare(compare, watch, stats=stats)
    _check_combination(many, watch, n, resume, overwrite, output)
    make_options(GenerateOptions, decoding)
    source = _source(prompt, input_file, jsonl)
    check_apart({"The input": source}, {"--output": output or STREAM, "--trace": trace})
    decoding["trace"] = trace is not None
    totals = Totals() if stats else None
    how: dict[str, Any] = {"overwrite": overwrite, "resume": resume, "many": many}
    with Output(output, **how) as target, ExitStack() as stack:
        traces = None if trace is None else stack.enter_context(Output(trace, **how))
        if many:
            lines = _lines(source)
            found = progress_of(output, trace, lines) if resume and output is not None else Progress()
            lm, strategy = _ready(model, loading, method)
            _many(lm, strategy, lines, found, BatchWriter(target, traces, found), n, decoding, totals)
        elif compare is not None:
            text = _text(prompt, source)
            _compared(model, loading, compare, method, text, target, traces, decoding)
        else:
            text = _text(prompt, source)
            lm, strategy = _ready(model, loading, method)
            _one(lm, strategy, text, target, traces, n, decoding, totals, watch)


def _check_combination(
    many: bool, watch: bool, n: int | None, resume: bool, overwrite: bool, output: Path | None
) -> None:
    if watch and (many or n is not None):
        raise SettingsError("--watch shows one text; leave it out with JSON lines and with --n.")
    if resume and (not many or output is None or str(output) == "-"):
        raise SettingsError("--resume continues a run from JSON lines (--input) to a file (--output); give both.")
    if resume and overwrite:
        raise SettingsError("--resume keeps what is in the output and --overwrite replaces it; choose one.")


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
    console = screen()
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
        output.replace(f"\n{SEPARATOR}\n".join(result.text for result in results))
    if trace is not None:
        samples = enumerate(results)
        records = (trace_record(0, prompt, result, None if n is None else sample) for sample, result in samples)
        trace.replace("\n".join(map(json_line, records)))
    if totals is not None:
        for result in results:
            totals.add(result)
        console.print(totals.table(seconds))


def _compared(
    model: str,
    loading: dict[str, Any],
    names: str,
    method: dict[str, Any],
    prompt: str,
    output: Output,
    trace: Output | None,
    decoding: dict[str, Any],
) -> None:
    """Several strategies; the output has their texts, and the trace file a line for each."""
    import_library()
    from soar_dlm.cli.watch import shown_on

    methods = compared(names, method)
    lm, console = loaded(model, loading), screen()
    chosen = {name: one.strategy(lm) for name, one in methods.items()}
    streams = {name: (strategy, lm.stream(prompt, strategy, **decoding)) for name, strategy in chosen.items()}
    results = show_compared(lm, streams, console)
    if not (output.is_stdout and shown_on(console)):
        output.replace(f"\n{SEPARATOR}\n".join(result.text for result in results.values()))
    if trace is not None:
        records = (trace_record(0, prompt, result, method=name) for name, result in results.items())
        trace.replace("\n".join(map(json_line, records)))


def _many(
    lm: LM,
    strategy: Strategy,
    lines: list[Line],
    found: Progress,
    writer: BatchWriter,
    n: int | None,
    decoding: dict[str, Any],
    totals: Totals | None,
) -> None:
    console = screen()
    left = [line for line in lines if line.index not in found.done]
    started = time.perf_counter()
    with prompts_bar(console, writer.done, len(lines)) as advance:
        for results in run_batch(lm, left, writer, strategy, n, decoding):
            advance()
            if totals is not None:
                for result in results:
                    totals.add(result)
    if totals is not None:
        console.print(totals.table(time.perf_counter() - started))
    if writer.failed:
        console.print(f'{writer.failed} of {writer.done} prompts failed; see the records with "error".', style="red")
        raise typer.Exit(1)


def _source(prompt: str | None, input_file: Path | None, jsonl: bool) -> Path | None:
    """The file with what to decode; None if it is the argument."""
    if prompt is not None and input_file is not None:
        raise SettingsError("Give the prompt as an argument or in a file with --input, not both.")
    if prompt is not None and jsonl:
        raise SettingsError("--jsonl reads prompts from --input or standard input; leave out the argument.")
    if prompt is not None:
        return None
    if input_file is None and (sys.stdin is None or sys.stdin.isatty()):
        raise SettingsError("There is no prompt. Give one as an argument, with --input FILE, or on standard input.")
    return input_file or STREAM


def _text(prompt: str | None, source: Path | None) -> str:
    """One prompt, without the line feed at the end of a file."""
    if source is None:
        assert prompt is not None
        return prompt
    text = read_text(source).removesuffix("\n")
    if not text.strip():
        name = "Standard input" if source == STREAM else str(source)
        raise PromptError(f'{name} is empty. Give it some text to continue, or the argument "" for an empty prompt.')
    return text


def _lines(source: Path | None) -> list[Line]:
    """Many prompts."""
    path = source or STREAM
    with explained("read", path), open_input(path) as file:
        lines = read_lines(file)
    if not lines:
        raise PromptError("The input has no prompts; write one JSON object per line.")
    options = option_names(lines)
    if options:
        say(
            "warning",
            f"The lines have fields named like options ({', '.join(options)}). They are kept in the records and change "
            "nothing else; options are given on the command line.",
            "bold yellow",
        )
    return lines
