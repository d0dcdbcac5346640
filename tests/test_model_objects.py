"""load() of a transformers model that is in memory already."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from transformers.modeling_outputs import MaskedLMOutput

from soar_dlm.errors import CheckpointError, NoMaskToken, NoTokenizer, SettingsError, UnknownName
from soar_dlm.lm import LM, load
from soar_dlm.models.families import DREAM, LLADA, Family
from soar_dlm.models.masked_lm import Rows
from soar_dlm.models.random_checkpoint import write_dream, write_llada
from soar_dlm.models.running import TransformersLM, WholeModelLM
from soar_dlm.models.source import read_object
from soar_dlm.models.stock import stock_config
from tests.test_masked_lms import tiny, write_masked_lm

WRITERS = {"llada": (LLADA, write_llada), "dream": (DREAM, write_dream)}


def stock_object(folder: Path, family: Family) -> Any:
    """The weights of a checkpoint in transformers' own class, causal as transformers makes it."""
    config = stock_config(family, read_object(folder / "config.json"))
    del config.is_causal
    config.use_cache = True
    kind = getattr(transformers, family.model_class)
    return kind.from_pretrained(folder, config=config, key_mapping=dict(family.weight_names) or None)


class PublishedModel(nn.Module):
    """A stand-in for code from a checkpoint: its own class, its own config, logits for every token."""

    def __init__(self, inner: Any, config: Any) -> None:
        super().__init__()
        self.inner, self.config = inner, config
        self.inner.config.is_causal = False
        self.lengths: list[tuple[int, int]] = []

    def forward(self, input_ids: Tensor, use_cache: bool = True) -> MaskedLMOutput:
        assert not use_cache, "the keys and values would be collected for nothing"
        self.lengths.append((input_ids.shape[0], input_ids.shape[1]))
        return MaskedLMOutput(logits=self.inner(input_ids=input_ids, use_cache=False).logits)


def published(folder: Path, family: Family) -> PublishedModel:
    said = {name: value for name, value in read_object(folder / "config.json").items() if value is not None}
    config = transformers.PretrainedConfig(**said)
    return PublishedModel(stock_object(folder, family), config)


def logits(lm: LM) -> Tensor:
    """Logits at some places of two rows of different length, one of them at the first token."""
    short, long = [5, 9, 14, 7], [3, 3, 8, 20, 21, 22, 9]
    ids = torch.tensor([[lm.model.facts.pad_id] * 3 + short, long])
    rows = Rows(ids, torch.tensor([3, 0]), torch.tensor([0, 0, 1, 1]), torch.tensor([3, 5, 0, 6]))
    return lm.model.logits(lm.model.hidden(rows))


@pytest.mark.parametrize("kind", WRITERS)
def test_a_stock_object_runs_like_its_checkpoint(tmp_path: Path, kind: str) -> None:
    family, write = WRITERS[kind]
    by_name = load(write(tmp_path), device="cpu")
    model = stock_object(tmp_path, family)
    assert any(getattr(module, "is_causal", False) for module in model.modules())
    lm = load(model, tokenizer=by_name.tokenizer, family=kind)
    assert isinstance(lm.model, TransformersLM)
    assert (lm.family.name, lm.model.device.type, lm.model.dtype) == (kind, "cpu", torch.float32)
    assert not any(getattr(module, "is_causal", False) for module in model.modules()), "kernels may go by this flag"
    torch.testing.assert_close(logits(lm), logits(by_name), atol=1e-4, rtol=1e-4)
    ours, theirs = (one.generate(["one", "two more"], max_new_tokens=8) for one in (lm, by_name))
    assert [result.token_ids for result in ours] == [result.token_ids for result in theirs]


def test_the_object_can_still_be_used_and_keeps_its_parts(tmp_path: Path) -> None:
    """Loading used to cut the backbone out of the model it was given."""
    model = stock_object(write_llada(tmp_path), LLADA)
    names = list(dict(model.named_modules()))
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    lm = load(model, family="llada", mask_token_id=259)
    lm.decode([[4, 5, 259, 259]])
    assert list(dict(model.named_modules())) == names
    assert all(torch.equal(weight, weights[name]) for name, weight in model.state_dict().items())
    ids = torch.tensor([[4, 5, 6]])
    with torch.inference_mode():
        whole = model(input_ids=ids).logits[0]
    rows = Rows(ids, None, torch.zeros(3, dtype=torch.int64), torch.arange(3))
    torch.testing.assert_close(lm.model.logits(lm.model.hidden(rows)), whole, atol=1e-4, rtol=1e-4)
    with torch.no_grad():
        model.lm_head.weight.zero_()
    assert not lm.model.logits(lm.model.hidden(rows)).any(), "weights are shared, not copied"


