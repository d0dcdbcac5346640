"""Models whose logits are a rule, so that what a search should do with them can be worked out by hand or by force."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from soar_dlm.engine.engine import Engine
from soar_dlm.engine.request import Decoding, Request
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.engine.stopping import Decode
from soar_dlm.models.masked_lm import Ints, ModelFacts, Past, Rows, Stored
from soar_dlm.options import Options
from soar_dlm.search.question import Reading
from soar_dlm.search.strategy import Strategy

THRESHOLDS = {"probability": 0.9, "margin": 0.9, "neg_entropy": -0.1}
Rule = Callable[[list[int], int], Sequence[float]]


class OnCpu:
    """What every model made for a test has: facts, and a place."""

    def __init__(self, facts: ModelFacts) -> None:
        self._facts = facts

    @property
    def facts(self) -> ModelFacts:
        return self._facts

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")


class CraftedLM(OnCpu):
    """``rule(tokens, position)`` gives the logits of a position in a row, without its padding.

    Every place is worked out by itself, so results cannot depend on the batch through rounding.
    """

    def __init__(
        self,
        rule: Rule,
        vocab_size: int,
        ends: tuple[int, ...] = (),
        context: int | None = None,
        expand: int | None = None,
        delete: int | None = None,
    ) -> None:
        self.rule = rule
        self.mask = vocab_size - 1
        filler = ends[0] if ends else 0
        super().__init__(ModelFacts(vocab_size, self.mask, 0, filler, ends, context, THRESHOLDS, expand, delete))
        self.seen: list[Tensor] = []

    def hidden(self, rows: Rows) -> Tensor:
        self.seen.append(rows.ids)
        padding = [0] * len(rows.ids) if rows.padding is None else rows.padding.tolist()
        canvases = [row[pad:] for row, pad in zip(rows.ids.tolist(), padding, strict=True)]
        places = zip(rows.row.tolist(), rows.column.tolist(), strict=True)
        return torch.tensor([self.rule(canvases[r], c - padding[r]) for r, c in places], dtype=torch.float32)

    def head(self, hidden: Tensor, out: Tensor) -> None:
        out.copy_(hidden)


class CraftedCachingLM(CraftedLM):
    """A crafted model that can run some columns of a row over stored ones.

    What it stores of a column is its place and its token, so it sees a row as it was when its parts were run. As long
    as what is stored has not changed and has not moved, predictions are those of the whole row. Like Dream, it runs
    the column to the left of each one that it predicts.
    """

    column_bytes = 1

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.pasts: list[Past] = []

    def needed(self, columns: Ints) -> Ints:
        both: Ints = np.union1d(columns, np.maximum(columns - 1, 0))
        return both

    def hidden_over(self, rows: Rows, past: Past) -> tuple[Tensor, list[Stored | None]]:
        self.pasts.append(past)
        states: list[Sequence[float]] = []
        kept: list[Stored | None] = []
        for number, (places, stored, keep) in enumerate(zip(past.places, past.stored, past.keep, strict=True)):
            ids = rows.ids[number, rows.ids.shape[1] - places.size :].tolist()
            seen = (
                [] if stored is None else list(zip(*(part[0, :, 0].tolist() for part in stored.layers[0]), strict=True))
            )
            seen += zip(places.tolist(), ids, strict=True)
            assert len({place for place, _ in seen}) == len(seen), "a column is there twice"
            assert [place for place, _ in sorted(seen)] == list(range(len(seen))), "a column is missing"
            row = [token for _, token in sorted(seen)]
            first = rows.ids.shape[1] - places.size
            for column in rows.column[rows.row == number].tolist():
                assert places[column - first] == 0 or places[column - first - 1] == places[column - first] - 1
                states.append(self.rule(row, int(places[column - first])))
            chosen = None if keep is None else torch.tensor([seen[place] for place in keep.tolist()])
            parts = None if chosen is None else (chosen[None, :, :1], chosen[None, :, 1:])
            kept.append(None if parts is None else Stored([parts], len(parts[0][0])))
        return torch.tensor(states, dtype=torch.float32), kept


def random_lm(
    seed: int, vocab_size: int = 9, scale: float = 3.0, kind: type[CraftedLM] = CraftedLM, **facts: Any
) -> CraftedLM:
    """A random function of the whole row: two rows that differ anywhere have unrelated predictions."""

    def rule(tokens: list[int], position: int) -> list[float]:
        text = f"{seed}/{tokens}/{position}".encode()
        number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
        values: list[float] = (np.random.default_rng(number).normal(size=vocab_size) * scale).tolist()
        return values

    return kind(rule, vocab_size, **facts)


def neighbourly_lm(seed: int, length: int, vocab_size: int = 9, scale: float = 3.0, pull: float = 0.7) -> CraftedLM:
    """A random belief for each position, which the tokens around it shift a little, as in a trained model.

    Orders of filling often lead to the same text, so candidates meet and merge.
    """
    rng = np.random.default_rng(seed)
    beliefs = rng.normal(size=(length, vocab_size)) * scale
    shifts = rng.normal(size=(5, vocab_size, vocab_size)) * pull

    def rule(tokens: list[int], position: int) -> list[float]:
        logits = beliefs[position].copy()
        for place, offset in enumerate((-2, -1, 1, 2)):
            if 0 <= position + offset < len(tokens):
                logits += shifts[place, tokens[position + offset]]
        values: list[float] = logits.tolist()
        return values

    return CraftedLM(rule, vocab_size)


def scripted_lm(beliefs: dict[int, dict[int, float]], vocab_size: int = 9, ends: tuple[int, ...] = ()) -> CraftedLM:
    """Position -> {token: probability}, whatever else is on the canvas; the rest is spread over the other tokens."""

    def rule(tokens: list[int], position: int) -> list[float]:
        belief = beliefs.get(position, {})
        rest = (1.0 - sum(belief.values())) / (vocab_size - 1 - len(belief))
        probabilities = [belief.get(token, rest) for token in range(vocab_size - 1)]
        return [*np.log(probabilities).tolist(), -30.0]

    return CraftedLM(rule, vocab_size, ends)


def reading_of(
    confidence: Sequence[float], tokens: Sequence[int] | None = None, ends: Sequence[int] = (), **more: Any
) -> Reading:
    """What a model might say of neighbouring positions."""
    sure = np.array(confidence, dtype=np.float32)
    ids = np.arange(sure.size) if tokens is None else np.array(tokens)
    tables: dict[str, Any] = {name: np.array(values, dtype=np.float32) for name, values in more.items()}
    return Reading(np.arange(sure.size), ids, sure, np.isin(ids, ends), **tables)


def canvas_request(
    model: CraftedLM, prompt: Sequence[int], length: int, strategy: Strategy, options: Options | None = None
) -> Request:
    fill = range(len(prompt), len(prompt) + length)
    return Request([*prompt, *[model.mask] * length], fill, strategy, options or Options(early_exit=False))


def decode(
    model: CraftedLM, requests: Iterable[Request], max_rows: int = 64, decode: Decode | None = None
) -> list[Decoding]:
    done: dict[int, Decoding] = {}
    for event in Engine(model, EngineSettings(max_rows=max_rows), decode=decode).run(requests):
        if event.error is not None:
            raise event.error
        if event.decoding is not None:
            done[event.ticket] = event.decoding
    return [done[ticket] for ticket in sorted(done)]


def decode_one(
    model: CraftedLM, prompt: Sequence[int], length: int, strategy: Strategy, options: Options | None = None
) -> Decoding:
    return decode(model, [canvas_request(model, prompt, length, strategy, options)])[0]
