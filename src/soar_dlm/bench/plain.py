"""The loops that people write by hand, for comparison.

Each decodes one request at a time, runs the head on every position it runs, and takes a softmax of all its logits in
float64, as the published code of LLaDA, Fast-dLLM and SOAR does. Nothing in them is slower than it needs to be for
that: keys and values are replaced where they lie, and only positions that are filled are looked at afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import Cache
from transformers.cache_utils import CacheLayerMixin

from soar_dlm.engine.request import empty_canvas
from soar_dlm.errors import SettingsError
from soar_dlm.models.masked_lm import Rows, output_column
from soar_dlm.search.question import ONLY_TOKENS, Place, Question, Reading, Search
from soar_dlm.search.start import Start
from soar_dlm.search.strategy import Strategy


@dataclass(frozen=True)
class Written:
    """A finished canvas, how many tokens were committed, and how many evaluations of a canvas that took."""

    tokens: tuple[int, ...]
    written: int
    forwards: int


Loop = Callable[[Any, Sequence[int], range, int | None], Written]
"""A loop takes the model, a canvas, the positions to fill and the length of a block."""


@torch.inference_mode()
def plain(model: Any, canvas: Sequence[int], fill: range, block_length: int | None) -> Written:
    """Greedy without a cache, one token per step: LLaDA's own way."""
    ids = torch.tensor([canvas], device=model.device)
    banned = _banned(model)
    for low, high in _blocks(fill, block_length):
        is_open = torch.ones(high - low, dtype=torch.bool, device=ids.device)
        for _ in range(low, high):
            confidence, tokens = _read(model.logits(_states(model, ids)), banned)
            _commit(ids, is_open, low, confidence[low:high], tokens[low:high])
    return Written(tuple(ids[0].tolist()), len(fill), len(fill))


@torch.inference_mode()
def plain_dual(model: Any, canvas: Sequence[int], fill: range, block_length: int | None) -> Written:
    """Greedy with a dual cache, one token per step: Fast-dLLM's way.

    The first step of a block runs the whole row and keeps its keys and values; the others run the block alone, in place
    of the columns that were kept of it. A model that predicts the next token runs one column more, on the left.
    """
    check_dual(model)
    ids = torch.tensor([canvas], device=model.device)
    banned = _banned(model)
    shifted = bool(model.needed(np.array([1])).size > 1)
    for low, high in _blocks(fill, block_length):
        is_open = torch.ones(high - low, dtype=torch.bool, device=ids.device)
        cache = _Kept()
        window = slice(int(model.needed(np.arange(low, high))[0]), high)
        for step in range(low, high):
            run = slice(0, ids.shape[1]) if step == low else window
            states = cache.run(model, ids, run)
            columns = output_column(torch.arange(run.stop - run.start, device=ids.device), 0, shifted)
            confidence, tokens = _read(model.logits(states[0, columns] if shifted else states[0]), banned)
            first = low - run.start
            _commit(ids, is_open, low, confidence[first:][: high - low], tokens[first:][: high - low])
    return Written(tuple(ids[0].tolist()), len(fill), len(fill))


