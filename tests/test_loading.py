"""Loading by name, and every way a checkpoint can be wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file

from soar_dlm.errors import (
    CheckpointError,
    MissingExtra,
    NoMaskToken,
    NonFiniteLogits,
    NoTokenizer,
    SettingsError,
    UnknownName,
    WeightsMismatch,
)
from soar_dlm.lm import load
from soar_dlm.models import loading
from soar_dlm.models.masked_lm import Rows
from soar_dlm.models.random_checkpoint import write_dream, write_llada
from soar_dlm.models.running import TransformersLM
from tests.checkpoints import edit_json, edit_weights


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_llada(tmp_path / "model")


def test_missing_unexpected_and_misshapen_weights_are_named(folder: Path) -> None:
    edit_weights(folder, lambda w: w.pop("model.transformer.blocks.1.up_proj.weight"))
    with pytest.raises(WeightsMismatch, match=r"1 missing \(model.layers.1.mlp.up_proj.weight\)"):
        load(str(folder))
    edit_weights(folder, lambda w: w.update({"model.transformer.blocks.1.up_proj.weight": torch.ones(160, 64)}))
    load(str(folder))
    edit_weights(folder, lambda w: w.update({"model.transformer.blocks.7.up_proj.weight": torch.ones(160, 64)}))
    with pytest.raises(WeightsMismatch, match="1 unexpected"):
        load(str(folder))
    edit_weights(folder, lambda w: w.pop("model.transformer.blocks.7.up_proj.weight"))
    edit_weights(folder, lambda w: w.update({"model.transformer.wte.weight": torch.ones(99, 64)}))
    with pytest.raises(WeightsMismatch, match=re.escape(str(folder))):
        load(str(folder))


def test_pickled_weights_are_not_read(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="safetensors"):
        load(str(folder))


def test_code_in_a_checkpoint_is_never_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prevents a question at the terminal whose answer 'y' would have run it."""
    remote = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model", "AutoTokenizer": ["evil.Tokenizer", None]}
    (folder / "evil.py").write_text("raise SystemExit('remote code ran')")
    edit_json(folder / "tokenizer_config.json", auto_map=remote, tokenizer_class="EvilTokenizer")
    edit_json(folder / "config.json", auto_map=remote)
    assert load(str(folder)).generate("hi", max_new_tokens=2).steps > 0
    edit_json(folder / "config.json", model_type="evil")
    monkeypatch.setattr("builtins.input", lambda *question: pytest.fail("asked to run remote code"))
    with pytest.raises(CheckpointError, match="never run"):
        load(str(folder))


def test_a_damaged_tokenizer_is_reported(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(CheckpointError, match="tokenizer of"):
        load(folder)


def test_a_missing_package_is_reported(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="needs a package that is missing"):
        load(folder, attn_implementation="flash_attention_2")


def test_running_out_of_memory_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any) -> None:
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(transformers.LlamaForCausalLM, "to", full)
    with pytest.raises(CheckpointError, match="does not fit into memory"):
        load(folder)


def test_a_damaged_file_is_reported(folder: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])
    with pytest.raises(CheckpointError, match="Could not load"):
        load(str(folder))


def test_a_model_without_a_mask_token_is_refused_unless_it_is_given(folder: Path) -> None:
    edit_json(folder / "config.json", mask_token_id=...)
    assert load(str(folder)).model.facts.mask_id == 259, "the tokenizer still names it"
    (folder / "tokenizer.json").unlink()
    with pytest.raises(NoMaskToken, match="mask_token_id"):
        load(str(folder))
    assert load(str(folder), mask_token_id=7).model.facts.mask_id == 7
    with pytest.raises(NoMaskToken, match="outside the vocabulary of 264"):
        load(str(folder), mask_token_id=264)


