"""Checkpoints with damaged or hostile files: refused by a sentence, before anything but safetensors is opened."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from soar_dlm.errors import CheckpointError, WeightsMismatch
from soar_dlm.lm import load
from soar_dlm.models.random_checkpoint import write_llada
from tests.checkpoints import edit_json, edit_weights

INDEX = "model.safetensors.index.json"
NESTED = b'{"a":' * 5000 + b"1" + b"}" * 5000


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    return write_llada(tmp_path / "model", shards=2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_llada(tmp_path / "model")


def rename_first(folder: Path, name: Any) -> None:
    """Let the index name another file for the first of its weights."""
    content = json.loads((folder / INDEX).read_text())
    content["weight_map"][min(content["weight_map"])] = name
    (folder / INDEX).write_text(json.dumps(content))


@pytest.mark.parametrize(
    "name",
    [
        "evil.bin",
        "../other.safetensors",
        "/tmp/other.safetensors",
        "sub/x.safetensors",
        "..\\x.safetensors",
        "",
        5,
        None,
    ],
)
def test_an_index_that_names_a_pickle_or_a_file_elsewhere_is_not_followed(
    sharded: Path, name: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prevents "nothing pickled is opened" from being untrue."""
    save_file({"x": torch.zeros(1)}, sharded.parent / "other.safetensors")
    torch.save({"x": torch.zeros(1)}, sharded / "evil.bin")
    monkeypatch.setattr(torch, "load", lambda *args, **options: pytest.fail("a pickle was opened"))
    rename_first(sharded, name)
    with pytest.raises(CheckpointError, match=r"weight_map|end in .safetensors and lie in the same folder"):
        load(sharded, device="cpu")


def test_a_config_cannot_name_the_file_of_its_weights(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save({"x": torch.zeros(1)}, folder / "evil.bin")
    monkeypatch.setattr(torch, "load", lambda *args, **options: pytest.fail("a pickle was opened"))
    edit_json(folder / "config.json", transformers_weights="evil.bin")
    assert load(folder, device="cpu").generate("a", max_new_tokens=2).token_ids


def test_a_link_out_of_the_folder_is_not_followed_but_the_hub_s_cache_is(sharded: Path, tmp_path: Path) -> None:
    first = sharded / "model-00001-of-00002.safetensors"
    blobs, snapshot = tmp_path / "cache" / "blobs", tmp_path / "cache" / "snapshots" / "abc"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for file in sharded.iterdir():
        (blobs / file.name).write_bytes(file.read_bytes())
        (snapshot / file.name).symlink_to(Path("..") / ".." / "blobs" / file.name)
    assert load(snapshot, device="cpu").name
    os.rename(first, tmp_path / "elsewhere.safetensors")
    first.symlink_to(tmp_path / "elsewhere.safetensors")
    with pytest.raises(CheckpointError, match="link out of the folder"):
        load(sharded, device="cpu")


@pytest.mark.parametrize(
    "content", [{}, {"weight_map": {}}, {"weight_map": []}, {"weight_map": {"a": "b.safetensors"}}, []]
)
def test_an_index_without_a_weight_map_is_refused(sharded: Path, content: Any) -> None:
    """Prevents KeyError: 'weight_map'."""
    (sharded / INDEX).write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=r"model\.safetensors\.index\.json"):
        load(sharded, device="cpu")


def test_an_index_that_names_a_file_that_is_not_there_says_which(sharded: Path) -> None:
    (sharded / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"names 'model-00002-of-00002.safetensors', which is not a file"):
        load(sharded, device="cpu")


def test_a_weight_of_another_shape_is_named_with_both_shapes(folder: Path) -> None:
    """Prevents a refusal that points to a report nobody sees."""

    def shorten(weights: dict[str, Any]) -> None:
        name = next(name for name in weights if name.endswith("0.q_proj.weight"))
        weights[name] = weights[name][:32].clone()

    edit_weights(folder, shorten)
    with pytest.raises(WeightsMismatch, match=r"layers\.0\.self_attn\.q_proj\.weight: \(32, 64\), not \(64, 64\)"):
        load(folder, device="cpu")


WRONG: tuple[Any, ...] = ("x", [], {}, -1, 2.5, 10**30, None, True)


@pytest.mark.parametrize("key", ["d_model", "n_heads", "n_layers", "vocab_size", "max_sequence_length"])
def test_a_config_with_wrong_types_is_a_sentence(folder: Path, key: str) -> None:
    """Prevents TypeError, ZeroDivisionError and the like, and lists as long as a hostile number of layers."""
    before = (folder / "config.json").read_text()
    for value in WRONG:
        (folder / "config.json").write_text(before)
        edit_json(folder / "config.json", **{key: value}, embedding_size=None)
        try:
            load(folder, device="cpu")
        except CheckpointError:
            continue
        assert (key, value) in {("vocab_size", None)} or value is True, (key, value)


@pytest.mark.parametrize("key", ["mask_token_id", "eos_token_id", "pad_token_id", "expand_token_id"])
@pytest.mark.parametrize("value", ["x", {}, 1.5, True])
def test_a_token_of_a_config_must_be_an_id(folder: Path, key: str, value: Any) -> None:
    edit_json(folder / "config.json", **{key: value})
    with pytest.raises(CheckpointError):
        load(folder, device="cpu")


def test_a_config_cannot_ask_for_far_more_memory_than_its_weights_take(folder: Path) -> None:
    edit_json(folder / "config.json", mlp_hidden_size=10**9)
    with pytest.raises(WeightsMismatch, match=r"describes a model of .* parameters; its files hold"):
        load(folder, device="cpu")
    edit_json(folder / "config.json", mlp_hidden_size=160, n_layers=500)
    with pytest.raises(WeightsMismatch, match="has 500 layers"):
        load(folder, device="cpu")


@pytest.mark.parametrize("content", [NESTED, b"", b"\xff\xfe", b"[]", b"null", b"{", b"9" * 5000], ids=range(7))
def test_a_damaged_json_file_is_a_sentence(folder: Path, content: bytes) -> None:
    """Prevents RecursionError for JSON 5,000 levels deep."""
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        file = folder / name
        before = file.read_bytes() if file.exists() else None
        file.write_bytes(content)
        with pytest.raises(CheckpointError):
            load(folder, device="cpu")
        file.unlink() if before is None else file.write_bytes(before)


def test_a_damaged_head_of_a_weights_file_is_a_sentence(folder: Path) -> None:
    file = folder / "model.safetensors"
    whole = file.read_bytes()
    for damaged in (b"", whole[:7], b"\xff" * 8 + whole[8:], whole[:8] + b"[" + whole[9:], whole[: len(whole) // 2]):
        file.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"model.safetensors is damaged|Could not load"):
            load(folder, device="cpu")
    file.unlink()
    file.mkdir()
    with pytest.raises(CheckpointError, match="Could not load"):
        load(folder, device="cpu")


def test_an_adapter_of_an_adapter_is_refused(folder: Path, tmp_path: Path) -> None:
    """Prevents transformers from loading the inner adapter by itself, pickled weights included."""
    for name, base in (("inner", str(folder)), ("outer", str(tmp_path / "inner"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base}))
        save_file(load_file(folder / "model.safetensors"), tmp_path / name / "adapter_model.safetensors")
    with pytest.raises(CheckpointError, match="an adapter itself"):
        load(tmp_path / "outer", device="cpu")
