"""The shipped model: what is in its folder, what it reads, and that stock code reads it the same way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

from soar_dlm.lm import LM, load
from soar_dlm.models.embedded import embedded_folder
from soar_dlm.models.masked_lm import Rows
from soar_dlm.search.soar import Soar
from soar_dlm.tasks.catalogue import make_task
from soar_dlm.train.folder import RunFolder
from soar_dlm.train.recipe import read_recipe

FOLDER = Path(embedded_folder("mini-llada") or "")
MEASURED = ("mini-gsm", "mini-code", "mini-sudoku")
MOST_BYTES = 16 * 10**6


@pytest.fixture(scope="module")
def lm() -> LM:
    return load("mini-llada", device="cpu")


def stock_llama() -> LlamaForCausalLM:
    """The weights in transformers' own class, put there by hand, without anything of the library."""
    told = json.loads((FOLDER / "config.json").read_text())
    config = LlamaConfig(
        vocab_size=told["embedding_size"],
        hidden_size=told["d_model"],
        intermediate_size=told["mlp_hidden_size"],
        num_hidden_layers=told["n_layers"],
        num_attention_heads=told["n_heads"],
        num_key_value_heads=told["n_kv_heads"],
        max_position_embeddings=told["max_sequence_length"],
        rms_norm_eps=told["rms_norm_eps"],
        rope_parameters={"rope_type": "default", "rope_theta": told["rope_theta"]},
        tie_word_embeddings=False,
        attn_implementation="eager",
    )
    model = LlamaForCausalLM(config).eval()
    theirs = {
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
    weights = load_file(FOLDER / "model.safetensors")
    top = {"wte": "model.embed_tokens", "ln_f": "model.norm", "ff_out": "lm_head"}
    renamed = {f"{stock}.weight": weights[f"model.transformer.{name}.weight"] for name, stock in top.items()}
    for layer in range(told["n_layers"]):
        for name, stock in theirs.items():
            renamed[f"model.layers.{layer}.{stock}.weight"] = weights[f"model.transformer.blocks.{layer}.{name}.weight"]
    model.load_state_dict(renamed)
    return model


def both_logits(lm: LM, name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The first test problem of a task on its empty canvas, through the library and through transformers' Llama.

    Two float32[L, V]: for every position of prompt and canvas, the logits over the vocabulary.
    """
    task = make_task(name)
    ids = lm.tokenizer(task.distinct("test", 1)[0].prompt)["input_ids"] + [lm.model.facts.mask_id] * task.canvas
    rows = torch.tensor([ids])
    everything = torch.zeros(1, 1, len(ids), len(ids))  # an additive mask that hides nothing: look both ways
    with torch.inference_mode():
        expected = stock_llama()(input_ids=rows, attention_mask=everything).logits[0]
        column = torch.arange(len(ids))
        found = lm.model.logits(lm.model.hidden(Rows(rows, None, torch.zeros_like(column), column)))
    return found, expected


@pytest.mark.parametrize("name", MEASURED)
def test_transformers_own_llama_gives_the_same_logits(lm: LM, name: str) -> None:
    found, expected = both_logits(lm, name)
    assert torch.allclose(found, expected, atol=1e-4)


def test_what_is_shipped_is_small_and_complete() -> None:
    assert {file.name for file in FOLDER.iterdir()} >= {
        "README.md",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert sum(file.stat().st_size for file in FOLDER.rglob("*") if file.is_file()) <= MOST_BYTES
    recipe = read_recipe(Path(__file__).parent.parent / "recipes" / "mini-llada.toml")
    assert json.loads((FOLDER / "training" / "recipe.json").read_text()) == json.loads(json.dumps(recipe.as_dict()))
    assert max(entry.get("step", 0) for entry in RunFolder(FOLDER).entries()) == recipe.steps


@pytest.mark.parametrize("text", ["naïve ☃ \u0000 <b>", "def f(x):\n\treturn x", "12345 007", "  a  b\n\n   c"])
def test_any_text_survives_its_tokenizer(lm: LM, text: str) -> None:
    assert lm.tokenizer.decode(lm.tokenizer(text)["input_ids"]) == text


def test_small_numbers_are_single_tokens(lm: LM) -> None:
    for number in range(100):
        assert len(lm.tokenizer(f" {number}")["input_ids"]) == len(lm.tokenizer(f"{number}")["input_ids"]) == 1


@pytest.mark.parametrize("name", MEASURED)
def test_it_solves_held_out_problems(lm: LM, name: str) -> None:
    task = make_task(name)
    problems = task.distinct("validation", 24)
    results = lm.generate(
        [problem.prompt for problem in problems], Soar(beam=2, threshold=0.99), max_new_tokens=task.canvas
    )
    assert sum(task.all_correct(problems, [result.text for result in results])) >= 10