def test_text_needs_a_tokenizer_and_ids_do_not(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    lm = load(str(folder))
    assert lm.tokenizer is None
    with pytest.raises(NoTokenizer, match=r"decode\(\) with token ids"):
        lm.generate("hi")
    result = lm.decode([[1, 2, 259, 259]])[0]
    assert result.text == ""
    assert 259 not in result.token_ids


def test_non_finite_weights_end_in_an_error_that_names_the_step(folder: Path) -> None:
    edit_weights(folder, lambda w: w["model.transformer.ff_out.weight"].fill_(float("nan")))
    lm = load(str(folder))
    with pytest.raises(NonFiniteLogits, match="step 1"):
        lm.generate("hi", max_new_tokens=4)
    with pytest.raises(NonFiniteLogits):
        list(lm.stream("hi", max_new_tokens=4))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"block_type": "sequential"}, "block_type='sequential'"),
        ({"alibi": True}, "alibi=True"),
        ({"d_model": ...}, "lacks 'd_model'"),
        ({"model_type": "my-own"}, "never run"),
        ({"model_type": "llama"}, "does not fill masks"),
        ({"model_type": "bart"}, "does not fill masks"),
    ],
)
def test_checkpoints_that_cannot_be_run_say_why(folder: Path, change: dict[str, Any], words: str) -> None:
    edit_json(folder / "config.json", **change)
    with pytest.raises(CheckpointError, match=words):
        load(str(folder))


