"""A small tokenizer learned from the training data. It falls back on bytes, so it can represent any text."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX as QWEN2_PIECES

from soar_dlm.models.families import DREAM, Family
from soar_dlm.models.layouts import SPECIAL_TOKENS

PIECES = "|".join(
    [
        r"\n *",  # a line break with the indentation after it
        r" ?[0-9]{1,2}(?![0-9])",  # numbers of one or two digits whole, longer ones digit by digit
        r" ?[0-9]",
        r" ?[A-Za-z]+",
        r' ?(?:####|"""|//|\*\*|==|!=|<=|>=|\+=|-=|\*=)',
        r" ?[^\sA-Za-z0-9]",
        r"\s",
    ]
)
"""The pieces that no token crosses: words with the space before them, numbers up to 99, operators, line breaks."""

NUMBERS = "".join(f" {number},{number}," for number in range(100))


def train_tokenizer(texts: Iterable[str], family: Family, vocabulary: int) -> Tokenizer:
    """Byte-level BPE of at most ``vocabulary`` tokens, the family's special tokens last.

    Dream's files are read by transformers' Qwen2 tokenizer, which splits text in its own way (numbers into digits); a
    Dream tokenizer is trained on those pieces, any other on :data:`PIECES`, with a token for each of 0 to 99 if there
    is room.
    """
    tokenizer = Tokenizer(models.BPE())
    as_qwen2 = family.tokenizer_class == DREAM.tokenizer_class
    pieces = QWEN2_PIECES if as_qwen2 else PIECES
    if as_qwen2:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pieces), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = SPECIAL_TOKENS[family.name]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - len(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_with_numbers(texts), trainer)
    tokenizer.add_special_tokens(list(special))
    return tokenizer


def _with_numbers(texts: Iterable[str]) -> Iterable[str]:
    """The texts, with all small numbers mixed in, so that even those that are rare in the data become tokens."""
    for place, text in enumerate(texts):
        yield text
        if place % 16 == 0:
            yield NUMBERS
