"""From a family's config.json to the class of transformers that runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import transformers

from soar_dlm.errors import CheckpointError, SoarError, shown, told
from soar_dlm.models.families import FAMILIES, Family

MOST = {"layer": 10_000, "num_labels": 100_000}
"""Counts in a config.json for which transformers makes a list as long, by what their names contain."""
IGNORED = ("transformers_weights", "attn_implementation", "_attn_implementation", "_attn_implementation_internal")
"""What a config.json could use to choose files to open or kernels to fetch; that is the caller's to choose."""


def checked_config(name: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """The content of config.json without what it may not decide, and with counts that can be counted to."""
    for key, value in raw.items():
        for part, most in MOST.items():
            if part in key and isinstance(value, (int, float)) and value > most:
                raise CheckpointError(f"config.json of {name!r} has {key}={shown(value)}, more than any model has.")
    return {key: value for key, value in raw.items() if key not in IGNORED}


def stock_config(family: Family, raw: dict[str, Any]) -> transformers.PretrainedConfig:
    """The stock config of a LLaDA or Dream checkpoint, with attention in both directions."""
    assert family.make_config is not None
    model_class = getattr(transformers, family.model_class)
    try:
        config: transformers.PretrainedConfig = model_class.config_class(**family.make_config(raw))
    except KeyError as error:
        raise CheckpointError(f"config.json names a {family.name} model but lacks {error}.") from error
    except SoarError:
        raise
    except Exception as error:  # fields of the wrong type
        raise CheckpointError(
            f"config.json does not describe a {family.name} model: {type(error).__name__}: {told(error)}."
        ) from error
    config.is_causal = False
    config.use_cache = False
    if "quantization_config" in raw:
        config.quantization_config = raw["quantization_config"]
    return config


def is_own_class(model: Any) -> bool:
    """Whether a model is of a class that LLaDA or Dream run as; its head is ``lm_head`` and nothing else."""
    own = (getattr(transformers, family.model_class) for family in FAMILIES if family.make_config is not None)
    return type(model) in own


def has_full_attention(model: Any) -> bool:
    """Whether every layer is known to attend to the whole row, so that one mask serves them all."""
    layers = getattr(model.config, "layer_types", None) or []
    return is_own_class(model) and all(kind == "full_attention" for kind in layers)


def look_both_ways(model: Any) -> None:
    """Clear the causal flag of every attention layer: kernels that get no mask go by it, whatever the config says."""
    for module in model.modules():
        if hasattr(module, "is_causal"):
            module.is_causal = False


def new_model(family: Family, raw: dict[str, Any], seed: int) -> Any:
    """A stock model with fresh weights from a seed, in float32 on the CPU.

    Embeddings start at scale 1 and every layer adds nothing at first, so that the tokens themselves are visible from
    the start; with the small embeddings that the class starts with, the layers drown them out and learning takes twice
    as long.
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        model = getattr(transformers, family.model_class)(stock_config(family, raw)).float()
        model.model.embed_tokens.weight.normal_()
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
    look_both_ways(model)
    return model
