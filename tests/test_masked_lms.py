"""Any AutoModelForMaskedLM, and models that know more ids than their tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from soar_dlm.errors import CheckpointError, WeightsMismatch
from soar_dlm.lm import LM, load
from soar_dlm.models.masked_lm import Rows
from tests.checkpoints import edit_weights


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


@pytest.mark.parametrize("kind", ["bert", "roberta", "modernbert", "distilbert", "roformer", "fnet"])
def test_any_masked_lm_loads_and_padding_changes_nothing(tmp_path: Path, kind: str) -> None:
    original = write_masked_lm(tmp_path, kind)
    lm = load(str(tmp_path))
    assert lm.family.name == "masked-lm"
    assert lm.model.facts.context == 40
    assert lm.model.takes_padding == (kind != "fnet"), "FNet has no attention mask, so it runs length by length"
    short, long = torch.tensor([[2, 7, 9, 4, 3]]), torch.tensor([[2, 5, 6, 4, 11, 12, 4, 13, 3]])
    with torch.inference_mode():
        expected = torch.stack([original(short).logits[0, 3], original(long).logits[0, 3], original(long).logits[0, 6]])
    batch = torch.cat([torch.cat([torch.full((1, 4), lm.model.facts.pad_id), short], dim=1), long])
    rows = Rows(batch, torch.tensor([4, 0]), torch.tensor([0, 1, 1]), torch.tensor([7, 3, 6]))
    torch.testing.assert_close(lm.model.logits(lm.model.hidden(rows)), expected, atol=1e-4, rtol=1e-4)
    prompts = ["w1 w2", "w3 [MASK] w4 w5"]
    together = [result.token_ids for result in lm.generate(prompts, "greedy", max_new_tokens=4)]
    assert together == [lm.generate(prompt, "greedy", max_new_tokens=4).token_ids for prompt in prompts]
    assert all(4 not in token_ids for token_ids in together)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("bert", "cls.seq_relationship.bias"),
        ("bert", "bert.pooler.dense.weight"),
        ("bert", "pooler.dense.bias"),
        ("bert", "nsp_head.weight"),
        ("bert", "bert.embeddings.position_ids"),
        ("modernbert", "model.embeddings.position_ids"),
    ],
)
def test_weights_that_real_checkpoints_carry_for_nothing_are_ignored(tmp_path: Path, kind: str, name: str) -> None:
    write_masked_lm(tmp_path, kind)
    edit_weights(tmp_path, lambda weights: weights.update({name: torch.ones(2)}))
    load(tmp_path)
    edit_weights(tmp_path, lambda weights: weights.update({"bert.new": torch.ones(2)}))
    with pytest.raises(WeightsMismatch, match=r"1 unexpected \(bert\.new\)"):
        load(tmp_path)


def test_an_architecture_that_takes_other_inputs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_masked_lm(tmp_path, "bert")

    def other(self: Any, pixels: Any) -> None:
        raise AssertionError("never reached")

    monkeypatch.setattr(transformers.BertModel, "forward", other)
    with pytest.raises(CheckpointError, match="cannot be run as a masked language model"):
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
