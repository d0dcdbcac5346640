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
from soar_dlm.cli.batch import BatchWriter, run_batch, trace_record
from soar_dlm.cli.files import Output, read_input
from soar_dlm.cli.stats import Totals
from soar_dlm.errors import SettingsError

if TYPE_CHECKING:
    from soar_dlm.lm import LM


def generate(
    model: opt.Model,
    prompt: Annotated[
        Optional[str], typer.Argument(help="Text to continue; else --input, else standard input.")
    ] = None,
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
    max_new_tokens: opt.MaxNewTokens = 128,
    length: opt.StartLength = None,
    block_length: opt.BlockLength = None,
    temperature: opt.Temperature = 0.0,
    top_p: opt.TopP = 1.0,
    top_k: opt.TopK = None,
    cfg_scale: opt.CfgScale = 0.0,
    seed: opt.Seed = 0,
    stop: opt.Stop = None,
    suppress_tokens: opt.SuppressTokens = None,
    early_exit: opt.EarlyExit = True,
    chat: opt.Chat = False,
    max_rows: opt.MaxRows = 32,
    input_file: opt.InputFile = None,
    jsonl: opt.JsonLines = False,
    output: opt.OutputFile = None,
    overwrite: opt.Overwrite = False,
    trace: opt.TraceFile = None,
    stats: opt.Stats = False,
    watch: opt.Watch = False,
) -> None:
    """Continue a prompt, or every prompt of a JSON-lines file.

    For example: [cyan]soar generate -m GSAI-ML/LLaDA-8B-Base "The capital of France is" --watch[/cyan]

    Many prompts: [cyan]soar generate -m GSAI-ML/LLaDA-8B-Instruct --chat -i prompts.jsonl -o answers.jsonl[/cyan]
    """
    from soar_dlm.engine.settings import EngineSettings
    from soar_dlm.lm import load
    from soar_dlm.presets import named_or_preset

    many = jsonl or (input_file is not None and input_file.suffix == ".jsonl")
    if many and watch:
        raise SettingsError("--watch shows one prompt; leave it out for JSON lines.")
    chosen = named_or_preset(
        strategy,
        preset,
        **opt.given(beam=beam, threshold=threshold, metric=metric, tokens_per_step=tokens_per_step, released=released),
        **opt.extra_settings(settings),
    )
    decoding: dict[str, Any] = {
        "strategy": chosen,
        "max_new_tokens": max_new_tokens,
        "length": length,
        "block_length": block_length,
        "temperature": temperature,
        "top_p": top_p,
        "top_k": top_k,
        "cfg_scale": cfg_scale,
        "seed": seed,
        "stop": stop or (),
        "suppress_tokens": suppress_tokens or (),
        "early_exit": early_exit,
        "chat": chat,
    }
    engine = EngineSettings(max_rows=max_rows)
    source = _source(prompt, input_file, jsonl)
    writes = Output(output, overwrite)
    traces = Output(trace, overwrite) if trace is not None else None
    loading = opt.given(
        device_map=device_map,
        revision=revision,
        attn_implementation=attn_implementation,
        mask_token_id=mask_token_id,
    )
    lm = load(model, device, dtype, engine=engine, **loading)
    totals = Totals() if stats else None
    if many:
        _many(lm, source, BatchWriter(writes, traces), decoding, totals)
    else:
        _one(lm, source, writes, traces, decoding, totals, watch)


def _one(
    lm: LM,
    prompt: str,
    output: Output,
    trace: Output | None,
    decoding: dict[str, Any],
    totals: Totals | None,
    watch: bool,
) -> None:
    console = Console(stderr=True)
    started = time.perf_counter()
    if watch:
        from soar_dlm.cli.watch import show

        result = show(lm, lm.stream(prompt, **decoding), console)
    else:
        result = lm.generate(prompt, **decoding)
    seconds = time.perf_counter() - started
    output.write(result.text)
    if trace is not None:
        trace.write_json(trace_record(0, prompt, result))
    if totals is not None:
        totals.add(result)
        console.print(totals.table(seconds))


def _many(lm: LM, source: str, writer: BatchWriter, decoding: dict[str, Any], totals: Totals | None) -> None:
    console = Console(stderr=True)
    lines = [line for line in source.split("\n") if line.strip()]
    started = time.perf_counter()
    with _progress(console, len(lines)) as advance:
        for result in run_batch(lm, lines, writer, decoding):
            advance()
            if totals is not None and result is not None:
                totals.add(result)
    if totals is not None:
        console.print(totals.table(time.perf_counter() - started))
    if writer.failed:
        console.print(f'{writer.failed} of {writer.done} prompts failed; see the records with "error".', style="red")
        raise typer.Exit(1)


@contextmanager
def _progress(console: Console, total: int) -> Iterator[Callable[[], None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("decoding"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("decoding", total=total)
        yield lambda: bar.advance(task)


def _source(prompt: str | None, input_file: Path | None, jsonl: bool) -> str:
    if prompt is not None and input_file is not None:
        raise SettingsError("Give the prompt as an argument or in a file with --input, not both.")
    if prompt is not None and jsonl:
        raise SettingsError("--jsonl reads prompts from --input or standard input; leave out the argument.")
    if prompt is not None:
        return prompt
    if input_file is None and sys.stdin.isatty():
        raise SettingsError("There is no prompt. Give one as an argument, with --input FILE, or on standard input.")
    return read_input(input_file or Path("-")).removesuffix("\n")
