"""What a tokenizer puts around a text, and what becomes of ids it does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from soar_dlm.errors import PromptError
from soar_dlm.lm import LM, load
from soar_dlm.models.text import Text
from tests.test_masked_lms import write_masked_lm


def test_a_complete_text_is_framed_by_bos_and_eos(random_dream: LM) -> None:
    text = Text(random_dream.tokenizer, random_dream.model.facts.end_ids)
    named = random_dream.tokenizer.get_vocab()
    ids = random_dream.tokenizer("hi")["input_ids"]
    assert text.encode("hi") == (ids, []), "a prompt is not a complete text"
    assert text.whole("hi") == ([named["<|beginoftext|>"], *ids], [named["<|endoftext|>"]])


def test_a_frame_of_the_tokenizers_own_comes_first(tmp_path: Path) -> None:
    write_masked_lm(tmp_path, "bert")
    text = Text(load(tmp_path).tokenizer, ())
    assert text.whole("w1 w2") == ([2, 6, 7], [3])
    assert text.encode("w1 w2") == ([2, 6, 7], [3])
    assert text.encode("w1 w2", framed=False) == ([6, 7], [])


def test_ids_become_text(random_llada: LM) -> None:
    tokenizer, ends = random_llada.tokenizer, random_llada.model.facts.end_ids
    text = Text(tokenizer, ends)
    ids = tokenizer("ab")["input_ids"]
    assert text.until_end([*ids, ends[1], *ids]) == ids
    assert text.until_end(ids) == ids
    assert text.decode([*ids, ends[0], 263, 262]) == "ab\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"
    assert text.decode([*ids, ends[0]], keep_special=True) == "ab<|endoftext|>"


def test_what_the_tokenizer_rejects_is_a_prompt_error(random_llada: LM) -> None:
    text = Text(random_llada.tokenizer, ())
    with pytest.raises(PromptError, match="The tokenizer rejects this text"):
        text.encode(5)  # type: ignore[arg-type]
    with pytest.raises(PromptError, match="chat template rejects these messages"):
        text.encode_chat([5])  # type: ignore[list-item]