@pytest.mark.parametrize("kind", WRITERS)
def test_a_class_of_its_own_runs_whole(tmp_path: Path, kind: str) -> None:
    """The config tells the family; rows of different length are run apart; Dream's shift is undone."""
    family, write = WRITERS[kind]
    by_name = load(write(tmp_path), device="cpu")
    model = published(tmp_path, family)
    lm = load(model, tokenizer=by_name.tokenizer)
    assert isinstance(lm.model, WholeModelLM)
    assert (lm.family.name, lm.model.facts) == (kind, by_name.model.facts)
    model.lengths.clear()
    torch.testing.assert_close(logits(lm), logits(by_name), atol=1e-4, rtol=1e-4)
    assert model.lengths == [(1, 7), (1, 4)]
    ours, theirs = (one.generate(["one", "two more"], max_new_tokens=8) for one in (lm, by_name))
    assert [result.token_ids for result in ours] == [result.token_ids for result in theirs]


@pytest.mark.parametrize("kind", ["bert", "modernbert", "fnet"])
def test_a_masked_lm_object_runs_like_its_checkpoint(tmp_path: Path, kind: str) -> None:
    write_masked_lm(tmp_path, kind)
    by_name = load(tmp_path, device="cpu")
    lm = load(transformers.AutoModelForMaskedLM.from_pretrained(tmp_path), tokenizer=by_name.tokenizer)
    assert lm.family.name == "masked-lm"
    assert isinstance(lm.model, TransformersLM)
    assert lm.model.takes_padding == by_name.model.takes_padding
    assert lm.model.facts == by_name.model.facts
    torch.testing.assert_close(logits(lm), logits(by_name), atol=1e-4, rtol=1e-4)


