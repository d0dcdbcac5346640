"""The options that commands share, each written once. Those of a request come from :mod:`soar_dlm.options`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from soar_dlm.cli import completion
from soar_dlm.cli.groups import group, group_of
from soar_dlm.options import GenerateOptions, InfillOptions

_MODEL, _LOADING, _STRATEGY = "Model", "Loading the model", "Strategy"
_DECODING, _FILES = "Decoding", "Input and output"


def _option(panel: str, text: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


ENVIRONMENT = "SOAR_MODEL"
MODEL = _option(
    _MODEL,
    "Hub id, folder or embedded name; see 'soar models'.",
    "--model",
    "-m",
    envvar=ENVIRONMENT,
    autocompletion=completion.models,
)
Model = Annotated[str, MODEL]
MaybeModel = Annotated[Optional[str], MODEL]
Device = Annotated[Optional[str], _option(_LOADING, "cpu, cuda, cuda:1, mps. Default: the first accelerator.")]
Dtype = Annotated[
    Optional[str], _option(_LOADING, "float32, bfloat16, float16 or auto. Default: float32 on a CPU, else as stored.")
]
DeviceMap = Annotated[
    Optional[str], _option(_LOADING, "Spread the model over devices, such as 'auto' (needs the extra 'accelerate').")
]
TensorParallel = Annotated[
    Optional[int],
    _option(_LOADING, "Split every layer over that many devices, a process for each.", metavar="N"),
]
Attention = Annotated[
    Optional[str], _option(_LOADING, "eager, sdpa, flash_attention_2, ... Default: transformers' choice.")
]
MaskTokenId = Annotated[Optional[int], _option(_LOADING, "For a checkpoint that does not name its mask token.")]
Revision = Annotated[Optional[str], _option(_LOADING, "Branch, tag or commit of a Hub model.")]
Token = Annotated[Optional[str], _option(_LOADING, "Access token for the Hub.")]
CacheDir = Annotated[Optional[Path], _option(_LOADING, "Folder for downloads. Default: the Hub's cache.")]
LocalFilesOnly = Annotated[Optional[bool], _option(_LOADING, "Download nothing.", "--local-files-only")]
MaxRows = Annotated[
    Optional[int], _option(_LOADING, "The most candidates in one forward; fewer need less memory. Default: 32.")
]
CacheBudget = Annotated[
    Optional[float],
    _option(_LOADING, "The most memory for stored keys and values (--cache). Default: 4.", metavar="GIB"),
]
Compile = Annotated[Optional[bool], _option(_LOADING, "Compile the model with torch.compile.", "--compile")]

StrategyName = Annotated[
    Optional[str],
    _option(
        _STRATEGY,
        "How to decode; see 'soar strategies'. Default: the checkpoint's own choice, else soar.",
        "--strategy",
        "-s",
        autocompletion=completion.strategies,
    ),
]
PresetFile = Annotated[Optional[Path], _option(_STRATEGY, "Strategy and settings from a file written by 'soar tune'.")]
Beam = Annotated[Optional[int], _option(_STRATEGY, "Candidates kept (pbs, soar).")]
Threshold = Annotated[
    Optional[float],
    _option(_STRATEGY, "Commit every position above this confidence (adaptive, soar). Default: the model's."),
]
Metric = Annotated[
    Optional[str],
    _option(_STRATEGY, "probability, margin, neg_entropy, or an installed one.", autocompletion=completion.metrics),
]
TokensPerStep = Annotated[Optional[int], _option(_STRATEGY, "Positions per step (greedy, pbs).")]
Released = Annotated[
    Optional[str], _option(_STRATEGY, "Follow the authors' released code for 'llada' or 'dream' (soar).")
]
ExtraSettings = Annotated[
    Optional[list[str]],
    _option(_STRATEGY, "Any other setting of the strategy; repeatable.", "--set", metavar="NAME=VALUE"),
]

LOADING = group(
    device=Device,
    dtype=Dtype,
    device_map=DeviceMap,
    tensor_parallel=TensorParallel,
    revision=Revision,
    attn_implementation=Attention,
    mask_token_id=MaskTokenId,
    token=Token,
    cache_dir=CacheDir,
    local_files_only=LocalFilesOnly,
    compile=Compile,
    max_rows=MaxRows,
    cache_budget=CacheBudget,
)
"""How a model is loaded and run."""

METHOD = group(
    strategy=StrategyName,
    preset=PresetFile,
    beam=Beam,
    threshold=Threshold,
    metric=Metric,
    tokens_per_step=TokensPerStep,
    released=Released,
    settings=ExtraSettings,
)
"""Which strategy decodes, with which settings."""
SETTINGS = {name: option for name, option in METHOD.items() if name not in ("strategy", "preset")}
"""Settings for strategies that are named elsewhere."""

GENERATE = group_of(GenerateOptions, _DECODING)
INFILL = group_of(InfillOptions, _DECODING)
MEASURED = {name: GENERATE[name] for name in ("block_length", "cache", "refresh_every", "suffix_window")}
"""What commands that measure let a user change of how everything is decoded."""
BLOCKS = {name: option for name, option in MEASURED.items() if name != "cache"}
"""The same, where several caches are measured."""
CHAT = group_of(GenerateOptions, _DECODING, without=("chat", "length", "truncate_prompt", "add_special_tokens"))

InputFile = Annotated[
    Optional[Path],
    _option(_FILES, "File with the prompt, or *.jsonl with many; '-' is standard input.", "--input", "-i"),
]
JsonLines = Annotated[
    bool,
    _option(_FILES, 'The input is JSON lines with {"prompt": ...} or {"messages": [...]}.', "--jsonl"),
]
OutputFile = Annotated[Optional[Path], _option(_FILES, "Write here instead of standard output.", "--output", "-o")]
Overwrite = Annotated[bool, _option(_FILES, "Replace output and trace files that exist.", "--overwrite")]
Resume = Annotated[
    bool, _option(_FILES, "Continue an output file that was interrupted: decode only what it lacks.", "--resume")
]
TraceFile = Annotated[Optional[Path], _option(_FILES, "Write every step of the search as JSON lines.", "--trace")]
Stats = Annotated[bool, _option(_FILES, "Show steps, forwards, confidence and speed.", "--stats")]
Watch = Annotated[bool, _option(_FILES, "Show the canvas as it fills, coloured by confidence.", "--watch", "-w")]
Compare = Annotated[
    Optional[str],
    _option(
        _STRATEGY,
        "With --watch: several strategies side by side, names separated by commas.",
        "--compare",
        autocompletion=completion.strategies,
    ),
]
Samples = Annotated[
    Optional[int],
    _option(_DECODING, "Texts per prompt: samples, or at temperature 0 those of the beam.", "--n", metavar="<int>"),
]

Seed = Annotated[int, _option(_DECODING, "Seed of sampling.")]


def given(**settings: Any) -> dict[str, Any]:
    """The settings that were given on the command line."""
    return {name: value for name, value in settings.items() if value is not None}
