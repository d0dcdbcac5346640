"""``soar infill``: fill the blanks of a text, or of a source file in place."""

from __future__ import annotations

import codecs
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional, cast

import typer

from soar_dlm.cli import options as opt
from soar_dlm.cli.compare import check_compare, compared, show_compared
from soar_dlm.cli.files import SEPARATOR, STREAM, Output, check_apart, read_text
from soar_dlm.cli.groups import takes
from soar_dlm.cli.loading import import_library, loaded
from soar_dlm.cli.method import Method
from soar_dlm.cli.screen import screen
from soar_dlm.cli.stats import Totals
from soar_dlm.errors import InputFileError, SettingsError
from soar_dlm.files import explained
from soar_dlm.options import InfillOptions, make_options
from soar_dlm.records import trace_record
from soar_dlm.strict_json import json_line
from soar_dlm.template import Template

if TYPE_CHECKING:
    from rich.console import Console

    from soar_dlm.lm import LM
    from soar_dlm.results import Infilling


BOM = "\ufeff"
"""The byte-order mark, which is not part of a text but stays in a file that has one."""


@takes(loading=opt.LOADING, method=opt.METHOD, decoding=opt.INFILL)
def infill(
    *,
    file: Annotated[
        Optional[Path],
        typer.Argument(help="Text with {blank} or {blank:8} where something is missing; '-' is standard input."),
    ] = None,
    model: opt.Model,
    marker: Annotated[Optional[str], typer.Option(help="What marks a blank in FILE instead of {blank}.")] = None,
    prefix: Annotated[Optional[Path], typer.Option(help="File with the text before the blank; with --suffix.")] = None,
    suffix: Annotated[Optional[Path], typer.Option(help="File with the text after the blank; with --prefix.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Write the filled text back to FILE.")] = False,
    only: Annotated[bool, typer.Option("--only", help="Print only what was written into the blanks.")] = False,
    decoding: dict[str, Any],
    method: dict[str, Any],
    output: opt.OutputFile = None,
    overwrite: opt.Overwrite = False,
    trace: opt.TraceFile = None,
    stats: opt.Stats = False,
    watch: opt.Watch = False,
    compare: opt.Compare = None,
    loading: dict[str, Any],
) -> None:
    """Fill the blanks of a text. A blank alone on its line stands for the whole line.

    For example: [cyan]soar infill -m Dream-org/DreamOn-v0-7B solution.py --marker "# TODO" --write[/cyan]
    """
    check_compare(compare, watch, stats=stats, write=write)
    checked = make_options(InfillOptions, decoding)
    if write and (file is None or file == STREAM or output is not None):
        raise SettingsError("--write changes FILE in place; name a file, and leave out --output.")
    whole = {"FILE": file, "--trace": trace} if write else {"--output": output or STREAM, "--trace": trace}
    check_apart({} if write else {"FILE": file, "--prefix": prefix, "--suffix": suffix}, whole)
    with ExitStack() as stack:
        target = stack.enter_context(Output(file if write else output, overwrite=overwrite or write))
        traces = None if trace is None else stack.enter_context(Output(trace, overwrite=overwrite))
        before = _content(file) if write and file is not None else b""
        template = _template(file, marker, prefix, suffix, checked.length)
        import_library()
        decoding["trace"] = trace is not None
        console = screen()
        if compare is not None:
            methods = compared(compare, method)
            _compared(loaded(model, loading), methods, template, target, traces, decoding, only, console)
            return
        chosen = Method(method)
        lm = loaded(model, loading)
        strategy = chosen.strategy(lm)
        started, shown = time.perf_counter(), False
        if watch:
            from soar_dlm.cli.watch import show, shown_on

            events = lm.stream_infill(template, strategy, **decoding)
            result = cast("Infilling", show(lm, events, strategy, console, template.pieces))
            shown = target.is_stdout and shown_on(console) and not only
        else:
            result = lm.infill_template(template, strategy, **decoding)
        seconds = time.perf_counter() - started
        if write and file is not None:
            _check_unchanged(file, before)
            target.replace((BOM if before.startswith(codecs.BOM_UTF8) else "") + result.whole, end="")
        elif not shown:
            target.replace((result.text if only else result.whole).removesuffix("\n"))
        if traces is not None:
            traces.replace(_trace_line(template, result))
    if stats:
        totals = Totals()
        totals.add(result)
        console.print(totals.table(seconds))


def _content(file: Path) -> bytes:
    with explained("read", file):
        return file.read_bytes()


def _check_unchanged(file: Path, before: bytes) -> None:
    """Refuse to write over what somebody else, such as an editor, saved while the blanks were being filled."""
    if _content(file) != before:
        raise InputFileError(f"{file} was changed while its blanks were being filled, so it stays as it is. Try again.")


def _compared(
    lm: LM,
    methods: Mapping[str, Method],
    template: Template,
    output: Output,
    traces: Output | None,
    decoding: dict[str, Any],
    only: bool,
    console: Console,
) -> None:
    """Several strategies; the output has their texts, and the trace file a line for each."""
    from soar_dlm.cli.watch import shown_on

    chosen = {name: one.strategy(lm) for name, one in methods.items()}
    streams = {name: (strategy, lm.stream_infill(template, strategy, **decoding)) for name, strategy in chosen.items()}
    results = cast("dict[str, Infilling]", show_compared(lm, streams, console, template.pieces))
    if only or not (output.is_stdout and shown_on(console)):
        texts = ((one.text if only else one.whole).removesuffix("\n") for one in results.values())
        output.replace(f"\n{SEPARATOR}\n".join(texts))
    if traces is not None:
        traces.replace("\n".join(_trace_line(template, result, name) for name, result in results.items()))


def _trace_line(template: Template, result: Infilling, method: str | None = None) -> str:
    record = trace_record(0, list(template.pieces), result, method=method)
    return json_line({**record, "blanks": result.blanks})


def _template(file: Path | None, marker: str | None, prefix: Path | None, suffix: Path | None, length: int) -> Template:
    if (file is None) == (prefix is None and suffix is None):
        raise SettingsError("Give a FILE with blanks in it, or --prefix and --suffix, not both.")
    if file is not None:
        return Template.parse(read_text(file), length, marker)
    if prefix is None or suffix is None:
        raise SettingsError("--prefix and --suffix go together; one of the files may be empty.")
    return Template.between(read_text(prefix), read_text(suffix), length)