def plain_search(strategy: Strategy, clocked: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> Loop:
    """A beam search without a cache: every candidate is a row, all rows are one forward. SOAR's authors' way.

    ``clocked`` times a part of the work.
    """

    @torch.inference_mode()
    def loop(model: Any, canvas: Sequence[int], fill: range, block_length: int | None) -> Written:
        banned = _banned(model, strategy.rules.bans_mask)
        bound = strategy.bound(model.facts.thresholds)
        mask = model.facts.mask_id
        empty = empty_canvas(np.array(canvas), np.array(fill), mask, block_length)
        start = Start(empty, mask, lambda *_, **__: Place(0, 0), end_ids=np.array(model.facts.end_ids, dtype=np.int64))
        search: Search = bound.search(start)
        step = clocked("search", search.send)
        forwards, answers = 0, None
        while True:
            try:
                asked: Sequence[Question] = step(answers)
            except StopIteration as stop:
                best = getattr(stop.value, "candidate", stop.value)
                return Written(tuple(best.tokens.tolist()), best.written, forwards)
            ids = torch.from_numpy(np.stack([question.candidate.tokens for question in asked])).to(model.device)
            logits = model.logits(_states(model, ids))
            confidence, tokens = (part.view(ids.shape).cpu().numpy() for part in _read(logits, banned))
            forwards += len(asked)
            answers = [
                Reading(
                    one.positions,
                    tokens[row, one.positions],
                    confidence[row, one.positions],
                    np.isin(tokens[row, one.positions], start.end_ids),
                )
                for row, one in enumerate(asked)
            ]

    return loop


def can_run_plainly(strategy: Strategy) -> bool:
    """Whether :func:`plain_search` can answer a strategy: a beam that asks for tokens and their probabilities."""
    own = type(strategy).search is Strategy.search
    return own and strategy.wanted == ONLY_TOKENS and strategy.metric == "probability"


def check_dual(model: Any) -> None:
    """Refuse a model that cannot run some of its columns over the keys and values of others."""
    if getattr(model, "column_bytes", None) is None:
        raise SettingsError(
            "This model cannot keep keys and values of some columns, so there is no plain loop with a dual cache for "
            "it; leave dual out of --caches."
        )


class _KeptLayer(CacheLayerMixin):  # type: ignore[misc]
    """Keys and values [1, H, L, D] of a layer; those of the columns that are run take the place of the old ones."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: Tensor | None = None
        self.values: Tensor | None = None
        self.columns = slice(0)

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        if self.keys is None or self.values is None:
            self.keys, self.values = key_states, value_states
        else:
            self.keys[:, :, self.columns] = key_states
            self.values[:, :, self.columns] = value_states
        return self.keys, self.values

    def get_seq_length(self) -> int:
        return 0

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return (query_length if self.keys is None else self.keys.shape[2]), 0

    def get_max_length(self) -> int:
        return -1

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """There is nothing to prepare."""


class _Kept(Cache):  # type: ignore[misc]
    """The cache of a block: its layers come into being with the first forward."""

    def __init__(self) -> None:
        super().__init__(layer_class_to_replicate=_KeptLayer)

    def run(self, model: Any, ids: Tensor, columns: slice) -> Tensor:
        """The states [1, W, D] of these columns, over what is kept of the others."""
        for layer in self.layers:
            layer.columns = columns
        places = torch.arange(columns.start, columns.stop, device=ids.device).unsqueeze(0)
        states: Tensor = model.backbone(
            input_ids=ids[:, columns], position_ids=places, past_key_values=self, use_cache=False
        )[0]
        return states


def _blocks(fill: range, block_length: int | None) -> list[tuple[int, int]]:
    size = block_length or len(fill)
    return [(low, min(low + size, fill.stop)) for low in range(fill.start, fill.stop, size)]


def _banned(model: Any, bans_mask: bool = True) -> Tensor:
    """What the engine never predicts on a canvas of fixed length."""
    tokens = [model.facts.mask_id] if bans_mask else []
    tokens += [] if model.facts.expand_id is None else [model.facts.expand_id]
    return torch.tensor(tokens, dtype=torch.int64, device=model.device)


def _states(model: Any, ids: Tensor) -> Tensor:
    """The state from which each position of each row is predicted: [R, L] -> [R * L, D]."""
    rows, length = ids.shape
    row = torch.arange(rows, device=ids.device).repeat_interleave(length)
    states: Tensor = model.hidden(Rows(ids, None, row, torch.arange(length, device=ids.device).repeat(rows)))
    return states


def _read(logits: Tensor, banned: Tensor) -> tuple[Tensor, Tensor]:
    """The probability of the likeliest token and the token, at every position: [P, V] -> [P], [P]."""
    logits.index_fill_(-1, banned, -torch.inf)
    tokens = logits.argmax(-1)
    confidence = logits.to(torch.float64).softmax(-1).gather(-1, tokens.unsqueeze(-1))
    return confidence.squeeze(-1).float(), tokens  # as fine as the engine's, so that ties are the same


def _commit(ids: Tensor, is_open: Tensor, low: int, confidence: Tensor, tokens: Tensor) -> None:
    """Write the token of the surest open position of a block, which begins at ``low``."""
    best = int(torch.where(is_open, confidence, -1.0).argmax())
    ids[0, low + best] = tokens[best]
    is_open[best] = False
