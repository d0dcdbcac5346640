"""PEFT adapters in the layout they are published in, merged into their base model on loading."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from soar_dlm.errors import CheckpointError, MissingExtra, WeightsMismatch
from soar_dlm.lm import load
from soar_dlm.models.defaults import DecodingDefaults, write_defaults
from soar_dlm.models.random_checkpoint import write_dream, write_llada
from tests.checkpoints import edit_json
from tests.test_masked_lms import write_masked_lm
from tests.test_model_objects import logits

pytest.importorskip("peft")

RANK, ALPHA = 3, 6.0
LLADA_MODULES = [
    *[f"model.transformer.blocks.{n}.{part}" for n in (0, 1) for part in ("q_proj", "attn_out", "up_proj", "ff_out")],
    "model.transformer.ff_out",
]
"""What the target modules "q_proj", "attn_out", "up_proj" and "ff_out" match in the published LLaDA: "ff_out" is the
name of the down projection and of the head."""
DREAM_MODULES = [f"model.layers.{n}.{part}" for n in (0, 1) for part in ("self_attn.q_proj", "mlp.down_proj")]
TARGETS = {"llada": ["q_proj", "attn_out", "up_proj", "ff_out"], "dream": ["q_proj", "down_proj"]}
MODULES = {"llada": LLADA_MODULES, "dream": DREAM_MODULES}
WRITERS = {"llada": write_llada, "dream": write_dream}


def write_adapter(folder: Path, base: Path, modules: list[str], targets: Any, **settings: Any) -> dict[str, Tensor]:
    """A LoRA adapter as PEFT saves one, written by hand; returns W + scale * B @ A for each of its modules."""
    folder.mkdir(exist_ok=True)
    weights, generator = load_file(base / "model.safetensors"), torch.Generator().manual_seed(1)
    adapter, merged = {}, {}
    for module in modules:
        weight = weights[f"{module}.weight"]
        first = torch.randn(RANK, weight.shape[1], generator=generator) * 0.2
        second = torch.randn(weight.shape[0], RANK, generator=generator) * 0.2
        adapter[f"base_model.model.{module}.lora_A.weight"] = first
        adapter[f"base_model.model.{module}.lora_B.weight"] = second
        merged[f"{module}.weight"] = weight + ALPHA / RANK * second @ first
    save_file(adapter, folder / "adapter_model.safetensors", {"format": "pt"})
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": str(base),
        "r": RANK,
        "lora_alpha": ALPHA,
        "lora_dropout": 0.1,
        "target_modules": targets,
        "inference_mode": True,
        **settings,
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return merged


def merged_by_hand(folder: Path, base: Path, merged: dict[str, Tensor]) -> Path:
    shutil.copytree(base, folder)
    save_file(load_file(base / "model.safetensors") | merged, folder / "model.safetensors", {"format": "pt"})
    return folder


@pytest.mark.parametrize("kind", WRITERS)
def test_an_adapter_is_merged_as_by_hand(tmp_path: Path, kind: str) -> None:
    base = WRITERS[kind](tmp_path / "base")
    merged = write_adapter(tmp_path / "adapter", base, MODULES[kind], TARGETS[kind])
    lm = load(tmp_path / "adapter", device="cpu")
    by_hand = load(merged_by_hand(tmp_path / "merged", base, merged), device="cpu")
    assert lm.name == str(tmp_path / "adapter")
    assert lm.family.name == kind
    torch.testing.assert_close(logits(lm), logits(by_hand), atol=1e-4, rtol=1e-4)
    assert not torch.allclose(logits(lm), logits(load(base, device="cpu")), atol=1e-2)
    assert not any("lora" in name for name, _ in lm.model._module.named_modules())
    assert lm.generate("hi", max_new_tokens=6).token_ids == by_hand.generate("hi", max_new_tokens=6).token_ids


def test_patterns_ranks_and_saved_modules_mean_what_they_meant_in_training(tmp_path: Path) -> None:
    """Names appear in a LLaDA adapter in five ways: weights, target pattern, layers, ranks, whole modules."""
    base = write_llada(tmp_path / "base")
    merged = write_adapter(
        tmp_path / "adapter",
        base,
        ["model.transformer.blocks.1.ff_proj"],
        r".*blocks\.\d+\.ff_proj",
        r=1,
        lora_alpha=1.0,
        exclude_modules=["blocks.0.ff_proj"],
        rank_pattern={r"blocks\.1\.ff_proj": RANK},
        alpha_pattern={r"blocks\.1\.ff_proj": ALPHA},
        modules_to_save=["wte"],
    )
    embeddings = torch.randn(264, 64, generator=torch.Generator().manual_seed(2))
    weights = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    weights["base_model.model.model.transformer.wte.weight"] = embeddings
    save_file(weights, tmp_path / "adapter" / "adapter_model.safetensors", {"format": "pt"})
    by_hand = merged_by_hand(tmp_path / "merged", base, merged | {"model.transformer.wte.weight": embeddings})
    torch.testing.assert_close(logits(load(tmp_path / "adapter")), logits(load(by_hand)), atol=1e-4, rtol=1e-4)


def test_an_adapter_with_the_names_of_the_stock_class_and_one_for_a_masked_lm(tmp_path: Path) -> None:
    base = write_llada(tmp_path / "base")
    published = write_adapter(tmp_path / "adapter", base, ["model.transformer.blocks.0.ff_out"], ["ff_out"])
    weights = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    renamed = {name.replace("transformer.blocks.0.ff_out", "layers.0.mlp.down_proj"): w for name, w in weights.items()}
    save_file(renamed, tmp_path / "adapter" / "adapter_model.safetensors", {"format": "pt"})
    edit_json(tmp_path / "adapter" / "adapter_config.json", target_modules=["layers.0.mlp.down_proj"])
    by_hand = merged_by_hand(tmp_path / "merged", base, published)
    torch.testing.assert_close(logits(load(tmp_path / "adapter")), logits(load(by_hand)), atol=1e-4, rtol=1e-4)

    write_masked_lm(tmp_path / "bert", "bert")
    module = "bert.encoder.layer.1.attention.self.query"
    merged = write_adapter(tmp_path / "for bert", tmp_path / "bert", [module], ["layer.1.attention.self.query"])
    by_hand = merged_by_hand(tmp_path / "merged bert", tmp_path / "bert", merged)
    torch.testing.assert_close(logits(load(tmp_path / "for bert")), logits(load(by_hand)), atol=1e-4, rtol=1e-4)


def test_tokenizer_and_decoding_defaults_are_the_adapters_or_else_the_bases(tmp_path: Path) -> None:
    base, folder = write_llada(tmp_path / "base"), tmp_path / "adapter"
    write_adapter(folder, base, LLADA_MODULES, TARGETS["llada"])
    write_defaults(base, DecodingDefaults(strategy="greedy"))
    lm = load(folder)
    assert lm.generate("hi", "greedy", max_new_tokens=2).prompt_length == 2
    assert lm.model.facts.thresholds["probability"] == 0.95
    write_defaults(folder, DecodingDefaults(thresholds={"probability": 0.5}))
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(base / file, folder / file)
    edit_json(folder / "tokenizer_config.json", chat_template="of the adapter")
    lm = load(folder)
    assert lm.model.facts.thresholds["probability"] == 0.5
    assert lm.tokenizer.chat_template == "of the adapter"


def test_an_adapter_that_does_not_fit_is_refused_by_name(tmp_path: Path) -> None:
    base, folder = write_llada(tmp_path / "base"), tmp_path / "adapter"
    write_adapter(folder, base, LLADA_MODULES[:2], TARGETS["llada"])
    with pytest.raises(WeightsMismatch, match=r"it lacks base_model\.model\.model\.transformer.* and 13 more"):
        load(folder)
    write_adapter(folder, base, LLADA_MODULES, ["q_proj"])
    with pytest.raises(WeightsMismatch, match="the model has no place for"):
        load(folder)
    write_adapter(folder, base, LLADA_MODULES, TARGETS["llada"], r=RANK + 1)
    with pytest.raises(CheckpointError, match="cannot be merged into its base model"):
        load(folder)
    write_adapter(folder, base, LLADA_MODULES, ["nowhere"])
    with pytest.raises(CheckpointError, match="nowhere"):
        load(folder)
    adapter = {"peft_type": "PROMPT_TUNING", "num_virtual_tokens": 2, "base_model_name_or_path": str(base)}
    (folder / "adapter_config.json").write_text(json.dumps(adapter))
    with pytest.raises(CheckpointError, match="no room"):
        load(folder)


def test_an_adapter_is_placed_with_its_base_but_not_merged_into_offloaded_weights(tmp_path: Path) -> None:
    """PEFT loads nothing into layers whose weights are on disk, and says so in a warning only."""
    write_adapter(tmp_path / "adapter", write_llada(tmp_path / "base"), LLADA_MODULES, TARGETS["llada"])
    placed = load(tmp_path / "adapter", device_map={"": "cpu"}, dtype="float32")
    torch.testing.assert_close(logits(placed), logits(load(tmp_path / "adapter")), atol=1e-4, rtol=1e-4)
    offloaded = {"model": "cpu", "lm_head": "disk"}
    with pytest.raises(CheckpointError, match="partly offloaded"):
        load(tmp_path / "adapter", device_map=offloaded)


def test_files_of_an_adapter_that_are_missing_or_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base, folder = write_llada(tmp_path / "base"), tmp_path / "adapter"
    write_adapter(folder, base, LLADA_MODULES, TARGETS["llada"])
    (folder / "config.json").write_text("{}")
    load(folder)  # some trainers add the base model's config.json

    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingExtra, match=r"pip install 'soar-dlm\[peft\]'"):
        load(folder)
    monkeypatch.undo()

    edit_json(folder / "adapter_config.json", base_model_name_or_path=str(tmp_path / "gone"))
    with pytest.raises(CheckpointError, match=r"is an adapter for .*gone.*There is no folder"):
        load(folder)
    edit_json(folder / "adapter_config.json", base_model_name_or_path=None)
    with pytest.raises(CheckpointError, match="names no base model"):
        load(folder)
    shutil.copy(base / "model.safetensors", folder)
    with pytest.raises(CheckpointError, match="both a model and an adapter"):
        load(folder)
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "adapter_model.bin")
    (folder / "adapter_model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="safetensors only"):
        load(folder)
    (folder / "adapter_config.json").write_text("[]")
    (folder / "adapter_model.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match="one JSON object"):
        load(folder)
