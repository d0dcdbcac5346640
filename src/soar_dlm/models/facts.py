"""What a checkpoint says about itself: its mask token, where its texts end, how long a row may be."""

from __future__ import annotations

from typing import Any

from soar_dlm.errors import NoMaskToken
from soar_dlm.models.families import Family
from soar_dlm.models.masked_lm import ModelFacts, first_position


def read_facts(
    name: str, family: Family, raw: dict[str, Any], model: Any, tokenizer: Any, mask_token_id: int | None
) -> ModelFacts:
    """Collect the facts: what the caller says goes first, then config.json (``raw``), then the tokenizer."""
    vocabulary: dict[str, int] = tokenizer.get_vocab() if tokenizer is not None else {}
    size = model.config.vocab_size
    end_ids = _end_ids(family, raw, model, tokenizer, vocabulary)
    pads = [raw.get("pad_token_id"), getattr(tokenizer, "pad_token_id", None), *end_ids, 0]
    pad = next(token for token in pads if token is not None and 0 <= token < size)
    expand, delete = _length_ids(family, raw, end_ids, vocabulary, size)
    longest = getattr(model.config, "max_position_embeddings", None)
    return ModelFacts(
        vocab_size=size,
        mask_id=_mask_id(name, family, raw, tokenizer, vocabulary, size, mask_token_id),
        pad_id=pad,
        filler_id=end_ids[0] if end_ids else pad,
        end_ids=end_ids,
        context=longest - first_position(model.base_model) if longest else None,
        thresholds=family.thresholds,
        expand_id=expand,
        delete_id=delete,
    )


def _mask_id(
    name: str,
    family: Family,
    raw: dict[str, Any],
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
            f"{name!r} names no mask token, neither in config.json nor in its tokenizer. "
            "If it has one, pass its id as mask_token_id."
        )
    if not 0 <= mask < size:
        raise NoMaskToken(f"Mask token id {mask} of {name!r} is outside the vocabulary of {size}; pass mask_token_id.")
    return mask


def _end_ids(
    family: Family, raw: dict[str, Any], model: Any, tokenizer: Any, vocabulary: dict[str, int]
) -> tuple[int, ...]:
    """The EOS tokens of config.json, tokenizer and generation_config.json, then the family's end-of-turn tokens."""
    owners = (tokenizer, getattr(model, "generation_config", None))
    ends: list[int] = []
    for named in (raw.get("eos_token_id"), *(getattr(owner, "eos_token_id", None) for owner in owners)):
        ends += named if isinstance(named, list) else [] if named is None else [named]
    ends += [vocabulary[token] for token in family.end_tokens if token in vocabulary]
    return tuple(dict.fromkeys(token for token in ends if 0 <= token < model.config.vocab_size))


def _length_ids(
    family: Family, raw: dict[str, Any], end_ids: tuple[int, ...], vocabulary: dict[str, int], size: int
) -> tuple[int | None, int | None]:
    """The expand and the delete token of config.json, else of the tokenizer; the EOS is delete where none is named.

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
