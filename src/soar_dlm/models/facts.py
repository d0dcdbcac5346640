"""What a checkpoint says about itself: its mask token, where its texts end, how long a row may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from soar_dlm import checks
from soar_dlm.errors import CheckpointError, NoMaskToken, shown
from soar_dlm.models.families import Family
from soar_dlm.models.masked_lm import ModelFacts
from soar_dlm.models.running import first_position

_TOKENS = ("mask_token_id", "pad_token_id", "eos_token_id", "expand_token_id", "delete_token_id")
_LONGEST_ROW = ("max_position_embeddings", "max_sequence_length")
"""What configs call the context; the second is the published LLaDA's word."""


def read_facts(
    name: str,
    family: Family,
    raw: Mapping[str, Any],
    model: Any,
    tokenizer: Any,
    mask_token_id: int | None,
    *,
    vocab_size: int,
    thresholds: Mapping[str, float],
) -> ModelFacts:
    """Collect the facts: what the caller says comes first, then the config (``raw``), then the tokenizer.

    ``thresholds`` are the checkpoint's own; they replace the family's.
    """
    checks.whole_number(f"vocab_size of {name!r}", vocab_size, 1, error=CheckpointError)
    for key in _TOKENS:
        _check_ids(name, key, raw.get(key))
    vocabulary: dict[str, int] = tokenizer.get_vocab() if tokenizer is not None else {}
    end_ids = _end_ids(family, raw, model, tokenizer, vocabulary, vocab_size)
    pads = [raw.get("pad_token_id"), getattr(tokenizer, "pad_token_id", None), *end_ids, 0]
    pad = next(token for token in pads if token is not None and 0 <= token < vocab_size)
    expand, delete = _length_ids(family, raw, end_ids, vocabulary, vocab_size)
    return ModelFacts(
        vocab_size=vocab_size,
        mask_id=_mask_id(name, family, raw, tokenizer, vocabulary, vocab_size, mask_token_id),
        pad_id=pad,
        filler_id=end_ids[0] if end_ids else pad,
        end_ids=end_ids,
        context=_context(name, model),
        thresholds={**family.thresholds, **thresholds},
        expand_id=expand,
        delete_id=delete,
    )


def _check_ids(name: str, key: str, value: Any) -> None:
    """A token id of config.json is a whole number or missing; there may be several that end a text."""
    several = value if isinstance(value, list) and key == "eos_token_id" else [value]
    for one in several:
        if one is not None and (isinstance(one, bool) or not isinstance(one, int)):
            raise CheckpointError(f"config.json of {name!r} has {key}={shown(value)}; it must be a token id.")


def _context(name: str, model: Any) -> int | None:
    """The length of the longest row; None if the config sets no limit."""
    config = getattr(model, "config", None)
    named = next((found for key in _LONGEST_ROW if (found := getattr(config, key, None))), None)
    if not named:
        return None
    longest = checks.whole_number(f"The context of {name!r}", named, 1, error=CheckpointError)
    return longest - first_position(getattr(model, "base_model", model))


def _mask_id(
    name: str,
    family: Family,
    raw: Mapping[str, Any],
    tokenizer: Any,
    vocabulary: dict[str, int],
    size: int,
    given: int | None,
) -> int:
    named = [vocabulary[token] for token in family.mask_tokens if token in vocabulary]
    found = [given, raw.get("mask_token_id"), getattr(tokenizer, "mask_token_id", None), *named]
    mask = next((token for token in found if token is not None), None)
    if mask is None:
        raise NoMaskToken(
            f"{name!r} names no mask token, neither in its config nor in its tokenizer. "
            "If it has one, pass its id as mask_token_id."
        )
    if not 0 <= mask < size:
        raise NoMaskToken(
            f"Mask token id {mask} of {name!r} is outside the vocabulary of {size}; pass another mask_token_id."
        )
    return mask


def _end_ids(
    family: Family, raw: Mapping[str, Any], model: Any, tokenizer: Any, vocabulary: dict[str, int], size: int
) -> tuple[int, ...]:
    """The EOS tokens of config, tokenizer and generation_config.json, then the family's end-of-turn tokens."""
    owners = (tokenizer, getattr(model, "generation_config", None))
    ends: list[int] = []
    for named in (raw.get("eos_token_id"), *(getattr(owner, "eos_token_id", None) for owner in owners)):
        ends += named if isinstance(named, list) else [] if named is None else [named]
    ends += [vocabulary[token] for token in family.end_tokens if token in vocabulary]
    return tuple(dict.fromkeys(token for token in ends if 0 <= token < size))


def _length_ids(
    family: Family, raw: Mapping[str, Any], end_ids: tuple[int, ...], vocabulary: dict[str, int], size: int
) -> tuple[int | None, int | None]:
    """The expand and the delete token of the config, else of the tokenizer; the EOS deletes if no other token does.

    (None, None) for a model without an expand token.
    """

    def named(key: str, tokens: tuple[str, ...]) -> int | None:
        found = [raw.get(key), *(vocabulary.get(token) for token in tokens)]
        return next((token for token in found if token is not None and 0 <= token < size), None)

    expand = named("expand_token_id", family.expand_tokens)
    delete = named("delete_token_id", family.delete_tokens)
    if delete is None and end_ids:
        delete = end_ids[0]
    return (None, None) if expand is None or delete is None else (expand, delete)
