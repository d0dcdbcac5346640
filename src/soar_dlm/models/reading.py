"""From the files of a checkpoint to a model of a stock class, and everything that can be wrong with them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError

from soar_dlm.errors import CheckpointError, SoarError, WeightsMismatch, first_line, told
from soar_dlm.models.embedded import embedded_names
from soar_dlm.models.families import FAMILIES, MASKED_LM, Family, family_of
from soar_dlm.models.source import Source
from soar_dlm.models.stock import checked_config, stock_config
from soar_dlm.models.weight_files import check_index, check_size

QUICK = 2**30
"""Bytes of local weights that load too quickly for a progress bar."""


@dataclass(frozen=True, eq=False)
class Found:
    """A checkpoint before its weights are read: the content of config.json, and the stock class that runs it."""

    source: Source
    raw: dict[str, Any]
    family: Family
    config: Any
    model_class: Any

    @classmethod
    def of(cls, source: Source) -> Found:
        raw, _ = transformers.PretrainedConfig.get_config_dict(source.place, **source.access)
        if not isinstance(raw, dict) or not isinstance(raw.get("model_type"), str):
            raise CheckpointError(f"Could not load {source.name!r}: it has no config.json that names a model_type.")
        check_index(source)
        raw = checked_config(source.name, raw)
        family = family_of(raw)
        config, model_class = _config_and_class(source.name, family, raw)
        check_size(source, model_class, config)
        return cls(source, raw, family, config, model_class)

    def load(self, placement: Mapping[str, Any]) -> Any:
        """The model with its weights."""
        model, report = self.model_class.from_pretrained(
            self.source.place,
            config=self.config,
            key_mapping=dict(self.family.weight_names) or None,
            use_safetensors=True,
            ignore_mismatched_sizes=True,  # they are refused below, by name
            trust_remote_code=False,
            output_loading_info=True,
            **placement,
            **self.source.access,
        )
        _check_weights(self.source.name, self.family, report)
        return model


def _config_and_class(name: str, family: Family, raw: dict[str, Any]) -> tuple[Any, Any]:
    if family is not MASKED_LM:
        config = stock_config(family, raw)
        config.dtype = raw.get("dtype", raw.get("torch_dtype"))
        return config, getattr(transformers, family.model_class)
    kind = raw.get("model_type")
    supported = f"Supported: {'; '.join(family.title for family in FAMILIES)}."
    if kind not in transformers.CONFIG_MAPPING:
        raise CheckpointError(
            f"{name!r} has model type {kind!r}, which would need code from the checkpoint; such code is never run. "
            f"{supported} If you trust the code, load the model with transformers and give load() the model object."
        )
    config = transformers.CONFIG_MAPPING[kind].from_dict(raw)
    if type(config) not in transformers.MODEL_FOR_MASKED_LM_MAPPING or config.is_encoder_decoder:
        raise CheckpointError(f"{name!r} is a {kind!r} model, which does not fill masks. {supported}")
    return config, transformers.AutoModelForMaskedLM


def _check_weights(name: str, family: Family, report: dict[str, Any]) -> None:
    unexpected = [
        key for key in report["unexpected_keys"] if not any(re.search(p, key) for p in family.ignored_weights)
    ]
    shapes = [_misshapen(entry) for entry in report["mismatched_keys"]]
    problems = {"missing": report["missing_keys"], "unexpected": unexpected, "of another shape": shapes}
    found = "; ".join(f"{len(keys)} {what} ({_some(keys)})" for what, keys in problems.items() if keys)
    if found:
        raise WeightsMismatch(
            f"The weights of {name!r} do not fit its config.json: {found}. Download the checkpoint again, or check "
            "that its files are complete and belong together."
        )


def _misshapen(entry: Any) -> str:
    if not isinstance(entry, tuple) or len(entry) != 3:
        return str(entry)
    name, there, wanted = entry
    return f"{name}: {tuple(there)}, not {tuple(wanted)}"


def _some(keys: Any, most: int = 3) -> str:
    ordered = sorted(keys)
    return ", ".join(ordered[:most]) + (", ..." if len(ordered) > most else "")


@contextmanager
def quiet(place: str) -> Iterator[None]:
    """Progress bars only where someone has to wait and can see them; no warnings about what is checked here anyway."""
    logging = transformers.utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    size = sum(file.stat().st_size for file in Path(place).glob("*.safetensors"))
    if not sys.stderr.isatty() or 0 < size < QUICK:
        logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def readable_errors(name: str) -> Iterator[None]:
    try:
        yield
    except SoarError:
        raise
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise CheckpointError(
            f"{name!r} does not fit into memory; try dtype bfloat16, device_map='auto' or a quantization_config."
        ) from error
    except ImportError as error:
        raise CheckpointError(f"Loading {name!r} needs a package that is missing: {first_line(error)}.") from error
    except (OSError, ValueError, SafetensorError) as error:
        raise CheckpointError(
            f"Could not load {name!r}: {first_line(error)}. Give a local folder, a Hub id whose weights are "
            f"safetensors, or an embedded model ({', '.join(embedded_names())})."
        ) from error
    except Exception as error:  # files may hold anything, and transformers expects its own
        raise CheckpointError(
            f"Could not load {name!r}: {type(error).__name__}: {told(error)}. Check that its files are complete, "
            "undamaged and belong together."
        ) from error
