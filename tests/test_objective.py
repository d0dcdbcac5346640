from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from soar_dlm.train.objective import hide, masked_loss, noise_levels
from soar_dlm.train.optimizer import rate_share
from soar_dlm.train.recipe import DataRecipe, Recipe, StageRecipe, TrainingRecipe

MASK = 99


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(st.integers(1, 40), st.integers(0, 10**6))
def test_the_levels_of_a_batch_cover_the_range_evenly(rows: int, seed: int) -> None:
    levels = noise_levels(rows, 0.001, seeded(seed))
    assert levels.shape == (rows,)
    within_slot = ((levels - 0.001) / 0.999 * rows).sort().values - torch.arange(rows)
    assert -1e-4 <= within_slot.min() <= within_slot.max() <= 1 + 1e-4


@given(st.integers(1, 6), st.integers(2, 12), st.integers(0, 10**6), st.data())
def test_only_answers_are_hidden_and_at_least_one_token_of_each(
    rows: int, length: int, seed: int, data: st.DataObject
) -> None:
    ids = torch.randint(0, 50, (rows, length), generator=seeded(seed))
    starts = torch.tensor([data.draw(st.integers(0, length - 1)) for _ in range(rows)])
    canvas = torch.arange(length) >= starts.unsqueeze(1)
    batch = hide(ids, canvas, MASK, 0.001, seeded(seed + 1))
    masked = batch.inputs == MASK
    assert not (masked & ~canvas).any()
    assert masked.any(dim=1).all()
    assert torch.equal(batch.inputs[~masked], ids[~masked])
    assert torch.equal(masked.nonzero(), torch.stack([batch.row, batch.column], dim=1))
    assert torch.equal(batch.target, ids[masked])
    assert torch.equal(batch.size, canvas.sum(dim=1))


def test_the_share_of_hidden_tokens_is_the_noise_level() -> None:
    ids, canvas = torch.zeros(64, 2000, dtype=torch.int64), torch.ones(64, 2000, dtype=torch.bool)
    batch = hide(ids, canvas, MASK, 0.001, seeded(0))
    shares = (batch.inputs == MASK).float().mean(dim=1)
    assert torch.allclose(shares, batch.level, atol=0.05)


def test_the_two_losses_by_hand() -> None:
    ids, canvas = torch.tensor([[1, 2, 0, 1], [2, 2, 2, 2]]), torch.tensor([[False, True, True, True], [True] * 4])
    batch = hide(ids, canvas, 3, 0.001, seeded(3))
    logits = torch.randn(len(batch.row), 4, generator=seeded(4))
    picked = [-math.log(torch.softmax(row, 0)[token].item()) for row, token in zip(logits, batch.target, strict=True)]
    assert masked_loss(logits, batch, "mean").item() == pytest.approx(sum(picked) / len(picked), rel=1e-5)
    lengths = (3, 4)
    bound = sum(
        loss / (batch.level[row].item() * lengths[row]) for loss, row in zip(picked, batch.row.tolist(), strict=True)
    )
    assert masked_loss(logits, batch, "elbo").item() == pytest.approx(bound / 2, rel=1e-5)


def test_the_bound_of_a_model_that_knows_nothing_is_that_of_a_fair_die() -> None:
    """With even odds for V tokens, the likelihood bound per token is log V on average."""
    ids, canvas = torch.zeros(500, 60, dtype=torch.int64), torch.ones(500, 60, dtype=torch.bool)
    batch = hide(ids, canvas, MASK, 0.2, seeded(1))
    assert masked_loss(torch.zeros(len(batch.row), 8), batch, "elbo").item() == pytest.approx(math.log(8), rel=0.03)


def test_rates_rise_stay_and_fall() -> None:
    first = TrainingRecipe(steps=100, warmup=9, decay=0.5)
    later = (StageRecipe(steps=10, rate=0.5), StageRecipe(steps=4, rate=0.2))
    recipe = Recipe("rates", data=DataRecipe(tasks={"mini-sums": 1}), training=first, stages=later)
    shares = [rate_share(step, recipe) for step in range(recipe.steps)]
    assert shares[100:] == pytest.approx([0.5 - 0.05 * step for step in range(10)] + [0.2, 0.15, 0.1, 0.05])
    shares = shares[:100]
    assert shares[:3] == [0.1, 0.2, 0.3]
    assert set(shares[9:51]) == {1.0}
    assert shares[75] == 0.5
    assert shares[99] == 0.02
    assert all(late <= early for early, late in pairwise(shares[50:]))