def test_another_causal_class_of_transformers_attends_both_ways_with_its_own_head() -> None:
    """Gemma 2 has a lone head too, but caps its logits; and half of its layers look at a window."""
    torch.manual_seed(0)
    config = transformers.Gemma2Config(
        vocab_size=40,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        final_logit_softcapping=0.05,
        attn_implementation="eager",
    )
    model = transformers.Gemma2ForCausalLM(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    lm = load(model, family="llada", mask_token_id=39)
    ids = torch.tensor([[4, 5, 6, 39]])
    with torch.inference_mode():
        expected = model(input_ids=ids).logits[0, 3:]
    out = torch.empty(1, 40)
    lm.model.head(lm.model.hidden(Rows(ids, None, torch.tensor([0]), torch.tensor([3]))), out)
    torch.testing.assert_close(out, expected, atol=1e-4, rtol=1e-4)
    assert out.abs().max() <= 0.05 + 1e-6


def test_a_model_that_only_looks_left_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = stock_object(write_llada(tmp_path), LLADA)
    real = transformers.LlamaModel.forward

    def stubborn(self: Any, **inputs: Any) -> Any:
        self.config.is_causal = True
        return real(self, **inputs)

    monkeypatch.setattr(transformers.LlamaModel, "forward", stubborn)
    with pytest.raises(CheckpointError, match="attends only to what comes before"):
        load(model, family="llada", mask_token_id=259)


def test_a_biased_head_keeps_its_bias(tmp_path: Path) -> None:
    """The fast path of the head is one matrix product; a bias does not fit in it."""
    model = stock_object(write_llada(tmp_path), LLADA)
    model.lm_head = nn.Linear(64, 264)
    lm = load(model, family="llada", mask_token_id=259)
    states, out = torch.randn(3, 64, generator=torch.Generator().manual_seed(0)), torch.empty(3, 264)
    lm.model.head(states, out)
    with torch.no_grad():
        expected = model.lm_head(states)
    torch.testing.assert_close(out, expected, atol=1e-4, rtol=1e-4)


class PackedWeight(nn.Parameter):
    """Like the weights of a quantized layer: numbers that only the layer's own forward can read."""


def test_packed_weights_are_left_to_their_layer(tmp_path: Path) -> None:
    model = stock_object(write_llada(tmp_path), LLADA)
    running = load(model, family="llada", mask_token_id=259).model
    assert isinstance(running, TransformersLM)
    assert running._matrix is not None
    model.lm_head.weight = PackedWeight(model.lm_head.weight.data)
    running = load(model, family="llada", mask_token_id=259).model
    assert isinstance(running, TransformersLM)
    assert running._matrix is None


def test_a_model_with_hooks_and_weights_on_disk_runs_and_stays_intact(tmp_path: Path) -> None:
    """The hooks of accelerate replace the forward of the object itself, bound to that object."""
    import accelerate

    family, folder = LLADA, write_llada(tmp_path / "model")
    by_name = load(folder, device="cpu")
    model = stock_object(folder, family)
    places: dict[str, Any] = {"model.embed_tokens": "cpu", "model.layers.0": "cpu", "model.layers.1": "disk"}
    places |= {"model.norm": "cpu", "model.rotary_emb": "cpu", "lm_head": "disk"}
    accelerate.dispatch_model(model, places, main_device="cpu", offload_dir=tmp_path / "offload", force_hooks=True)
    assert "forward" in vars(model)
    lm = load(model, tokenizer=by_name.tokenizer, family="llada")
    torch.testing.assert_close(logits(lm), logits(by_name), atol=1e-4, rtol=1e-4)
    assert lm.generate("hi", max_new_tokens=5).token_ids == by_name.generate("hi", max_new_tokens=5).token_ids
    assert model(input_ids=torch.tensor([[4, 5]])).logits.shape == (1, 2, 264)


def test_a_compiled_object_runs(tmp_path: Path) -> None:
    """What compile() leaves on an object is bound to it, and would run the backbone where only the head is wanted."""
    by_name = load(write_llada(tmp_path), device="cpu")
    model = stock_object(tmp_path, LLADA)
    model._compiled_call_impl = model._call_impl
    torch.testing.assert_close(
        logits(load(model, family="llada", mask_token_id=259)), logits(by_name), atol=1e-4, rtol=1e-4
    )


def test_a_peft_model_runs_with_its_adapter_and_is_not_merged(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    by_name = load(write_llada(tmp_path), device="cpu")
    tuned = peft.get_peft_model(
        stock_object(tmp_path, LLADA),
        peft.LoraConfig(r=2, target_modules=["q_proj", "lm_head"], init_lora_weights=False),
    )
    lm = load(tuned, tokenizer=by_name.tokenizer, family="llada")
    found = logits(lm)
    assert not torch.allclose(found, logits(by_name), atol=1e-3)
    assert any("lora_" in name for name, _ in tuned.named_parameters()), "the object is not merged"
    merged = load(copy.deepcopy(tuned).merge_and_unload(), family="llada", mask_token_id=259)
    torch.testing.assert_close(found, logits(merged), atol=1e-4, rtol=1e-4)


def test_prompt_tuning_is_refused(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    tuned = peft.get_peft_model(stock_object(write_llada(tmp_path), LLADA), config)
    with pytest.raises(SettingsError, match="no room"):
        load(tuned, family="llada", mask_token_id=259)


def test_the_family_of_a_bare_llama_must_be_given(tmp_path: Path) -> None:
    model = stock_object(write_llada(tmp_path), LLADA)
    with pytest.raises(SettingsError, match="pass family='llada'"):
        load(model, mask_token_id=259)
    with pytest.raises(UnknownName, match="Did you mean 'llada'"):
        load(model, mask_token_id=259, family="lada")
    assert load(model, mask_token_id=259, family="dream").family is DREAM


def test_names_ids_and_text_of_an_object(tmp_path: Path) -> None:
    model = stock_object(write_llada(tmp_path), LLADA)
    with pytest.raises(NoMaskToken, match="mask_token_id"):
        load(model, family="llada")
    lm = load(model, family="llada", mask_token_id=259)
    assert lm.name == str(tmp_path)
    assert lm.revision is None
    assert 259 not in lm.decode([[1, 2, 259]])[0].token_ids
    with pytest.raises(NoTokenizer):
        lm.generate("hi")
    model.config._name_or_path = ""
    assert load(model, family="llada", mask_token_id=259).name == "LlamaForCausalLM"
    assert load(published(tmp_path, LLADA)).model.facts.context == 1024, "LLaDA's own name for it"


@pytest.mark.parametrize(
    "option",
    [
        {"device": "cpu"},
        {"dtype": "bfloat16"},
        {"device_map": "auto"},
        {"quantization_config": object()},
        {"revision": "main"},
        {"attn_implementation": "eager"},
        {"token": "secret"},
        {"cache_dir": "x"},
        {"local_files_only": False},
    ],
    ids=lambda option: next(iter(option)),
)
def test_options_of_loading_files_are_refused_with_an_object(option: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=f"^{next(iter(option))}: this model is in memory already"):
        load(tiny("bert"), mask_token_id=4, **option)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(SettingsError, match="not 5"):
        load(5)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="tokenizer must be"):
        load(tiny("bert"), mask_token_id=4, tokenizer="bert-base-uncased")
    with pytest.raises(SettingsError, match="family is for model objects"):
        load("random-llada", family="llada")
    with pytest.raises(CheckpointError, match=r"must take input_ids.*TypeError"):
        load(nn.Linear(2, 2), family="llada", mask_token_id=1)
    shape = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 50}
    two_parts = transformers.BartForConditionalGeneration(transformers.BartConfig(**shape))
    with pytest.raises(CheckpointError, match="encoder and a decoder"):
        load(two_parts, family="masked-lm")


def test_an_object_that_gives_logits_for_the_last_token_only_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        PublishedModel, "forward", lambda self, input_ids: MaskedLMOutput(logits=torch.zeros(1, 1, 264))
    )
    model = published(write_llada(tmp_path), LLADA)
    with pytest.raises(CheckpointError, match="logits for 1 of 4 tokens"):
        load(model)


def test_evaluation_mode_is_set(tmp_path: Path) -> None:
    model = tiny("bert").train()
    load(model, mask_token_id=4)
    assert not model.training
    whole = published(write_llada(tmp_path), LLADA).train()
    load(whole)
    assert not whole.training
