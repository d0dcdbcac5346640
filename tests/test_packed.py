"""Matrices in another layout: the same products, where it is worth it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from torch import nn

from soar_dlm.lm import LM, load
from soar_dlm.models import packed
from soar_dlm.models.packed import PackedHead, pack_layers
from soar_dlm.models.running import TransformersLM


@pytest.fixture
def always_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "LEAST", 0)
    monkeypatch.setattr(packed, "TILE", 16)
    if PackedHead.of(torch.randn(8, 4)) is None:
        pytest.skip("this build of PyTorch does not lay out matrices")


@pytest.mark.usefixtures("always_worth_it")
@pytest.mark.parametrize("rows", [1, 31, 32, 70])
def test_the_product_is_the_same(rows: int) -> None:
    generator = torch.Generator().manual_seed(0)
    matrix, states = torch.randn(50, 16, generator=generator), torch.randn(rows, 16, generator=generator)
    head, out = PackedHead.of(matrix), torch.empty(rows, 50)
    assert head is not None
    with torch.inference_mode():
        head.multiply(states, out)
    torch.testing.assert_close(out, states @ matrix.T, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("always_worth_it")
@pytest.mark.parametrize("rows", [1, 32, 70])
@pytest.mark.parametrize("bias", [False, True])
def test_a_packed_layer_computes_the_same_without_more_memory(rows: int, bias: bool) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        plain, states = nn.Linear(16, 50, bias=bias), torch.randn(2, rows, 16)
    with torch.inference_mode():
        expected = plain(states)
        pack_layers(layer := nn.Sequential(plain))
        torch.testing.assert_close(layer(states), expected, rtol=1e-4, atol=1e-5)
    assert plain.weight.is_meta
    assert plain.weight.shape == (50, 16)
    assert not bias or not plain.bias.is_meta


def layers_of(lm: LM) -> list[nn.Linear]:
    assert isinstance(lm.model, TransformersLM)
    return [module for module in lm.model.backbone.modules() if isinstance(module, nn.Linear)]


@pytest.mark.usefixtures("always_worth_it")
@pytest.mark.parametrize("name", ["random-llada", "random-dream"])
@pytest.mark.parametrize("options", [{}, {"cache": "dual", "block_length": 4}, {"cfg_scale": 0.5}])
def test_a_packed_model_writes_the_same(name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    own = load(name, device="cpu")
    written = own.generate(["hello", "a longer prompt"], "soar", max_new_tokens=12, **options)
    assert layers_of(own)
    assert all(layer.weight.is_meta for layer in layers_of(own))
    monkeypatch.setattr(packed, "LEAST", 2**40)
    plain = load(name, device="cpu")
    expected = plain.generate(["hello", "a longer prompt"], "soar", max_new_tokens=12, **options)
    assert not any(layer.weight.is_meta for layer in layers_of(plain))
    assert [one.token_ids for one in written] == [one.token_ids for one in expected]


@pytest.mark.usefixtures("always_worth_it")
def test_a_packed_model_runs_where_other_types_are_cast() -> None:
    """Attention under autocast gives bfloat16, which a layer rearranged in float32 does not take."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert len(load("random-llada", device="cpu").generate("hello", max_new_tokens=6).token_ids) == 6


@pytest.mark.usefixtures("always_worth_it")
def test_a_compiler_gets_plain_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda module, **_: module)
    assert not any(layer.weight.is_meta for layer in layers_of(load("random-llada", device="cpu", compile=True)))


def test_small_matrices_and_other_types_stay_as_they_are() -> None:
    assert PackedHead.of(torch.zeros(8, 4)) is None
    assert PackedHead.of(torch.zeros(2**20, 16, dtype=torch.float16)) is None
    assert PackedHead.of(torch.zeros(2**20, 16, device="meta")) is None
    for layer in (nn.Linear(4, 8), nn.Linear(16, 2**20, dtype=torch.float16), nn.Linear(16, 2**20, device="meta")):
        before = layer.weight
        pack_layers(nn.Sequential(layer))
        assert layer.weight is before


@pytest.mark.usefixtures("always_worth_it")
def test_layers_that_are_more_than_a_matrix_stay_as_they_are() -> None:
    class Adapted(nn.Linear):
        """A layer with a forward of its own."""

    hooked = nn.Linear(4, 8)
    hooked.forward = hooked.forward  # type: ignore[method-assign]  # an object's own, as hooks set one
    quantized = nn.Linear(4, 8)
    quantized.weight = type("Quantized", (nn.Parameter,), {})(quantized.weight)
    layers = nn.Sequential(Adapted(4, 8), hooked, quantized)
    before = [*layers.parameters()]
    pack_layers(layers)
    assert all(one is other for one, other in zip(layers.parameters(), before, strict=True))


@pytest.mark.usefixtures("always_worth_it")
def test_the_weights_of_a_model_object_may_change() -> None:
    """What others may train is neither copied nor taken away."""
    config = transformers.LlamaConfig(
        vocab_size=40, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2
    )
    lm = load(transformers.LlamaForCausalLM(config), family="llada", mask_token_id=39)
    lm.decode([[1, 2, 39, 39]])
    assert isinstance(lm.model, TransformersLM)
    assert lm.model._packed is None
    assert not any(layer.weight.is_meta for layer in layers_of(lm))
