"""Loading: the real layouts, the real sizes, and every way a checkpoint can be wrong."""

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
from safetensors.torch import load_file, save_file

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
from soar_dlm.lm import LM, load
from soar_dlm.models import loading
from soar_dlm.models.embedded import embedded_folder
from soar_dlm.models.families import DREAM, FAMILIES, LLADA, Family, family_of
from soar_dlm.models.loading import config_for
from soar_dlm.models.masked_lm import Rows
from soar_dlm.models.random_checkpoint import save_shards, write_dream, write_llada

LLADA_8B = {
    "model_type": "llada",
    "architectures": ["LLaDAModelLM"],
    "activation_type": "silu",
    "alibi": False,
    "attention_layer_norm": False,
    "block_type": "llama",
    "d_model": 4096,
    "embedding_size": 126464,
    "eos_token_id": 126081,
    "include_bias": False,
    "include_qkv_bias": False,
    "input_emb_norm": False,
    "layer_norm_type": "rms",
    "mask_token_id": 126336,
    "max_sequence_length": 4096,
    "mlp_hidden_size": 12288,
    "mlp_ratio": 4,
    "n_heads": 32,
    "n_kv_heads": 32,
    "n_layers": 32,
    "pad_token_id": 126081,
    "rms_norm_eps": 1e-05,
    "rope": True,
    "rope_theta": 500000.0,
    "scale_logits": False,
    "vocab_size": 126464,
    "weight_tying": False,
}
DREAM_7B = {
    "model_type": "Dream",
    "architectures": ["DreamModel"],
    "attention_dropout": 0.0,
    "bos_token_id": 151643,
    "eos_token_id": 151643,
    "hidden_act": "silu",
    "hidden_size": 3584,
    "initializer_range": 0.02,
    "intermediate_size": 18944,
    "mask_token_id": 151666,
    "max_position_embeddings": 131072,
    "max_window_layers": 28,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "pad_token_id": 151643,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 152064,
}


