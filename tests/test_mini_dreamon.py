"""The shipped model that fills blanks: what is in its folder, that stock code reads it, and what it can do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import Qwen2Config, Qwen2ForCausalLM

from soar_dlm.lm import LM, load
from soar_dlm.models.embedded import embedded_folder
from soar_dlm.models.masked_lm import Rows
from soar_dlm.search.soar import Soar
from soar_dlm.solving import solve
from soar_dlm.tasks.mini_infill import MiniInfill
from soar_dlm.train.folder import RunFolder
from soar_dlm.train.recipe import read_recipe

FOLDER = Path(embedded_folder("mini-dreamon") or "")
MOST_BYTES = 16 * 10**6
TASK = MiniInfill()


@pytest.fixture(scope="module")
def lm() -> LM:
    return load("mini-dreamon", device="cpu")


def test_transformers_own_qwen2_gives_the_same_logits_one_to_the_left(lm: LM) -> None:
    told = json.loads((FOLDER / "config.json").read_text())
    names = [
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
    ]
    config = Qwen2Config(
        **{name: told[name] for name in [*names, "max_position_embeddings", "rms_norm_eps"]},
        rope_parameters={"rope_type": "default", "rope_theta": told["rope_theta"]},
        tie_word_embeddings=False,
        attn_implementation="eager",
    )
    stock = Qwen2ForCausalLM(config).eval()
    stock.load_state_dict(load_file(FOLDER / "model.safetensors"))
    problem = TASK.distinct("test", 1)[0]
    prefix, suffix = (lm.tokenizer(text)["input_ids"] for text in (problem.prompt, problem.suffix))
    rows = torch.tensor([[*prefix, *[lm.model.facts.mask_id] * 8, *suffix]])
    column = torch.arange(1, rows.shape[1])
    everything = torch.zeros(1, 1, rows.shape[1], rows.shape[1])  # an additive mask that hides nothing: look both ways
    with torch.inference_mode():
        expected = stock(input_ids=rows, attention_mask=everything).logits[0, :-1]
        found = lm.model.logits(lm.model.hidden(Rows(rows, None, torch.zeros_like(column), column)))
    assert torch.allclose(found, expected, atol=1e-4)


def test_what_is_shipped_is_small_and_complete() -> None:
    assert {file.name for file in FOLDER.iterdir()} >= {
        "README.md",
        "config.json",
        "merges.txt",
        "model.safetensors",
        "tokenizer_config.json",
        "vocab.json",
    }
    shipped = FOLDER.parent.rglob("*")
    assert sum(file.stat().st_size for file in shipped if file.is_file()) <= 2 * MOST_BYTES
    assert sum(file.stat().st_size for file in FOLDER.rglob("*") if file.is_file()) <= MOST_BYTES
    recipe = read_recipe(Path(__file__).parent.parent / "recipes" / "mini-dreamon.toml")
    assert json.loads((FOLDER / "training" / "recipe.json").read_text()) == json.loads(json.dumps(recipe.as_dict()))
    assert max(entry.get("step", 0) for entry in RunFolder(FOLDER).entries()) == recipe.steps


def test_it_names_its_expand_token_and_deletes_with_its_eos(lm: LM) -> None:
    assert lm.model.facts.expand_id == lm.tokenizer.convert_tokens_to_ids("<|expand|>")
    assert lm.model.facts.delete_id == lm.tokenizer.eos_token_id


@pytest.mark.parametrize("text", ["naïve ☃ \u0000 <b>", "def f(x):\n\treturn x", "12345 007", "  a  b\n\n   c"])
def test_any_text_survives_its_tokenizer(lm: LM, text: str) -> None:
    assert lm.tokenizer.decode(lm.tokenizer(text)["input_ids"]) == text


@pytest.mark.parametrize("length", [4, 64])
def test_it_finds_the_line_and_its_length(lm: LM, length: int) -> None:
    problems = TASK.distinct("validation", 24)
    results = solve(lm, TASK, problems, Soar(beam=2, metric="neg_entropy"), length)
    assert sum(TASK.exact(one, result.text) for one, result in zip(problems, results, strict=True)) >= 10
    sizes = {size for result in results for entry in result.trace.path() for size in entry.sizes}
    assert (2 if length == 4 else 0) in sizes
