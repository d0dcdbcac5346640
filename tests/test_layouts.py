"""The families' on-disk layouts, at full size and in shards."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file

from soar_dlm.lm import LM, load
from soar_dlm.models.embedded import embedded_folder
from soar_dlm.models.families import DREAM, FAMILIES, LLADA, Family, family_of
from soar_dlm.models.layouts import save_weights
from soar_dlm.models.masked_lm import Rows
from soar_dlm.models.random_checkpoint import write_dream, write_llada
from soar_dlm.models.running import TransformersLM
from soar_dlm.models.stock import stock_config
from tests.checkpoints import edit_weights

LLADA_8B = {
    "model_type": "llada",
    "architectures": ["LLaDAModelLM"],
    "activation_type": "silu",
    "alibi": False,
    "attention_layer_norm": False,
    "block_type": "llama",
    "d_model": 4096,
    "embedding_size": 126464,
    "eos_token_id": 126081,
    "include_bias": False,
    "include_qkv_bias": False,
    "input_emb_norm": False,
    "layer_norm_type": "rms",
    "mask_token_id": 126336,
    "max_sequence_length": 4096,
    "mlp_hidden_size": 12288,
    "mlp_ratio": 4,
    "n_heads": 32,
    "n_kv_heads": 32,
    "n_layers": 32,
    "pad_token_id": 126081,
    "rms_norm_eps": 1e-05,
    "rope": True,
    "rope_theta": 500000.0,
    "scale_logits": False,
    "vocab_size": 126464,
    "weight_tying": False,
}
DREAM_7B = {
    "model_type": "Dream",
    "architectures": ["DreamModel"],
    "attention_dropout": 0.0,
    "bos_token_id": 151643,
    "eos_token_id": 151643,
    "hidden_act": "silu",
    "hidden_size": 3584,
    "initializer_range": 0.02,
    "intermediate_size": 18944,
    "mask_token_id": 151666,
    "max_position_embeddings": 131072,
    "max_window_layers": 28,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "pad_token_id": 151643,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 152064,
}


def published_names(family: Family, layers: int) -> set[str]:
    """The weight names of the checkpoints on the Hub, written out by hand."""
    if family is LLADA:
        parts = ["q_proj", "k_proj", "v_proj", "attn_out", "ff_proj", "up_proj", "ff_out", "attn_norm", "ff_norm"]
        names = {f"model.transformer.blocks.{n}.{part}.weight" for n in range(layers) for part in parts}
        return names | {f"model.transformer.{part}.weight" for part in ("wte", "ln_f", "ff_out")}
    linear = ("self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
    parts = [*linear, "input_layernorm", "post_attention_layernorm"]
    names = {f"model.layers.{n}.{part}.weight" for n in range(layers) for part in parts}
    names |= {
        f"model.layers.{n}.self_attn.{part}_proj.{kind}"
        for n in range(layers)
        for part in "qkv"
        for kind in ("weight", "bias")
    }
    return names | {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"}


def renamed(name: str, family: Family) -> str:
    matching = [(pattern, to) for pattern, to in family.weight_names.items() if re.match(pattern, name)]
    assert len(matching) <= 1, f"{name} is renamed twice"
    return re.sub(*matching[0], name) if matching else name


@pytest.mark.parametrize(
    ("family", "raw", "layers", "parameters"),
    [(LLADA, LLADA_8B, 32, 8_015_581_184), (DREAM, DREAM_7B, 28, 7_615_616_512)],
    ids=["LLaDA-8B", "Dream-7B"],
)
def test_full_size_models_match_the_published_checkpoints(
    family: Family, raw: dict[str, Any], layers: int, parameters: int
) -> None:
    """Every published weight has one place in the stock class, every place is filled, and the count is right."""
    assert family_of(raw) is family
    config = stock_config(family, raw)
    with torch.device("meta"):
        model = getattr(transformers, family.model_class)(config)
    places = dict(model.named_parameters())
    mapped = [renamed(name, family) for name in published_names(family, layers)]
    assert len(mapped) == len(set(mapped)), "two published weights fall on one place"
    assert set(mapped) == set(places)
    assert sum(parameter.numel() for parameter in places.values()) == parameters
    assert config.is_causal is False
    assert config.max_position_embeddings == raw.get("max_sequence_length", raw.get("max_position_embeddings"))
    assert config.rope_parameters["rope_theta"] == raw["rope_theta"]


@pytest.mark.parametrize(
    ("change", "name", "value"),
    [
        ({}, "intermediate_size", 12288),
        ({"mlp_hidden_size": None, "mlp_ratio": 3}, "intermediate_size", 3 * 4096),
        ({"n_kv_heads": 8}, "num_key_value_heads", 8),
        ({"n_kv_heads": None}, "num_key_value_heads", 32),
        ({"n_kv_heads": None, "multi_query_attention": True}, "num_key_value_heads", 1),
        ({"rms_norm_eps": 1e-3}, "rms_norm_eps", 1e-3),
        ({"rms_norm_eps": ...}, "rms_norm_eps", 1e-5),
        ({"rope_theta": 7.0}, "rope_parameters", {"rope_type": "default", "rope_theta": 7.0}),
        ({"rope_theta": ...}, "rope_parameters", {"rope_type": "default", "rope_theta": 10000.0}),
        ({"weight_tying": True}, "tie_word_embeddings", True),
        ({"weight_tying": ...}, "tie_word_embeddings", False),
        ({"vocab_size": 126000}, "vocab_size", 126464),
        ({"embedding_size": None, "vocab_size": 126000}, "vocab_size", 126000),
        ({"bos_token_id": 3}, "bos_token_id", 3),
        ({}, "eos_token_id", 126081),
        ({}, "pad_token_id", 126081),
        ({}, "use_cache", False),
        ({"quantization_config": {"quant_method": "x"}}, "quantization_config", {"quant_method": "x"}),
    ],
)
def test_every_number_of_a_llada_config_reaches_the_stock_class(change: dict[str, Any], name: str, value: Any) -> None:
    raw = {key: setting for key, setting in (LLADA_8B | change).items() if setting is not ...}
    assert getattr(stock_config(LLADA, raw), name) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_key_value_heads", 2),
        ("rms_norm_eps", 1e-3),
        ("tie_word_embeddings", True),
        ("intermediate_size", 99),
        ("max_position_embeddings", 77),
        ("vocab_size", 1000),
        ("eos_token_id", 5),
        ("pad_token_id", 6),
        ("mask_token_id", 7),
    ],
)
def test_every_number_of_a_dream_config_reaches_the_stock_class(name: str, value: Any) -> None:
    assert getattr(stock_config(DREAM, DREAM_7B), name) == DREAM_7B[name]
    assert getattr(stock_config(DREAM, DREAM_7B | {name: value}), name) == value


def test_tied_weights_load_from_the_one_that_is_saved(tmp_path: Path) -> None:
    """A tied LLaDA has no head of its own in its files."""
    folder = write_llada(tmp_path, weight_tying=True)
    edit_weights(folder, lambda weights: weights.pop("model.transformer.ff_out.weight", None))
    model = load(folder, device="cpu").model
    assert isinstance(model, TransformersLM)
    embeddings = load_file(folder / "model.safetensors")["model.transformer.wte.weight"]
    states = torch.randn(2, 64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(model.logits(states), states @ embeddings.T, atol=1e-4, rtol=1e-4)


def test_a_dream_with_a_window_is_not_given_one_mask_for_all_layers(tmp_path: Path) -> None:
    """One prepared mask would let padded rows see more than rows without padding."""
    window = {"use_sliding_window": True, "sliding_window": 2, "max_window_layers": 0}
    lm = load(write_dream(tmp_path, **window), device="cpu").model
    ids = torch.arange(5, 17).unsqueeze(0)
    padded = torch.cat([torch.full((1, 3), lm.facts.pad_id), ids], dim=1)
    where = torch.zeros(1, dtype=torch.int64)
    plain = lm.hidden(Rows(ids, None, where, where + 6))
    torch.testing.assert_close(lm.hidden(Rows(padded, where + 3, where, where + 9)), plain, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("write", [write_llada, write_dream])
@pytest.mark.parametrize("shards", [1, 3])
def test_sharded_safetensors_round_trip(tmp_path: Path, write: Any, shards: int) -> None:
    folder = write(tmp_path / "sharded", shards=shards, seed=4)
    one = write(tmp_path / "one", seed=4)
    assert len(list(folder.glob("*.safetensors"))) == shards
    sharded, whole = load(str(folder)), load(str(one))
    stored = load_file(one / "model.safetensors")
    assert isinstance(sharded.model, TransformersLM)
    loaded = {**dict(sharded.model.backbone.named_parameters(prefix="model")), "lm_head.weight": sharded.model._matrix}
    assert {renamed(name, sharded.family) for name in stored} == set(loaded)
    for name, weight in stored.items():
        assert torch.equal(loaded[renamed(name, sharded.family)], weight), name
    prompts = ["round", "trip"]
    ours, theirs = (lm.generate(prompts, max_new_tokens=8) for lm in (sharded, whole))
    assert [result.token_ids for result in ours] == [result.token_ids for result in theirs]


def test_dream_tokenizer_loads_without_its_remote_code(random_dream: LM) -> None:
    config = json.loads((Path(embedded_folder("random-dream") or "") / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "DreamTokenizer"
    assert "AutoTokenizer" in config["auto_map"]
    text = "Grüße, 世界! <|mask|>\n"
    ids = random_dream.tokenizer(text)["input_ids"]
    assert random_dream.model.facts.mask_id in ids
    assert random_dream.tokenizer.decode(ids) == text


def test_thresholds_are_the_papers() -> None:
    assert LLADA.thresholds == {"probability": 0.95, "margin": 0.9, "neg_entropy": -0.1}
    assert DREAM.thresholds == {"probability": 0.9, "margin": 0.9, "neg_entropy": -0.1}


def test_special_ids(random_llada: LM, random_dream: LM) -> None:
    for lm, eos, turn_end in (
        (random_llada, "<|endoftext|>", "<|eot_id|>"),
        (random_dream, "<|endoftext|>", "<|im_end|>"),
    ):
        vocabulary = lm.tokenizer.get_vocab()
        assert lm.model.facts.end_ids == (vocabulary[eos], vocabulary[turn_end])
        assert lm.model.facts.filler_id == vocabulary[eos]


def test_families_are_distinguished() -> None:
    assert [family_of({"model_type": kind}).name for kind in ("llada", "Dream", "dream", "bert", "x")] == [
        "llada",
        "dream",
        "dream",
        "masked-lm",
        "masked-lm",
    ]
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


def test_shards_cover_all_weights_once(tmp_path: Path) -> None:
    weights = {f"w{n}": torch.full((2,), float(n)) for n in range(7)}
    save_weights(tmp_path, weights, 3)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == 7 * 8
    assert set(index["weight_map"]) == set(weights)
    read = {name: weight for file in tmp_path.glob("*.safetensors") for name, weight in load_file(file).items()}
    assert read.keys() == weights.keys()
