"""Small checkpoints with random weights in the real layouts (same files, same names) and a byte-level tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

from soar_dlm.files import write_json
from soar_dlm.models.families import DREAM, DREAMON, LLADA, Family
from soar_dlm.models.layouts import (
    SPECIAL_TOKENS,
    Shape,
    layout_config,
    save_tokenizer,
    save_weights,
    saved_names,
)
from soar_dlm.models.stock import stock_config


def write_llada(folder: str | Path, *, seed: int = 0, shards: int = 1, **changes: Any) -> Path:
    """A LLaDA checkpoint; ``changes`` override entries of config.json."""
    return _write(folder, LLADA, 4, seed, shards, changes)


def write_dream(folder: str | Path, *, seed: int = 0, shards: int = 1, **changes: Any) -> Path:
    """A Dream checkpoint; as published, the tokenizer is in vocab.json and merges.txt and declared as remote code."""
    return _write(folder, DREAM, 2, seed, shards, changes)


def write_dreamon(folder: str | Path, *, seed: int = 0, shards: int = 1, **changes: Any) -> Path:
    """A Dream checkpoint with an expand token, as DreamOn is published."""
    return _write(folder, DREAMON, 2, seed, shards, changes)


def _write(folder: str | Path, family: Family, kv_heads: int, seed: int, shards: int, changes: dict[str, Any]) -> Path:
    tokenizer = _bare_tokenizer(SPECIAL_TOKENS[family.name])
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    shape = Shape(vocabulary=264, width=64, layers=2, heads=4, kv_heads=kv_heads, inner=160, context=1024)
    config = layout_config(family, shape, vocabulary) | changes
    with torch.device("meta"):
        model = getattr(transformers, family.model_class)(stock_config(family, config))
    shapes = {name: tuple(weight.shape) for name, weight in saved_names(family, model.state_dict()).items()}
    weights = random_weights(shapes, seed)
    head = "model.transformer.ff_out.weight" if family is LLADA else "lm_head.weight"
    _prefer_readable(weights[head], vocabulary)
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    write_json(path / "config.json", config)
    save_weights(path, weights, shards)
    save_tokenizer(path, family, tokenizer)
    return path


def random_weights(shapes: dict[str, tuple[int, ...]], seed: int) -> dict[str, Tensor]:
    """Norms are 1, biases 0, matrices normal; the head is scaled so that confidences spread over (0, 1)."""
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, shape in sorted(shapes.items()):
        if name.endswith(".bias"):
            weights[name] = torch.zeros(shape)
        elif len(shape) == 1:
            weights[name] = torch.ones(shape)
        else:
            head = name in ("model.transformer.ff_out.weight", "lm_head.weight")
            spread = 1.0 if "wte" in name or "embed_tokens" in name else (5.0 if head else 2.0) * shape[1] ** -0.5
            weights[name] = torch.randn(shape, generator=generator) * spread
    return weights


def _prefer_readable(head: Tensor, vocabulary: dict[str, int]) -> None:
    """Turn down the rows of all tokens but readable ones, EOS and expand, so that the nonsense can be looked at."""
    named = ("Ġ", "<|endoftext|>", "<|expand|>")
    loud = [place for token, place in vocabulary.items() if "!" <= token <= "~" or token in named]
    gain = torch.full((len(head), 1), 0.2)
    gain[loud] = 1.0
    head.mul_(gain)


def _bare_tokenizer(special: tuple[str, ...]) -> Tokenizer:
    plain = {token: place for place, token in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=plain, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(special))
    return tokenizer
