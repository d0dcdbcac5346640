"""From a family's config.json to the transformers class that runs it."""

from __future__ import annotations

from typing import Any

import torch
import transformers

from soar_dlm.errors import CheckpointError
from soar_dlm.models.families import Family


def stock_config(family: Family, raw: dict[str, Any]) -> transformers.PretrainedConfig:
    """The stock config of a LLaDA or Dream checkpoint, set to look both ways."""
    assert family.make_config is not None
    model_class = getattr(transformers, family.model_class)
    try:
        config: transformers.PretrainedConfig = model_class.config_class(**family.make_config(raw))
    except KeyError as error:
        raise CheckpointError(f"config.json names a {family.name} model but lacks {error}.") from error
    config.is_causal = False
    config.use_cache = False
    if "quantization_config" in raw:
        config.quantization_config = raw["quantization_config"]
    return config


def look_both_ways(model: Any) -> None:
    """Tell every attention layer; kernels that get no mask go by this flag."""
    for module in model.modules():
        if hasattr(module, "is_causal"):
            module.is_causal = False


def new_model(family: Family, raw: dict[str, Any], seed: int) -> Any:
    """A stock model with fresh weights from a seed, in float32 on the CPU.

    Embeddings start at scale 1 and every layer adds nothing at first, so that what a token is stands out from the
    start; with the small embeddings of the class's own start, layers drown it out and learning takes twice as long.
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
