"""From a name to a running model: a Hub id, a local folder, or a model that comes with the package."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from transformers.utils import cached_file
from transformers.utils.hub import extract_commit_hash

from soar_dlm.errors import (
    CheckpointError,
    MissingExtra,
    SettingsError,
    SoarError,
    UnknownName,
    WeightsMismatch,
)
from soar_dlm.models.defaults import DecodingDefaults
from soar_dlm.models.embedded import embedded_folder, embedded_names
from soar_dlm.models.facts import read_facts
from soar_dlm.models.families import FAMILIES, MASKED_LM, Family, family_of
from soar_dlm.models.masked_lm import Rows, TransformersLM
from soar_dlm.models.stock import stock_config
from soar_dlm.models.text import Text

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
QUICK = 2**30
"""Bytes of local weights that load too quickly for a progress bar."""
TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.json",
    "vocab.txt",
    "tokenizer.model",
    "spiece.model",
    "spm.model",
    "sentencepiece.bpe.model",
)


@dataclass(frozen=True)
class Checkpoint:
    """A loaded model with what belongs to it; ``text`` is None where there are no tokenizer files.

    ``revision`` is the commit of a model from the Hub.
    """

    name: str
    family: Family
    model: TransformersLM
    text: Text | None
    revision: str | None = None
    defaults: DecodingDefaults = field(default_factory=DecodingDefaults)


def load_checkpoint(
    name: str | os.PathLike[str],
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    device_map: Any = None,
    quantization_config: Any = None,
    revision: str | None = None,
    attn_implementation: str | None = None,
    mask_token_id: int | None = None,
) -> Checkpoint:
    """Read a checkpoint: safetensors only, stock classes only, no remote code.

    ``device`` defaults to the first accelerator, else the CPU. ``dtype`` defaults to float32 on a CPU and to the
    checkpoint's own type elsewhere. The rest goes to transformers as it is.
    """
    if device is not None and device_map is not None:
        raise SettingsError("Give either device (one place) or device_map (several), not both.")
    name = os.fspath(name)
    target = usable_device(device)
    default_dtype_on = target if device_map is None else None
    if quantization_config is not None and device_map is None:
        device_map = {"": target}  # quantized weights cannot be moved once they are loaded
    if device_map is not None and find_spec("accelerate") is None:
        raise MissingExtra("accelerate", "accelerate", "device_map and quantization_config")
    source = name if _is_hub_id(name) else embedded_folder(name) or str(Path(name).expanduser())
    hub = {"revision": revision} if revision is not None else {}
    options: dict[str, Any] = {
        "dtype": _dtype(dtype, default_dtype_on),
        "device_map": device_map,
        "quantization_config": quantization_config,
        "attn_implementation": attn_implementation,
    }
    with _quiet(source), _readable_errors(name):
        raw, _ = transformers.PretrainedConfig.get_config_dict(source, **hub)
        if "model_type" not in raw:
            raise CheckpointError(f"Could not load {name!r}: it has no config.json that names a model_type.")
        commit = extract_commit_hash(cached_file(source, "config.json", **hub), None)
        family = family_of(raw)
        config, model_class = _config_and_class(name, family, raw)
        tokenizer = _tokenizer(source, family, hub)
        given = {key: value for key, value in options.items() if value is not None}
        model, report = model_class.from_pretrained(
            source,
            config=config,
            key_mapping=dict(family.weight_names) or None,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            **given,
            **hub,
        )
        _check_weights(name, family, report)
        if device_map is None and "quantization_config" not in raw:
            model.to(target)
    facts = read_facts(name, family, raw, model, tokenizer, mask_token_id)
    text = Text(tokenizer, facts.end_ids) if tokenizer is not None else None
    running = TransformersLM(
        model, facts, predicts_next=family.predicts_next, full_attention=family.make_config is not None
    )
    if family is MASKED_LM:
        running.takes_padding = _padding_is_harmless(name, running)
    return Checkpoint(name, family, running, text, commit)


def _is_hub_id(name: str) -> bool:
    if name in embedded_names() or Path(name).expanduser().is_dir():
        return False
    if difflib.get_close_matches(name, embedded_names(), n=1, cutoff=0.8):
        raise UnknownName("embedded model", name, embedded_names())
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name) or name.startswith((".", "~")):
        raise CheckpointError(f"There is no folder {name!r}. Check the path, or give a Hub id such as owner/model.")
    return True


def usable_device(device: str | torch.device | None) -> torch.device:
    """The device asked for, or the first accelerator, or the CPU."""
    if device is None:
        accelerator = torch.accelerator.current_accelerator(check_available=True)
        return accelerator or torch.device("cpu")
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise SettingsError(f"Device {str(device)!r} cannot be used here: {error}") from error


def _dtype(dtype: str | torch.dtype | None, device: torch.device | None) -> str | torch.dtype:
    if dtype is None:
        return torch.float32 if device is not None and device.type == "cpu" else "auto"
    if dtype == "auto" or isinstance(dtype, torch.dtype):
        return dtype
    if dtype not in DTYPES:
        raise UnknownName("dtype", dtype, [*DTYPES, "auto"])
    return DTYPES[dtype]


def _config_and_class(name: str, family: Family, raw: dict[str, Any]) -> tuple[Any, Any]:
    if family is not MASKED_LM:
        config = stock_config(family, raw)
        config.dtype = raw.get("dtype", raw.get("torch_dtype"))
        return config, getattr(transformers, family.model_class)
    kind = raw.get("model_type")
    supported = f"Supported: {'; '.join(family.title for family in FAMILIES)}."
    if kind not in transformers.CONFIG_MAPPING:
        raise CheckpointError(
            f"{name!r} has model type {kind!r}, which would need code from the checkpoint; that is never run. "
            f"{supported}"
        )
    config = transformers.CONFIG_MAPPING[kind].from_dict(raw)
    if type(config) not in transformers.MODEL_FOR_MASKED_LM_MAPPING or config.is_encoder_decoder:
        raise CheckpointError(f"{name!r} is a {kind!r} model, which does not fill masks. {supported}")
    return config, transformers.AutoModelForMaskedLM


def _tokenizer(source: str, family: Family, hub: dict[str, Any]) -> Any:
    present = (
        cached_file(source, file, _raise_exceptions_for_missing_entries=False, **hub) for file in TOKENIZER_FILES
    )
    if not any(present):
        return None
    try:
        return getattr(transformers, family.tokenizer_class).from_pretrained(source, trust_remote_code=False, **hub)
    except Exception as error:  # the Rust side raises bare Exceptions
        raise CheckpointError(f"The tokenizer of {source!r} cannot be read: {_first_line(error)}") from error


def _check_weights(name: str, family: Family, report: dict[str, Any]) -> None:
    unexpected = [
        key for key in report["unexpected_keys"] if not any(re.search(p, key) for p in family.ignored_weights)
    ]
    shapes = [str(entry[0] if isinstance(entry, tuple) else entry) for entry in report["mismatched_keys"]]
    problems = {"missing": report["missing_keys"], "unexpected": unexpected, "of another shape": shapes}
    told = "; ".join(f"{len(keys)} {what} ({_some(keys)})" for what, keys in problems.items() if keys)
    if told:
        raise WeightsMismatch(
            f"The weights of {name!r} do not fit its config.json: {told}. Download the checkpoint again, or check that "
            f"it is a complete {family.title} checkpoint."
        )


def _some(keys: Any, most: int = 3) -> str:
    ordered = sorted(keys)
    return ", ".join(ordered[:most]) + (", ..." if len(ordered) > most else "")


def _padding_is_harmless(name: str, model: TransformersLM) -> bool:
    """Whether rows of different length can share a forward; an architecture that takes other inputs is refused."""
    row = torch.full((1, 4), model.facts.mask_id, device=model.device)
    padded = torch.cat([torch.full_like(row[:, :3], model.facts.pad_id), row], dim=1)
    first = torch.zeros(4, dtype=torch.int64, device=model.device)
    column = torch.arange(4, device=model.device)
    try:
        plain = model.hidden(Rows(row, None, first, column)).float()
        behind_padding = model.hidden(Rows(padded, first[:1] + 3, first, column + 3)).float()
        model.logits(plain[:1].to(next(iter(model.backbone.parameters())).dtype))
    except Exception as error:
        raise CheckpointError(f"{name!r} cannot be run as a masked language model: {_first_line(error)}") from error
    return bool((plain - behind_padding).abs().max() <= 0.05 * plain.abs().max())


@contextmanager
def _quiet(source: str) -> Iterator[None]:
    """Loading bars only where someone has to wait and can see them; no warnings about what is checked here anyway."""
    logging = transformers.utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    size = sum(file.stat().st_size for file in Path(source).glob("*.safetensors"))
    if not sys.stderr.isatty() or 0 < size < QUICK:
        logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def _readable_errors(name: str) -> Iterator[None]:
    try:
        yield
    except SoarError:
        raise
    except torch.OutOfMemoryError as error:
        raise CheckpointError(
            f"{name!r} does not fit into memory; try dtype bfloat16, device_map='auto' or a quantization_config."
        ) from error
    except ImportError as error:
        raise CheckpointError(f"Loading {name!r} needs a package that is missing: {_first_line(error)}") from error
    except RuntimeError as error:
        kind = WeightsMismatch if "size" in str(error) else CheckpointError
        raise kind(f"Could not load {name!r}: {error}") from error
    except (OSError, ValueError, SafetensorError) as error:
        raise CheckpointError(
            f"Could not load {name!r}: {_first_line(error)} Give a local folder, a Hub id whose weights are "
            f"safetensors, or an embedded model ({', '.join(embedded_names())})."
        ) from error


def _first_line(error: Exception) -> str:
    told = str(error).strip()
    return told.splitlines()[0] if told else type(error).__name__