def published_names(family: Family, layers: int) -> set[str]:
    """The weight names of the checkpoints on the Hub, written out by hand."""
    if family is LLADA:
        parts = ["q_proj", "k_proj", "v_proj", "attn_out", "ff_proj", "up_proj", "ff_out", "attn_norm", "ff_norm"]
        names = {f"model.transformer.blocks.{n}.{part}.weight" for n in range(layers) for part in parts}
        return names | {f"model.transformer.{part}.weight" for part in ("wte", "ln_f", "ff_out")}
    linear = ("self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
    parts = [*linear, "input_layernorm", "post_attention_layernorm"]
    names = {f"model.layers.{n}.{part}.weight" for n in range(layers) for part in parts}
    names |= {
        f"model.layers.{n}.self_attn.{part}_proj.{kind}"
        for n in range(layers)
        for part in "qkv"
        for kind in ("weight", "bias")
    }
    return names | {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"}


def renamed(name: str, family: Family) -> str:
    matching = [(pattern, to) for pattern, to in family.weight_names.items() if re.match(pattern, name)]
    assert len(matching) <= 1, f"{name} is renamed twice"
    return re.sub(*matching[0], name) if matching else name


@pytest.mark.parametrize(
    ("family", "raw", "layers", "parameters"),
    [(LLADA, LLADA_8B, 32, 8_015_581_184), (DREAM, DREAM_7B, 28, 7_615_616_512)],
    ids=["LLaDA-8B", "Dream-7B"],
)
def test_full_size_models_match_the_published_checkpoints(
    family: Family, raw: dict[str, Any], layers: int, parameters: int
) -> None:
    """Every published weight has one place in the stock class, every place is filled, and the count is right."""
    assert family_of(raw) is family
    config = config_for(family, raw)
    with torch.device("meta"):
        model = getattr(transformers, family.model_class)(config)
    places = dict(model.named_parameters())
    mapped = [renamed(name, family) for name in published_names(family, layers)]
    assert len(mapped) == len(set(mapped)), "two published weights fall on one place"
    assert set(mapped) == set(places)
    assert sum(parameter.numel() for parameter in places.values()) == parameters
    assert config.is_causal is False
    assert config.max_position_embeddings == raw.get("max_sequence_length", raw.get("max_position_embeddings"))
    assert config.rope_parameters["rope_theta"] == raw["rope_theta"]


@pytest.mark.parametrize("write", [write_llada, write_dream])
@pytest.mark.parametrize("shards", [1, 3])
def test_sharded_safetensors_round_trip(tmp_path: Path, write: Any, shards: int) -> None:
    folder = write(tmp_path / "sharded", shards=shards, seed=4)
    one = write(tmp_path / "one", seed=4)
    assert len(list(folder.glob("*.safetensors"))) == shards
    sharded, whole = load(str(folder)), load(str(one))
    stored = load_file(one / "model.safetensors")
    loaded = {**dict(sharded.model.backbone.named_parameters(prefix="model")), "lm_head.weight": sharded.model._matrix}
    assert {renamed(name, sharded.family) for name in stored} == set(loaded)
    for name, weight in stored.items():
        assert torch.equal(loaded[renamed(name, sharded.family)], weight), name
    prompts = ["round", "trip"]
    assert sharded.generate(prompts, max_new_tokens=8) == whole.generate(prompts, max_new_tokens=8)


def test_dream_tokenizer_loads_without_its_remote_code(random_dream: LM) -> None:
    config = json.loads((Path(embedded_folder("random-dream") or "") / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "DreamTokenizer"
    assert "AutoTokenizer" in config["auto_map"]
    text = "Grüße, 世界! <|mask|>\n"
    ids = random_dream.tokenizer(text)["input_ids"]
    assert random_dream.model.facts.mask_id in ids
    assert random_dream.tokenizer.decode(ids) == text


def test_thresholds_are_the_papers() -> None:
    assert LLADA.thresholds == {"probability": 0.95, "margin": 0.9, "neg_entropy": -0.1}
    assert DREAM.thresholds == {"probability": 0.9, "margin": 0.9, "neg_entropy": -0.1}


def test_special_ids(random_llada: LM, random_dream: LM) -> None:
    for lm, eos, turn_end in (
        (random_llada, "<|endoftext|>", "<|eot_id|>"),
        (random_dream, "<|endoftext|>", "<|im_end|>"),
    ):
        vocabulary = lm.tokenizer.get_vocab()
        assert lm.model.facts.end_ids == (vocabulary[eos], vocabulary[turn_end])
        assert lm.model.facts.filler_id == vocabulary[eos]


def edit_json(path: Path, **changes: Any) -> None:
    content = json.loads(path.read_text())
    for key, value in changes.items():
        if value is ...:
            content.pop(key, None)
        else:
            content[key] = value
    path.write_text(json.dumps(content))


def edit_weights(folder: Path, change: Any) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_llada(tmp_path / "model")


def test_missing_unexpected_and_misshapen_weights_are_told(folder: Path) -> None:
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


def test_a_damaged_tokenizer_is_told(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(CheckpointError, match="tokenizer of"):
        load(folder)


def test_a_missing_package_is_told(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="needs a package that is missing"):
        load(folder, attn_implementation="flash_attention_2")


def test_running_out_of_memory_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any) -> None:
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(transformers.LlamaForCausalLM, "to", full)
    with pytest.raises(CheckpointError, match="does not fit into memory"):
        load(folder)


def test_a_damaged_file_is_told(folder: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])
    with pytest.raises(CheckpointError, match="Could not load"):
        load(str(folder))


def test_a_model_without_a_mask_token_is_refused_unless_told(folder: Path) -> None:
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
        load("random-llada", revison="main")


def test_devices_and_dtypes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(str(folder), device="cpu").model.logits(torch.ones(1, 64)).dtype == torch.float32
    half = load(str(folder), dtype="bfloat16")
    assert half.model._matrix is not None
    assert half.model._matrix.dtype == torch.bfloat16
    assert half.generate("hi", max_new_tokens=5).steps > 0
    edit_json(folder / "config.json", torch_dtype="bfloat16")
    assert load(str(folder)).model._matrix.dtype == torch.float32  # type: ignore[union-attr]
    assert load(str(folder), dtype="auto").model._matrix.dtype == torch.bfloat16  # type: ignore[union-attr]
    with pytest.raises(UnknownName, match="Did you mean 'bfloat16'"):
        load(str(folder), dtype="bfloat")
    with pytest.raises(SettingsError, match="cannot be used here"):
        load(str(folder), device="cuda:7")
    with pytest.raises(SettingsError, match="not both"):
        load(str(folder), device="cpu", device_map="auto")
    mapped = load(str(folder), device_map="cpu", dtype="float32")
    assert mapped.generate("hi", max_new_tokens=5) == load(str(folder)).generate("hi", max_new_tokens=5)
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
    quantization = object()
    load(str(folder), quantization_config=quantization, revision="main", attn_implementation="eager", device_map="cpu")
    assert seen["quantization_config"] is quantization
    assert (seen["revision"], seen["attn_implementation"], seen["device_map"]) == ("main", "eager", "cpu")
    assert seen["use_safetensors"] is True
    assert seen["trust_remote_code"] is False
    monkeypatch.setattr(loading, "_device", lambda device: torch.device("cpu"))
    load(str(folder), device="cuda:1", quantization_config=quantization)
    assert seen["device_map"] == {"": torch.device("cpu")}, "quantized weights go where device says"


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


def tiny(kind: str) -> transformers.PreTrainedModel:
    torch.manual_seed(0)
    shape = {
        "vocab_size": 60,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
    }
    fnet = {name: value for name, value in shape.items() if name != "num_attention_heads"}
    makers: dict[str, Any] = {
        "bert": lambda: transformers.BertForMaskedLM(transformers.BertConfig(**shape, max_position_embeddings=40)),
        "roberta": lambda: transformers.RobertaForMaskedLM(
            transformers.RobertaConfig(**shape, max_position_embeddings=42, pad_token_id=1)
        ),
        "modernbert": lambda: transformers.ModernBertForMaskedLM(
            transformers.ModernBertConfig(
                **shape,
                max_position_embeddings=40,
                pad_token_id=0,
                eos_token_id=3,
                bos_token_id=2,
                cls_token_id=2,
                sep_token_id=3,
                local_attention=8,
            )
        ),
        "distilbert": lambda: transformers.DistilBertForMaskedLM(
            transformers.DistilBertConfig(
                vocab_size=60, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=40
            )
        ),
        "fnet": lambda: transformers.FNetForMaskedLM(transformers.FNetConfig(**fnet, max_position_embeddings=40)),
        "roformer": lambda: transformers.RoFormerForMaskedLM(
            transformers.RoFormerConfig(**shape, max_position_embeddings=40, embedding_size=32)
        ),
    }
    model: transformers.PreTrainedModel = makers[kind]()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
    return model.eval()


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *[f"w{n}" for n in range(50)]]


def write_masked_lm(folder: Path, kind: str) -> transformers.PreTrainedModel:
    """A word-level checkpoint as BERT-like models have it, with the unused heads that real ones carry."""
    model = tiny(kind)
    model.save_pretrained(folder)
    if kind == "bert":
        edit_weights(folder, lambda w: w.update({"cls.seq_relationship.weight": torch.ones(2, 32)}))
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=words,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    ).save_pretrained(folder)
    return model


@pytest.mark.parametrize("kind", ["bert", "roberta", "modernbert", "distilbert", "roformer"])
def test_any_masked_lm_loads_and_padding_changes_nothing(tmp_path: Path, kind: str) -> None:
    original = write_masked_lm(tmp_path, kind)
    lm = load(str(tmp_path))
    assert lm.family.name == "masked-lm"
    assert lm.model.facts.context == 40
    short, long = torch.tensor([[2, 7, 9, 4, 3]]), torch.tensor([[2, 5, 6, 4, 11, 12, 4, 13, 3]])
    with torch.inference_mode():
        expected = torch.stack([original(short).logits[0, 3], original(long).logits[0, 3], original(long).logits[0, 6]])
    batch = torch.cat([torch.cat([torch.full((1, 4), lm.model.facts.pad_id), short], dim=1), long])
    rows = Rows(batch, torch.tensor([4, 0]), torch.tensor([0, 1, 1]), torch.tensor([7, 3, 6]))
    torch.testing.assert_close(lm.model.logits(lm.model.hidden(rows)), expected, atol=1e-5, rtol=1e-4)
    prompts = ["w1 w2", "w3 [MASK] w4 w5"]
    together = [result.token_ids for result in lm.generate(prompts, "greedy", max_new_tokens=4)]
    assert together == [lm.generate(prompt, "greedy", max_new_tokens=4).token_ids for prompt in prompts]
    assert all(4 not in token_ids for token_ids in together)


def test_an_architecture_that_mixes_padding_in_is_refused(tmp_path: Path) -> None:
    """FNet has no attention mask: in a batch, its predictions would depend on the neighbours' length."""
    write_masked_lm(tmp_path, "fnet")
    with pytest.raises(CheckpointError, match="cannot be batched"):
        load(tmp_path)


def test_masked_lm_canvases_are_framed_as_the_tokenizer_frames_text(tmp_path: Path) -> None:
    write_masked_lm(tmp_path, "bert")
    lm = load(str(tmp_path))
    result = lm.generate("w1 w2", "greedy", max_new_tokens=3)
    assert result.prompt_length == 3, "[CLS] w1 w2"
    by_hand = lm.decode([[2, 6, 7, 4, 4, 4, 3]], "greedy")[0]
    assert by_hand.token_ids == [2, 6, 7, *result.token_ids, 3]


def test_ids_the_tokenizer_lacks_never_crash_the_text_path(random_llada: LM, random_dream: LM) -> None:
    for lm in (random_llada, random_dream):
        known = len(lm.tokenizer)
        unknown = list(range(known, lm.model.facts.vocab_size))
        assert unknown, "these checkpoints have more rows in the head than tokens"
        banned = range(known)
        result = lm.generate("x", "greedy", max_new_tokens=6, suppress_tokens=banned, early_exit=False)
        assert all(token in unknown for token in result.token_ids)
        assert result.text == "\N{REPLACEMENT CHARACTER}" * 6
        assert [event.result for event in lm.stream("x", "greedy", max_new_tokens=6, suppress_tokens=banned)][-1]


def test_families_are_told_apart() -> None:
    assert [family_of({"model_type": kind}).name for kind in ("llada", "Dream", "dream", "bert", "x")] == [
        "llada",
        "dream",
        "dream",
        "masked-lm",
        "masked-lm",
    ]
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


def test_shards_cover_all_weights_once(tmp_path: Path) -> None:
    weights = {f"w{n}": torch.full((2,), float(n)) for n in range(7)}
    save_shards(tmp_path, weights, 3)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == 7 * 8
    assert set(index["weight_map"]) == set(weights)
    read = {name: weight for file in tmp_path.glob("*.safetensors") for name, weight in load_file(file).items()}
    assert read.keys() == weights.keys()


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
