"""The files of a checkpoint as the families publish them: config.json, safetensors, tokenizer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from soar_dlm import files
from soar_dlm.errors import InputFileError
from soar_dlm.files import write_json, write_text
from soar_dlm.models.families import LLADA, Family

_DREAM_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|beginoftext|>", "<|mask|>")

SPECIAL_TOKENS = {
    "llada": ("<|startoftext|>", "<|endoftext|>", "<|eot_id|>", "<|mdm_mask|>"),
    "dream": _DREAM_TOKENS,
    "dreamon": (*_DREAM_TOKENS, "<|expand|>"),
}
"""The special tokens of each family that the library can write."""


@dataclass(frozen=True)
class Shape:
    """The size of a transformer.

    ``inner`` is the width of the gated layer. ``rope_theta`` sets how slowly the slowest position angle turns; None
    means the value of the published models, which are made for long texts.
    """

    vocabulary: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    inner: int
    context: int
    rope_theta: float | None = None


def layout_config(family: Family, shape: Shape, vocabulary: Mapping[str, int]) -> dict[str, Any]:
    """The content of config.json, in the family's own terms; ``vocabulary`` holds its special tokens."""
    return {LLADA.name: _llada_config}.get(family.name, _dream_config)(shape, vocabulary)


def _llada_config(shape: Shape, vocabulary: Mapping[str, int]) -> dict[str, Any]:
    return {
        "model_type": "llada",
        "architectures": ["LLaDAModelLM"],
        "block_type": "llama",
        "layer_norm_type": "rms",
        "activation_type": "silu",
        "rope": True,
        "rope_theta": shape.rope_theta or 500000.0,
        "rms_norm_eps": 1e-5,
        "d_model": shape.width,
        "n_layers": shape.layers,
        "n_heads": shape.heads,
        "n_kv_heads": shape.kv_heads,
        "mlp_hidden_size": shape.inner,
        "max_sequence_length": shape.context,
        "vocab_size": shape.vocabulary,
        "embedding_size": shape.vocabulary,
        "weight_tying": False,
        "mask_token_id": vocabulary["<|mdm_mask|>"],
        "eos_token_id": vocabulary["<|endoftext|>"],
        "pad_token_id": vocabulary["<|endoftext|>"],
        "torch_dtype": "float32",
    }


def _dream_config(shape: Shape, vocabulary: Mapping[str, int]) -> dict[str, Any]:
    return {
        "model_type": "Dream",
        "architectures": ["DreamModel"],
        "auto_map": {"AutoConfig": "configuration_dream.DreamConfig", "AutoModel": "modeling_dream.DreamModel"},
        "hidden_act": "silu",
        "hidden_size": shape.width,
        "intermediate_size": shape.inner,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "max_position_embeddings": shape.context,
        "max_window_layers": 28,
        "rms_norm_eps": 1e-6,
        "rope_theta": shape.rope_theta or 1000000.0,
        "rope_scaling": None,
        "sliding_window": None,
        "use_sliding_window": False,
        "tie_word_embeddings": False,
        "vocab_size": shape.vocabulary,
        "mask_token_id": vocabulary["<|mask|>"],
        "bos_token_id": vocabulary["<|beginoftext|>"],
        "eos_token_id": vocabulary["<|endoftext|>"],
        "pad_token_id": vocabulary["<|endoftext|>"],
        "torch_dtype": "float32",
    }


def published_name(family: Family, name: str) -> str:
    """The name that a family publishes a weight of its stock class under."""
    for pattern, replacement in family.saved_names.items():
        published, found = re.subn(pattern, replacement, name)
        if found:
            return published
    return name


def saved_names(family: Family, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a stock class under the names that the family publishes them under."""
    return {published_name(family, name): weight for name, weight in weights.items()}


def save_weights(folder: Path, weights: dict[str, Tensor], shards: int = 1) -> None:
    """Write model.safetensors, or several files with an index, as large checkpoints have."""
    if shards == 1:
        _save_whole(folder / "model.safetensors", weights)
        return
    names = sorted(weights)
    index: dict[str, str] = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = {name: weights[name] for name in names[shard::shards]}
        _save_whole(folder / file, part)
        index |= dict.fromkeys(part, file)
    size = sum(weight.nbytes for weight in weights.values())
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": size}, "weight_map": index})


def _save_whole(path: Path, weights: dict[str, Tensor]) -> None:
    with files.replacing(path) as fresh:
        try:
            save_file(weights, fresh, {"format": "pt"})
        except SafetensorError as error:  # what the disk said, in other words
            raise InputFileError(f"Cannot write {path}: {error}.") from error


def save_tokenizer(folder: Path, family: Family, tokenizer: Tokenizer) -> None:
    """Write the tokenizer as the family publishes it: LLaDA one file, Dream vocabulary, merges and remote code."""
    {LLADA.name: _save_llada_tokenizer}.get(family.name, _save_dream_tokenizer)(folder, family, tokenizer)


def _save_llada_tokenizer(folder: Path, family: Family, tokenizer: Tokenizer) -> None:
    write_text(folder / "tokenizer.json", tokenizer.to_str(pretty=True))
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": "<|startoftext|>",
            "eos_token": "<|endoftext|>",
            "pad_token": "<|endoftext|>",
            "clean_up_tokenization_spaces": False,
            "chat_template": _CHAT.format(start="<|startoftext|>", end="<|eot_id|>"),
        },
    )


def _save_dream_tokenizer(folder: Path, family: Family, tokenizer: Tokenizer) -> None:
    special = {token: tokenizer.token_to_id(token) for token in SPECIAL_TOKENS[family.name]}
    model = json.loads(tokenizer.to_str())["model"]
    write_json(folder / "vocab.json", {token: place for token, place in model["vocab"].items() if token not in special})
    merges = [" ".join(pair) if isinstance(pair, list) else pair for pair in model["merges"]]
    write_text(folder / "merges.txt", "\n".join(["#version: 0.2", *merges]) + "\n")
    write_json(folder / "added_tokens.json", special)
    as_published = {"special": True, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False}
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "DreamTokenizer",
            "auto_map": {"AutoTokenizer": ["tokenization_dream.DreamTokenizer", None]},
            "added_tokens_decoder": {
                str(place): {"content": token, **as_published} for token, place in special.items()
            },
            "bos_token": "<|beginoftext|>",
            "eos_token": "<|endoftext|>",
            "pad_token": "<|endoftext|>",
            "mask_token": "<|mask|>",
            "clean_up_tokenization_spaces": False,
            "chat_template": _CHAT.format(start="<|im_start|>", end="<|im_end|>"),
        },
    )


_CHAT = (
    "{{% for message in messages %}}{start}{{{{ message['role'] }}}}\n{{{{ message['content'] }}}}{end}{{% endfor %}}"
    "{{% if add_generation_prompt %}}{start}assistant\n{{% endif %}}"
)
