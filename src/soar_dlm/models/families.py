"""The model families, one table entry each: which class of transformers runs them, and what their names mean.

LLaDA is a Llama and Dream a Qwen2 with attention in both directions: with ``config.is_causal = False`` transformers'
own classes give the logits of the published code, so no modelling code is copied and no remote code is run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from soar_dlm.errors import CheckpointError, shown

Config = dict[str, Any]

PAPER_THRESHOLDS = {"probability": 0.95, "margin": 0.9, "neg_entropy": -0.1}


@dataclass(frozen=True)
class Family:
    """How checkpoints of one kind are read.

    ``model_class`` is a class of transformers; ``make_config`` turns config.json into the arguments of its config.
    ``weight_names`` maps names in the checkpoint to names in the class, as pattern -> replacement with at most one
    capture group; ``saved_names`` maps them back. ``predicts_next`` marks models whose output at position i is about
    position i + 1. ``mask_tokens``, ``end_tokens``, ``expand_tokens`` and ``delete_tokens`` are looked up in the
    tokenizer. Weights that match ``ignored_weights`` may remain unused.
    """

    name: str
    title: str
    model_types: tuple[str, ...]
    model_class: str
    tokenizer_class: str
    examples: tuple[str, ...]
    make_config: Callable[[Config], Config] | None = None
    weight_names: Mapping[str, str] = field(default_factory=dict)
    saved_names: Mapping[str, str] = field(default_factory=dict)
    predicts_next: bool = False
    mask_tokens: tuple[str, ...] = ()
    end_tokens: tuple[str, ...] = ()
    expand_tokens: tuple[str, ...] = ()
    delete_tokens: tuple[str, ...] = ()
    ignored_weights: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=lambda: PAPER_THRESHOLDS)


def _llada_config(config: Config) -> Config:
    required = {
        "block_type": "llama",
        "layer_norm_type": "rms",
        "activation_type": "silu",
        "rope": True,
        "alibi": False,
        "include_bias": False,
        "include_qkv_bias": False,
        "input_emb_norm": False,
        "attention_layer_norm": False,
        "scale_logits": False,
    }
    for key, value in required.items():
        if config.get(key, value) != value:
            raise CheckpointError(
                f"This LLaDA checkpoint has {key}={shown(config[key])}; only {key}={value!r}, as in the published "
                "LLaDA models, can be run."
            )
    heads = config["n_heads"]
    kv_heads = config.get("n_kv_heads") or (1 if config.get("multi_query_attention") else heads)
    return {
        "vocab_size": config.get("embedding_size") or config["vocab_size"],
        "hidden_size": config["d_model"],
        "intermediate_size": config.get("mlp_hidden_size") or config["mlp_ratio"] * config["d_model"],
        "num_hidden_layers": config["n_layers"],
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "max_position_embeddings": config["max_sequence_length"],
        "rms_norm_eps": config.get("rms_norm_eps", 1e-5),
        "rope_parameters": {"rope_type": "default", "rope_theta": config.get("rope_theta", 10000.0)},
        "tie_word_embeddings": config.get("weight_tying", False),
        **{key: config.get(key) for key in ("bos_token_id", "eos_token_id", "pad_token_id")},
    }


def _dream_config(config: Config) -> Config:
    own = {"model_type", "architectures", "auto_map", "transformers_version", "torch_dtype", "dtype"}
    return {key: value for key, value in config.items() if key not in own}


_LLADA_TOP = {"wte": "model.embed_tokens", "ln_f": "model.norm", "ff_out": "lm_head"}
_LLADA_BLOCK = {
    "q_proj": "self_attn.q_proj",
    "k_proj": "self_attn.k_proj",
    "v_proj": "self_attn.v_proj",
    "attn_out": "self_attn.o_proj",
    "ff_proj": "mlp.gate_proj",
    "up_proj": "mlp.up_proj",
    "ff_out": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ff_norm": "post_attention_layernorm",
}


def _llada_weight_names() -> dict[str, str]:
    names = {rf"^model\.transformer\.{theirs}\.": f"{stock}." for theirs, stock in _LLADA_TOP.items()}
    for theirs, stock in _LLADA_BLOCK.items():
        names[rf"^model\.transformer\.blocks\.(\d+)\.{theirs}\."] = rf"model.layers.\1.{stock}."
    return names


def _llada_saved_names() -> dict[str, str]:
    names = {rf"^{re.escape(stock)}\.": f"model.transformer.{theirs}." for theirs, stock in _LLADA_TOP.items()}
    for theirs, stock in _LLADA_BLOCK.items():
        names[rf"^model\.layers\.(\d+)\.{re.escape(stock)}\."] = rf"model.transformer.blocks.\1.{theirs}."
    return names


LLADA = Family(
    name="llada",
    title="LLaDA (Base, Instruct, 1.5)",
    model_types=("llada",),
    model_class="LlamaForCausalLM",
    tokenizer_class="PreTrainedTokenizerFast",
    examples=("GSAI-ML/LLaDA-8B-Base", "GSAI-ML/LLaDA-8B-Instruct", "GSAI-ML/LLaDA-1.5"),
    make_config=_llada_config,
    weight_names=_llada_weight_names(),
    saved_names=_llada_saved_names(),
    mask_tokens=("<|mdm_mask|>",),
    end_tokens=("<|endoftext|>", "<|eot_id|>"),
)

DREAM = Family(
    name="dream",
    title="Dream (Base, Instruct, Coder, DreamOn and fine-tunes)",
    model_types=("Dream", "dream"),
    model_class="Qwen2ForCausalLM",
    tokenizer_class="Qwen2Tokenizer",
    examples=("Dream-org/Dream-v0-Base-7B", "Dream-org/Dream-v0-Instruct-7B", "Dream-org/DreamOn-v0-7B"),
    make_config=_dream_config,
    predicts_next=True,
    mask_tokens=("<|mask|>",),
    end_tokens=("<|endoftext|>", "<|im_end|>"),
    expand_tokens=("<|expand|>",),
    delete_tokens=("<|delete|>",),
    thresholds={**PAPER_THRESHOLDS, "probability": 0.9},
)

DREAMON = replace(DREAM, name="dreamon", title="DreamOn", model_types=(), examples=("Dream-org/DreamOn-v0-7B",))
"""Dream with an expand token, for writing such checkpoints; when read, they are Dream."""

MASKED_LM = Family(
    name="masked-lm",
    title="Any AutoModelForMaskedLM (BERT, RoBERTa, ModernBERT, ...)",
    model_types=(),
    model_class="AutoModelForMaskedLM",
    tokenizer_class="AutoTokenizer",
    examples=("google-bert/bert-base-uncased", "FacebookAI/roberta-base", "answerdotai/ModernBERT-large"),
    ignored_weights=(r"^cls\.seq_relationship\.", r"(^|\.)pooler\.", r"\.position_ids$", r"^nsp_head\."),
)

FAMILIES = (LLADA, DREAM, MASKED_LM)


def family_of(config: Config) -> Family:
    """The family that a config.json belongs to; the generic one for a type that no other family claims."""
    for family in FAMILIES:
        if config.get("model_type") in family.model_types:
            return family
    return MASKED_LM
