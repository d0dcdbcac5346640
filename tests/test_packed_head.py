"""The head in another layout: the same product, where it is worth it."""

from __future__ import annotations

import pytest
import torch
import transformers

from soar_dlm.lm import load
from soar_dlm.models import packed_head
from soar_dlm.models.packed_head import PackedHead
from soar_dlm.models.running import TransformersLM


@pytest.fixture
def always_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_head, "LEAST", 0)
    monkeypatch.setattr(packed_head, "TILE", 16)
    if PackedHead.of(torch.randn(8, 4)) is None:
        pytest.skip("this build of PyTorch does not lay out matrices")


@pytest.mark.usefixtures("always_worth_it")
@pytest.mark.parametrize("rows", [1, 31, 32, 70])
def test_the_product_is_the_same(rows: int) -> None:
    generator = torch.Generator().manual_seed(0)
    matrix, states = torch.randn(50, 16, generator=generator), torch.randn(rows, 16, generator=generator)
    packed, out = PackedHead.of(matrix), torch.empty(rows, 50)
    assert packed is not None
    with torch.inference_mode():
        packed.multiply(states, out)
    torch.testing.assert_close(out, states @ matrix.T, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("always_worth_it")
def test_a_model_with_a_packed_head_writes_the_same() -> None:
    packed = load("random-llada", device="cpu").generate("hello", max_new_tokens=12)
    model = load("random-llada", device="cpu")
    assert isinstance(model.model, TransformersLM)
    model.model._packed = None
    assert packed.token_ids == model.generate("hello", max_new_tokens=12).token_ids


def test_small_heads_and_other_types_stay_as_they_are() -> None:
    assert PackedHead.of(torch.zeros(8, 4)) is None
    assert PackedHead.of(torch.zeros(2**20, 16, dtype=torch.float16)) is None
    assert PackedHead.of(torch.zeros(2**20, 16, device="meta")) is None


@pytest.mark.usefixtures("always_worth_it")
def test_the_weights_of_a_model_object_may_change() -> None:
    """What others may train is not copied."""
    config = transformers.LlamaConfig(
        vocab_size=40, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2
    )
    model = load(transformers.LlamaForCausalLM(config), family="llada", mask_token_id=39).model
    assert isinstance(model, TransformersLM)
    assert model._packed is None