def test_names_that_lead_nowhere(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'random-llada'"):
        load("random-lada")
    with pytest.raises(CheckpointError, match="There is no folder"):
        load(str(tmp_path / "nothing"))
    with pytest.raises(CheckpointError, match="Could not load 'nobody/nothing'"):
        load("nobody/nothing")
    with pytest.raises(CheckpointError, match="Could not load"):
        load(str(tmp_path))
    with pytest.raises(UnknownName, match="Did you mean 'revision'"):
        load("random-llada", revison="main")  # type: ignore[call-arg]


def test_no_name_is_not_the_working_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``load("")`` used to load the model in the working folder."""
    monkeypatch.chdir(folder)
    with pytest.raises(CheckpointError, match="There is no folder ''"):
        load("")


@pytest.mark.parametrize(
    "option", ["attn_implementation", "revision", "token", "cache_dir", "local_files_only", "quantization_config"]
)
def test_an_option_of_the_wrong_kind_is_not_blamed_on_the_checkpoint(folder: Path, option: str) -> None:
    """Transformers failed on some of these in its own words, and took no notice of others."""
    with pytest.raises(SettingsError, match=f"{option} must be"):
        load(folder, **{option: 5})  # type: ignore[arg-type]


def test_devices_and_dtypes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(str(folder), device="cpu").model.logits(torch.ones(1, 64)).dtype == torch.float32
    half = load(str(folder), dtype="bfloat16")
    assert half.model.dtype == torch.bfloat16
    assert half.generate("hi", max_new_tokens=5).steps > 0
    edit_json(folder / "config.json", torch_dtype="bfloat16")
    assert load(str(folder)).model.dtype == torch.float32
    assert load(str(folder), dtype="auto").model.dtype == torch.bfloat16
    edit_json(folder / "config.json", torch_dtype=..., dtype="float16")
    assert load(str(folder), dtype="auto").model.dtype == torch.float16, "the newer name of the setting"
    with pytest.raises(UnknownName, match="Did you mean 'bfloat16'"):
        load(str(folder), dtype="bfloat")
    with pytest.raises(SettingsError, match="cannot be used here"):
        load(str(folder), device="cuda:7")
    with pytest.raises(SettingsError, match="not both"):
        load(str(folder), device="cpu", device_map="auto")
    mapped = load(str(folder), device_map="cpu", dtype="float32")
    found, expected = (lm.generate("hi", max_new_tokens=5).token_ids for lm in (mapped, load(str(folder))))
    assert found == expected
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=re.escape("pip install 'soar-dlm[accelerate]'")):
        load(str(folder), device_map="auto")


def test_options_pass_through_to_transformers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    real = transformers.LlamaForCausalLM.from_pretrained

    def spy(*args: Any, **options: Any) -> Any:
        seen.update(options)
        options.pop("quantization_config")
        return real(*args, **options)

    monkeypatch.setattr(transformers.LlamaForCausalLM, "from_pretrained", spy)
    quantization = {"quant_method": "bitsandbytes"}
    load(str(folder), quantization_config=quantization, revision="main", attn_implementation="eager", device_map="cpu")
    assert seen["quantization_config"] is quantization
    assert (seen["revision"], seen["attn_implementation"], seen["device_map"]) == ("main", "eager", "cpu")
    assert seen["use_safetensors"] is True
    assert seen["trust_remote_code"] is False
    monkeypatch.setattr(loading, "usable_device", lambda device: torch.device("cpu"))
    load(str(folder), device="cuda:1", quantization_config=quantization)
    assert seen["device_map"] == {"": torch.device("cpu")}, "quantized weights go where device says"


def test_a_checkpoint_that_is_saved_quantized_is_not_moved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its weights are placed while they are loaded; moving them afterwards is an error in transformers."""
    edit_json(folder / "config.json", quantization_config={"quant_method": "bitsandbytes", "load_in_8bit": True})
    real = transformers.LlamaForCausalLM.from_pretrained

    def unquantized(*args: Any, **options: Any) -> Any:
        del options["config"].quantization_config
        return real(*args, **options)

    monkeypatch.setattr(transformers.LlamaForCausalLM, "from_pretrained", unquantized)
    monkeypatch.setattr(transformers.LlamaForCausalLM, "to", lambda *args: pytest.fail("moved"))
    load(folder)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("name", ["random-llada", "random-dream"])
def test_attention_looks_both_ways_in_every_implementation(name: str, attention: str) -> None:
    model = load(name, attn_implementation=attention).model
    ids = torch.arange(20).unsqueeze(0)
    other = ids.clone()
    other[0, -1] = 99
    where = Rows(ids, None, torch.tensor([0]), torch.tensor([3]))
    changed = Rows(other, None, torch.tensor([0]), torch.tensor([3]))
    assert not torch.allclose(model.hidden(where), model.hidden(changed)), "a later token must matter"


def test_a_mask_is_prepared_where_all_layers_share_it() -> None:
    """Given a vector per row, transformers inspects its values, for which an accelerator has to stop at every step."""
    shapes = []
    for attention in ("sdpa", "eager"):
        model = load("random-llada", device="cpu", attn_implementation=attention).model
        assert isinstance(model, TransformersLM)
        model.backbone.register_forward_pre_hook(
            lambda module, args, inputs: shapes.append(tuple(inputs["attention_mask"].shape)), with_kwargs=True
        )
        zero = torch.zeros(1, dtype=torch.int64)
        model.hidden(Rows(torch.full((1, 6), 9), zero + 2, zero, zero + 4))
    assert shapes == [(1, 1, 6, 6), (1, 6)]


HUB_SCRIPT = """

import soar_dlm as soar
for revision in (None, "v2"):
    options = {} if revision is None else {"revision": revision}
    lm = soar.load("someone/dream", **options)
    print(lm.generate("hi", "greedy", max_new_tokens=6).token_ids)
"""


def test_a_hub_id_and_its_revisions_load_from_the_hubs_cache(tmp_path: Path) -> None:
    """The real Hub path: ids, refs and snapshots as huggingface_hub keeps them, without a network."""
    repository = tmp_path / "hub" / "models--someone--dream"
    (repository / "refs").mkdir(parents=True)
    for place, (revision, shards) in enumerate((("main", 2), ("v2", 1))):
        commit = str(place) * 40
        write_dream(repository / "snapshots" / commit, seed=place, shards=shards)
        (repository / "refs" / revision).write_text(commit)
    run = subprocess.run(
        [sys.executable, "-c", HUB_SCRIPT],
        env={**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = [json.loads(line) for line in run.stdout.splitlines()]
    expected = [
        load(str(write_dream(tmp_path / str(seed), seed=seed))).generate("hi", "greedy", max_new_tokens=6).token_ids
        for seed in (0, 1)
    ]
    assert found == expected
    assert found[0] != found[1]


def test_a_compiled_model_runs_through_torch_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []

    def compiling(module: Any, **how: Any) -> Any:
        def forward(**inputs: Any) -> Any:
            compiled.append(how)
            return module(**inputs)

        return forward

    monkeypatch.setattr(torch, "compile", compiling)
    lm = load("random-llada", device="cpu", compile=True)
    assert compiled == [{"dynamic": True}], "tried when it is loaded"
    plain = load("random-llada", device="cpu").generate("hello", max_new_tokens=6)
    assert lm.generate("hello", max_new_tokens=6).token_ids == plain.token_ids
    assert len(compiled) > 1


def test_a_model_that_cannot_be_compiled_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(module: Any, **how: Any) -> Any:
        def forward(**inputs: Any) -> Any:
            raise RuntimeError("no compiler")

        return forward

    monkeypatch.setattr(torch, "compile", failing)
    with pytest.raises(SettingsError, match="no compiler"):
        load("random-llada", device="cpu", compile=True)
    with pytest.raises(SettingsError, match="compile must be"):
        load("random-llada", compile="yes")  # type: ignore[arg-type]
