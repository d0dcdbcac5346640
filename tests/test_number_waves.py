from __future__ import annotations

from pathlib import Path

import pytest
import torch

from soar_dlm.models.families import LLADA
from soar_dlm.train.number_waves import PERIODS, write_waves
from soar_dlm.train.recipe import DataRecipe, ModelRecipe, Recipe, TokenizerRecipe
from soar_dlm.train.tokenizer import train_tokenizer
from soar_dlm.train.trainer import Trainer

WIDTH = 2 * len(PERIODS)


def test_numbers_get_waves_of_their_value_and_words_keep_what_they_had() -> None:
    tokenizer = train_tokenizer(["one two 1 + 2 = 3"] * 20, LLADA, 600)
    before = torch.randn(tokenizer.get_vocab_size(), WIDTH + 4)
    after = before.clone()
    write_waves(after, tokenizer)
    names = {token: name.strip("Ġ") for name, token in tokenizer.get_vocab().items()}
    numbers = {token: int(name) for token, name in names.items() if name.isascii() and name.isdigit()}
    assert set(numbers.values()) >= set(range(100))
    for token in range(len(before)):
        assert torch.equal(after[token, WIDTH:], before[token, WIDTH:])
        assert torch.equal(after[token], before[token]) == (token not in numbers)
    of = {number: after[token, :WIDTH] for token, number in numbers.items()}
    near, far = float(of[21] @ of[20]), float(of[62] @ of[61])
    assert near == pytest.approx(far, abs=1e-4)  # what lies between neighbours is the same everywhere
    assert len({tuple(of[number].tolist()) for number in range(100)}) == 100


def test_a_recipe_may_ask_for_them(tmp_path: Path) -> None:
    def embeddings(waves: bool) -> torch.Tensor:
        recipe = Recipe(
            name="tiny",
            model=ModelRecipe(width=32, layers=1, heads=2, number_waves=waves),
            tokenizer=TokenizerRecipe(vocabulary=400, texts=200),
            data=DataRecipe(tasks={"mini-sums": 1.0}),
        )
        model = Trainer(recipe, tmp_path / str(waves), device="cpu").model
        weight: torch.Tensor = model.model.embed_tokens.weight.detach()
        return weight

    plain, waved = embeddings(False), embeddings(True)
    assert 0 < (plain != waved).any(dim=1).sum() < len(plain)
