"""``soar infill``: fill the blanks of a text, or of a source file in place."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional, cast

import typer
from rich.console import Console

from soar_dlm.cli import options as opt
from soar_dlm.cli.batch import trace_record
from soar_dlm.cli.files import Output, read_input
from soar_dlm.cli.stats import Totals
from soar_dlm.errors import InputFileError, SettingsError

if TYPE_CHECKING:
    from soar_dlm.results import Infilling
    from soar_dlm.template import Template


def infill(
    model: opt.Model,
    file: Annotated[
        Optional[Path], typer.Argument(help="Text with {blank} or {blank:8} where something is missing; '-': stdin.")
    ] = None,
    marker: Annotated[
        Optional[str],
        typer.Option(help="What marks a blank in FILE instead of {blank}; alone on a line, it is the line."),
    ] = None,
    prefix: Annotated[Optional[Path], typer.Option(help="File with the text before the blank; with --suffix.")] = None,
    suffix: Annotated[Optional[Path], typer.Option(help="File with the text behind the blank; with --prefix.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Write the filled text back to FILE.")] = False,
    only: Annotated[bool, typer.Option("--only", help="Print only what was written into the blanks.")] = False,
    device: opt.Device = None,
    dtype: opt.Dtype = None,
    device_map: opt.DeviceMap = None,
    revision: opt.Revision = None,
    attn_implementation: opt.Attention = None,
    mask_token_id: opt.MaskTokenId = None,
    strategy: opt.StrategyName = None,
    preset: opt.PresetFile = None,
    beam: opt.Beam = None,
    threshold: opt.Threshold = None,
    metric: opt.Metric = None,
    tokens_per_step: opt.TokensPerStep = None,
    released: opt.Released = None,
    settings: opt.ExtraSettings = None,
    length: opt.Length = 16,
    max_length: opt.MaxLength = None,
    fixed: opt.Fixed = False,
    block_length: opt.BlockLength = None,
    temperature: opt.Temperature = 0.0,
    top_p: opt.TopP = 1.0,
    top_k: opt.TopK = None,
    cfg_scale: opt.CfgScale = 0.0,
    seed: opt.Seed = 0,
    suppress_tokens: opt.SuppressTokens = None,
    output: opt.OutputFile = None,
    overwrite: opt.Overwrite = False,
    trace: opt.TraceFile = None,
    stats: opt.Stats = False,
    watch: opt.Watch = False,
) -> None:
    """Fill the blanks of a text.

    For example: [cyan]soar infill -m Dream-org/DreamOn-v0-7B solution.py --marker "# TODO" --write[/cyan]
    """
    from soar_dlm.lm import load
    from soar_dlm.presets import named_or_preset

    template = _template(file, marker, prefix, suffix, length)
    if write and (file is None or str(file) == "-" or output is not None):
        raise SettingsError("--write changes FILE in place; name a file, and leave out --output.")
    chosen = named_or_preset(
        strategy,
        preset,
        **opt.given(beam=beam, threshold=threshold, metric=metric, tokens_per_step=tokens_per_step, released=released),
        **opt.extra_settings(settings),
    )
    decoding: dict[str, Any] = {
        "strategy": chosen,
        "max_length": max_length,
        "fixed": fixed,
        "block_length": block_length,
        "temperature": temperature,
        "top_p": top_p,
        "top_k": top_k,
        "cfg_scale": cfg_scale,
        "seed": seed,
        "suppress_tokens": suppress_tokens or (),
    }
    target = Output(output, overwrite)
    traces = Output(trace, overwrite) if trace is not None else None
    loading = opt.given(
        device_map=device_map,
        revision=revision,
        attn_implementation=attn_implementation,
        mask_token_id=mask_token_id,
    )
    lm = load(model, device, dtype, **loading)
    console = Console(stderr=True)
    started = time.perf_counter()
    if watch:
        from soar_dlm.cli.watch import show

        events = lm.stream_infill(template, **decoding)
        result = cast("Infilling", show(lm, events, console, template.pieces))
    else:
        result = lm.infill_template(template, **decoding)
    seconds = time.perf_counter() - started
    if write:
        assert file is not None
        replace_text(file, result.whole)
    else:
        target.write((result.text if only else result.whole).removesuffix("\n"))
    if traces is not None:
        traces.write_json({**trace_record(0, list(template.pieces), result), "blanks": result.blanks})
    if stats:
        totals = Totals()
        totals.add(result)
        console.print(totals.table(seconds))


def _template(file: Path | None, marker: str | None, prefix: Path | None, suffix: Path | None, length: int) -> Template:
    from soar_dlm.template import Template

    if (file is None) == (prefix is None and suffix is None):
        raise SettingsError("Give a FILE with blanks in it, or --prefix and --suffix, and not both.")
    if file is None:
        if prefix is None or suffix is None:
            raise SettingsError("--prefix and --suffix go together; an empty file will do for one of them.")
        return Template.between(read_input(prefix), read_input(suffix), length)
    text = read_input(file)
    return Template.parse(text, length, marker)


def replace_text(file: Path, text: str) -> None:
    """Put ``text`` in place of a file's content in one move, so that it is never half written; its mode stays."""
    target = file.resolve()
    try:
        with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False, encoding="utf-8", newline="") as fresh:
            fresh.write(text)
        os.chmod(fresh.name, target.stat().st_mode)
        os.replace(fresh.name, target)
    except OSError as error:
        raise InputFileError(f"Cannot write {file}: {error.strerror}.") from error
