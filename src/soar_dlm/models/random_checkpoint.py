"""Small random-weight checkpoints in the real layouts, with a byte-level tokenizer: same files, same names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())


def write_llada(folder: str | Path, *, seed: int = 0, shards: int = 1, **changes: Any) -> Path:
    """A LLaDA checkpoint: ``changes`` override entries of config.json."""
    special = ["<|startoftext|>", "<|endoftext|>", "<|eot_id|>", "<|mdm_mask|>"]
    vocabulary = _vocabulary(special)
    config = {
        "model_type": "llada",
        "architectures": ["LLaDAModelLM"],
        "block_type": "llama",
        "layer_norm_type": "rms",
        "activation_type": "silu",
        "rope": True,
        "rope_theta": 500000.0,
        "rms_norm_eps": 1e-5,
        "d_model": 64,
        "n_layers": 2,
        "n_heads": 4,
        "n_kv_heads": 4,
        "mlp_hidden_size": 160,
        "max_sequence_length": 1024,
        "vocab_size": 264,
        "embedding_size": 264,
        "weight_tying": False,
        "mask_token_id": vocabulary["<|mdm_mask|>"],
        "eos_token_id": vocabulary["<|endoftext|>"],
        "pad_token_id": vocabulary["<|endoftext|>"],
        "torch_dtype": "float32",
        **changes,
    }
    width, inner, rows = config["d_model"], config["mlp_hidden_size"], config["embedding_size"]
    key_width = width // config["n_heads"] * config["n_kv_heads"]
    shapes: dict[str, tuple[int, ...]] = {
        "model.transformer.wte.weight": (rows, width),
        "model.transformer.ln_f.weight": (width,),
        "model.transformer.ff_out.weight": (rows, width),
    }
    for layer in range(config["n_layers"]):
        block = f"model.transformer.blocks.{layer}."
        shapes |= {
            f"{block}q_proj.weight": (width, width),
            f"{block}k_proj.weight": (key_width, width),
            f"{block}v_proj.weight": (key_width, width),
            f"{block}attn_out.weight": (width, width),
            f"{block}ff_proj.weight": (inner, width),
            f"{block}up_proj.weight": (inner, width),
            f"{block}ff_out.weight": (width, inner),
            f"{block}attn_norm.weight": (width,),
            f"{block}ff_norm.weight": (width,),
        }
    weights = random_weights(shapes, seed)
    _prefer_readable(weights["model.transformer.ff_out.weight"], vocabulary)
    path = _write(folder, config, weights, shards)
    _bare_tokenizer(vocabulary, special).save(str(path / "tokenizer.json"))
    _json(
        path / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": "<|startoftext|>",
            "eos_token": "<|endoftext|>",
            "pad_token": "<|endoftext|>",
            "clean_up_tokenization_spaces": False,
            "chat_template": _CHAT.format(start="<|startoftext|>", end="<|eot_id|>"),
        },
    )
    return path


def write_dream(folder: str | Path, *, seed: int = 0, shards: int = 1, **changes: Any) -> Path:
    """A Dream checkpoint, its tokenizer in vocab.json and merges.txt and declared as remote code, as published."""
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|beginoftext|>", "<|mask|>"]
    vocabulary = _vocabulary(special)
    config = {
        "model_type": "Dream",
        "architectures": ["DreamModel"],
        "auto_map": {"AutoConfig": "configuration_dream.DreamConfig", "AutoModel": "modeling_dream.DreamModel"},
        "hidden_act": "silu",
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 1024,
        "max_window_layers": 28,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "rope_scaling": None,
        "sliding_window": None,
        "use_sliding_window": False,
        "tie_word_embeddings": False,
        "vocab_size": 264,
        "mask_token_id": vocabulary["<|mask|>"],
        "bos_token_id": vocabulary["<|beginoftext|>"],
        "eos_token_id": vocabulary["<|endoftext|>"],
        "pad_token_id": vocabulary["<|endoftext|>"],
        "torch_dtype": "float32",
        **changes,
    }
    width, inner, rows = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    key_width = width // config["num_attention_heads"] * config["num_key_value_heads"]
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (rows, width),
        "model.norm.weight": (width,),
        "lm_head.weight": (rows, width),
    }
    for layer in range(config["num_hidden_layers"]):
        block = f"model.layers.{layer}."
        for part, size in (("q", width), ("k", key_width), ("v", key_width)):
            shapes[f"{block}self_attn.{part}_proj.weight"] = (size, width)
            shapes[f"{block}self_attn.{part}_proj.bias"] = (size,)
        shapes |= {
            f"{block}self_attn.o_proj.weight": (width, width),
            f"{block}mlp.gate_proj.weight": (inner, width),
            f"{block}mlp.up_proj.weight": (inner, width),
            f"{block}mlp.down_proj.weight": (width, inner),
            f"{block}input_layernorm.weight": (width,),
            f"{block}post_attention_layernorm.weight": (width,),
        }
    weights = random_weights(shapes, seed)
    _prefer_readable(weights["lm_head.weight"], vocabulary)
    path = _write(folder, config, weights, shards)
    plain = {token: place for token, place in vocabulary.items() if token not in special}
    _json(path / "vocab.json", plain)
    (path / "merges.txt").write_text("#version: 0.2\n")
    _json(path / "added_tokens.json", {token: vocabulary[token] for token in special})
    _json(
        path / "tokenizer_config.json",
        {
            "tokenizer_class": "DreamTokenizer",
            "auto_map": {"AutoTokenizer": ["tokenization_dream.DreamTokenizer", None]},
            "added_tokens_decoder": {
                str(vocabulary[token]): {
                    "content": token,
                    "special": True,
                    "lstrip": False,
                    "rstrip": False,
                    "normalized": False,
                    "single_word": False,
                }
                for token in special
            },
            "bos_token": "<|beginoftext|>",
            "eos_token": "<|endoftext|>",
            "pad_token": "<|endoftext|>",
            "mask_token": "<|mask|>",
            "clean_up_tokenization_spaces": False,
            "chat_template": _CHAT.format(start="<|im_start|>", end="<|im_end|>"),
        },
    )
    return path


_CHAT = (
    "{{% for message in messages %}}{start}{{{{ message['role'] }}}}\n{{{{ message['content'] }}}}{end}{{% endfor %}}"
    "{{% if add_generation_prompt %}}{start}assistant\n{{% endif %}}"
)


def random_weights(shapes: dict[str, tuple[int, ...]], seed: int) -> dict[str, Tensor]:
    """Norms at 1, biases at 0, matrices normal; the head is scaled so that confidences spread over (0, 1)."""
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
    """Turn down the rows of all tokens but readable characters and the EOS, so that the noise can be looked at."""
    loud = [place for token, place in vocabulary.items() if "!" <= token <= "~" or token in ("Ġ", "<|endoftext|>")]
    gain = torch.full((len(head), 1), 0.2)
    gain[loud] = 1.0
    head.mul_(gain)


def save_shards(folder: Path, weights: dict[str, Tensor], shards: int) -> None:
    """model.safetensors, or several files with an index, as large checkpoints have."""
    if shards == 1:
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
        return
    names = sorted(weights)
    index: dict[str, str] = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = {name: weights[name] for name in names[shard::shards]}
        save_file(part, folder / file, {"format": "pt"})
        index |= dict.fromkeys(part, file)
    size = sum(weight.nbytes for weight in weights.values())
    _json(folder / "model.safetensors.index.json", {"metadata": {"total_size": size}, "weight_map": index})


def _vocabulary(special: list[str]) -> dict[str, int]:
    return {token: place for place, token in enumerate([*BYTES, *special])}


def _bare_tokenizer(vocabulary: dict[str, int], special: list[str]) -> Tokenizer:
    plain = {token: place for token, place in vocabulary.items() if token not in special}
    tokenizer = Tokenizer(models.BPE(vocab=plain, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    return tokenizer


def _write(folder: str | Path, config: dict[str, Any], weights: dict[str, Tensor], shards: int) -> Path:
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    _json(path / "config.json", config)
    save_shards(path, weights, shards)
    return path


def _json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n")
