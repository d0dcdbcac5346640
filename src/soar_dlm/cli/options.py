"""The options that commands share, each said once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from soar_dlm.errors import SettingsError

_MODEL, _STRATEGY, _DECODING, _FILES = "Model", "Strategy", "Decoding", "Input and output"


def _option(panel: str, text: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


Model = Annotated[
    str, _option(_MODEL, "Hub id, folder or embedded name; see 'soar models'.", "--model", "-m", envvar="SOAR_MODEL")
]
Device = Annotated[Optional[str], _option(_MODEL, "cpu, cuda, cuda:1, mps; default: the first accelerator.")]
Dtype = Annotated[
    Optional[str], _option(_MODEL, "float32, bfloat16, float16 or auto; default: float32 on CPU, else as stored.")
]
DeviceMap = Annotated[
    Optional[str], _option(_MODEL, "Spread the model over devices, such as 'auto' (needs the extra 'accelerate').")
]
Attention = Annotated[
    Optional[str], _option(_MODEL, "eager, sdpa, flash_attention_2, ...; default: transformers' choice.")
]
MaskTokenId = Annotated[Optional[int], _option(_MODEL, "For a checkpoint that does not name its mask token.")]
Revision = Annotated[Optional[str], _option(_MODEL, "Branch, tag or commit of a Hub model.")]

StrategyName = Annotated[
    Optional[str],
    _option(
        _STRATEGY,
        "greedy, adaptive, pbs, pbs-parallel, soar (default), soar-llada, soar-dream, or an installed one.",
        "--strategy",
        "-s",
    ),
]
PresetFile = Annotated[Optional[Path], _option(_STRATEGY, "Strategy and settings from a file of 'soar tune'.")]
Beam = Annotated[Optional[int], _option(_STRATEGY, "Candidates kept (pbs, soar).")]
Threshold = Annotated[
    Optional[float],
    _option(
        _STRATEGY, "Commit every position above this confidence (adaptive, soar); default: the paper's for the model."
    ),
]
Metric = Annotated[Optional[str], _option(_STRATEGY, "probability, margin or neg_entropy.")]
TokensPerStep = Annotated[Optional[int], _option(_STRATEGY, "Positions per step (greedy, pbs).")]
Released = Annotated[
    Optional[str], _option(_STRATEGY, "Follow the authors' released code for 'llada' or 'dream' (soar).")
]
ExtraSettings = Annotated[
    Optional[list[str]],
    _option(_STRATEGY, "Any other setting of an installed strategy; repeatable.", "--set", metavar="NAME=VALUE"),
]

MaxNewTokens = Annotated[int, _option(_DECODING, "Length of the canvas.", "--max-new-tokens", "-n")]
BlockLength = Annotated[
    Optional[int], _option(_DECODING, "Fill blocks of this length from left to right; default: the whole canvas.")
]
Temperature = Annotated[float, _option(_DECODING, "0 takes the most likely token.")]
TopP = Annotated[float, _option(_DECODING, "Sample from the fewest tokens that reach this probability.")]
TopK = Annotated[Optional[int], _option(_DECODING, "Sample from this many tokens.")]
CfgScale = Annotated[float, _option(_DECODING, "Classifier-free guidance; 0 is off.")]
Seed = Annotated[int, _option(_DECODING, "Where sampling starts.")]
Stop = Annotated[
    Optional[list[str]], _option(_DECODING, "End the text before this string; repeatable.", metavar="TEXT")
]
SuppressTokens = Annotated[
    Optional[list[int]],
    _option(_DECODING, "Never predict this token id; repeatable.", "--suppress-token", metavar="ID"),
]
EarlyExit = Annotated[
    bool,
    _option(
        _DECODING,
        "Stop once the text has ended, or decode the full canvas as in the paper.",
        "--early-exit/--no-early-exit",
    ),
]
StartLength = Annotated[
    Optional[int],
    _option(
        _DECODING,
        "Start with so many masks, which the model changes up to --max-new-tokens (with expand and delete tokens).",
        "--length",
    ),
]
Length = Annotated[int, _option(_DECODING, "Masks a blank starts with, unless it says so itself.", "--length", "-n")]
MaxLength = Annotated[
    Optional[int],
    _option(_DECODING, "The most a blank may grow to (models with expand and delete tokens); default: 64."),
]
Fixed = Annotated[bool, _option(_DECODING, "Keep the length of blanks, even if the model could change it.", "--fixed")]
Chat = Annotated[bool, _option(_DECODING, "Put the prompt into the model's chat template.", "--chat")]
MaxRows = Annotated[int, _option(_DECODING, "Candidates decoded together.")]

InputFile = Annotated[
    Optional[Path],
    _option(_FILES, "File with the prompt, or *.jsonl with many; '-' is standard input.", "--input", "-i"),
]
JsonLines = Annotated[
    bool,
    _option(_FILES, 'Input is JSON lines: {"prompt": ...} or {"messages": [...]}, maybe with "id".', "--jsonl"),
]
OutputFile = Annotated[Optional[Path], _option(_FILES, "Write here instead of standard output.", "--output", "-o")]
Overwrite = Annotated[bool, _option(_FILES, "Replace output and trace files that exist.", "--overwrite")]
TraceFile = Annotated[Optional[Path], _option(_FILES, "Write every step of the search as JSON lines.", "--trace")]
Stats = Annotated[bool, _option(_FILES, "Show steps, forwards, confidence and speed.", "--stats")]
Watch = Annotated[bool, _option(_FILES, "Show the canvas filling, coloured by confidence.", "--watch", "-w")]


def given(**settings: Any) -> dict[str, Any]:
    """The settings that were given on the command line."""
    return {name: value for name, value in settings.items() if value is not None}


def extra_settings(settings: list[str] | None) -> dict[str, Any]:
    """NAME=VALUE pairs; numbers, booleans and null are read as JSON, anything else is a string."""
    extra: dict[str, Any] = {}
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not equals:
            raise SettingsError(f"--set takes NAME=VALUE, not {setting!r}.")
        try:
            extra[name] = json.loads(value)
        except json.JSONDecodeError:
            extra[name] = value
    return extra
