"""Which ids, lengths and thresholds a model is decoded with, and who has the say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from soar_dlm.models.facts import read_facts
from soar_dlm.models.families import DREAM, LLADA, MASKED_LM, Family
from soar_dlm.models.masked_lm import ModelFacts, Rows, output_column

VOCABULARY = {"a": 0, "<|endoftext|>": 11, "<|eot_id|>": 12, "<|mdm_mask|>": 13, "<|expand|>": 14, "<|delete|>": 15}


class Words:
    """A tokenizer that knows its vocabulary and, if told, its special ids."""

    def __init__(self, **ids: int) -> None:
        self.__dict__ |= ids

    def get_vocab(self) -> dict[str, int]:
        return VOCABULARY


def facts(
    raw: dict[str, Any],
    tokenizer: Any = None,
    family: Family = LLADA,
    given: int | None = None,
    size: int = 20,
    **model: Any,
) -> ModelFacts:
    inside = SimpleNamespace(config=SimpleNamespace(), **model)
    return read_facts("a model", family, raw, inside, tokenizer, given, vocab_size=size, thresholds={})


def test_the_mask_is_the_callers_the_configs_the_tokenizers_or_the_familys() -> None:
    said = {"mask_token_id": 5}
    assert facts(said, Words(mask_token_id=6), given=4).mask_id == 4
    assert facts(said, Words(mask_token_id=6)).mask_id == 5
    assert facts({}, Words(mask_token_id=6)).mask_id == 6
    assert facts({}, Words()).mask_id == 13
    assert facts({"mask_token_id": 0}).mask_id == 0, "0 is an id like any other"


def test_a_text_ends_at_every_token_that_anyone_names() -> None:
    generation = SimpleNamespace(eos_token_id=[7, 3])
    found = facts({"mask_token_id": 5, "eos_token_id": [3, 2]}, Words(eos_token_id=4), generation_config=generation)
    assert found.end_ids == (3, 2, 4, 7, 11, 12)
    assert found.filler_id == 3
    assert facts({"mask_token_id": 5, "eos_token_id": 99}).end_ids == (), "an id outside the vocabulary"


def test_rows_are_padded_and_filled_with_what_the_model_knows() -> None:
    said = {"mask_token_id": 5, "eos_token_id": 8}
    assert facts(said | {"pad_token_id": 9}, Words(pad_token_id=7)).pad_id == 9
    assert facts(said, Words(pad_token_id=7)).pad_id == 7
    assert facts(said).pad_id == 8
    assert facts(said | {"pad_token_id": 9}).filler_id == 8, "a canvas that ended is filled with EOS, not with padding"
    assert facts({"mask_token_id": 5}).pad_id == 0
    assert facts({"mask_token_id": 5, "pad_token_id": 9}).filler_id == 9, "a model without EOS"
    assert facts(said | {"pad_token_id": -1}).pad_id == 8, "some configs write -1 for none"


def test_expand_and_delete_come_from_the_config_or_the_tokenizer() -> None:
    said = {"mask_token_id": 5, "eos_token_id": 8}
    assert (facts(said).expand_id, facts(said).delete_id) == (None, None)
    named = facts(said, Words(), DREAM)
    assert (named.expand_id, named.delete_id) == (14, 15)
    ids = facts(said | {"expand_token_id": 1, "delete_token_id": 2}, Words(), DREAM)
    assert (ids.expand_id, ids.delete_id) == (1, 2)
    eos = facts(said | {"expand_token_id": 1}, None, DREAM)
    assert (eos.expand_id, eos.delete_id) == (1, 8), "DreamOn deletes with its EOS"
    assert facts({"mask_token_id": 5, "expand_token_id": 1}, None, DREAM).expand_id is None, "nothing to delete with"
    assert facts(said, Words(), LLADA).expand_id is None


def test_the_context_starts_where_positions_do() -> None:
    def context(embeddings: Any = None, **config: Any) -> int | None:
        inside = SimpleNamespace(embeddings=embeddings) if embeddings is not None else SimpleNamespace()
        model = SimpleNamespace(config=SimpleNamespace(**config), base_model=inside)
        raw = {"mask_token_id": 5}
        return read_facts("a model", MASKED_LM, raw, model, None, None, vocab_size=9, thresholds={}).context

    past_padding = SimpleNamespace(padding_idx=1, create_position_ids_from_input_ids=None)
    assert context(max_position_embeddings=40) == 40
    assert context(past_padding, max_position_embeddings=42) == 40, "RoBERTa keeps two positions back"
    assert context(max_sequence_length=40) == 40
    assert context() is None


def test_own_thresholds_replace_the_familys() -> None:
    own = {"probability": 0.5, "mine": 0.1}
    model = SimpleNamespace(config=None)
    found = read_facts("a model", DREAM, {"mask_token_id": 5}, model, None, None, vocab_size=9, thresholds=own)
    assert found.thresholds == {"probability": 0.5, "margin": 0.9, "neg_entropy": -0.1, "mine": 0.1}


def test_rows_are_packed_to_the_right() -> None:
    canvases, columns = [np.array([1, 2, 3]), np.array([4])], [np.array([2, 0]), np.array([0])]
    rows = Rows.packed(canvases, columns, 9, "cpu")
    assert rows.ids.tolist() == [[1, 2, 3], [9, 9, 4]]
    assert rows.padding is not None
    assert rows.padding.tolist() == [0, 2]
    assert (rows.row.tolist(), rows.column.tolist()) == ([0, 0, 1], [2, 0, 2])
    assert rows.ids.dtype == torch.int64
    even = Rows.packed([np.array([1, 2]), np.array([3, 4])], [np.array([1]), np.arange(0)], 9, "cpu")
    assert even.padding is None
    assert (even.row.tolist(), even.column.tolist()) == ([0], [1])


@pytest.mark.parametrize("first", [2, torch.tensor([2, 2, 1])])
def test_a_model_that_predicts_the_next_token_is_read_one_to_the_left_but_for_the_first(first: Any) -> None:
    column = torch.tensor([2, 3, 4])
    assert output_column(column, first, predicts_next=True).tolist() == [2, 2, 3]
    assert output_column(column, first, predicts_next=False).tolist() == [2, 3, 4]
