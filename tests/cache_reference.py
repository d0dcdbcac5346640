"""Beam search with a cache, as plainly as it can be written: each candidate has a full copy of everything.

Nothing is shared with the library's caches: keys and values stay in the order of their columns, those of the columns
that are run are written over, a candidate is run by itself, and each child copies its parent's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import Cache
from transformers.cache_utils import CacheLayerMixin

from soar_dlm.models.running import TransformersLM
from soar_dlm.search.beam import advance, finished
from soar_dlm.search.candidate import Candidate, Ints
from soar_dlm.search.metrics import get_metric
from soar_dlm.search.question import Place, Reading
from soar_dlm.search.reading import ban, read
from soar_dlm.search.sampling import Sampling
from soar_dlm.search.start import Start
from soar_dlm.search.strategy import Strategy


class _WrittenOver(CacheLayerMixin):  # type: ignore[misc]
    """Keys and values [1, H, L, D] of a whole row, in place; a forward replaces those of its columns."""

    def __init__(self, columns: Tensor, length: int) -> None:
        super().__init__()
        self.keys: Tensor | None = None
        self.values: Tensor | None = None
        self.columns, self.length = columns, length

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        if self.keys is None or self.values is None:
            self.keys, self.values = key_states.clone(), value_states.clone()
        else:
            self.keys, self.values = self.keys.clone(), self.values.clone()
            self.keys[:, :, self.columns], self.values[:, :, self.columns] = key_states, value_states
        return self.keys, self.values

    def get_seq_length(self) -> int:
        return 0

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.length, 0

    def get_max_length(self) -> int:
        return -1

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None: ...


class Own:
    """The cache of one candidate: the block it was filled for, how many steps ago, and keys and values."""

    def __init__(self, block: int, layers: Sequence[_WrittenOver]) -> None:
        self.block, self.age, self.layers = block, 0, layers

    def copied(self, columns: Ints) -> list[_WrittenOver]:
        made: list[_WrittenOver] = []
        for layer in self.layers:
            own = _WrittenOver(torch.from_numpy(columns), layer.length)
            assert layer.keys is not None
            assert layer.values is not None
            own.keys, own.values = layer.keys.clone(), layer.values.clone()
            made.append(own)
        return made


@torch.inference_mode()
def cached_beam(
    model: TransformersLM, strategy: Strategy, start: Candidate, kind: str, refresh_every: int | None = None
) -> Candidate:
    """The best candidate of a beam search in which every candidate has its own cache."""
    rule = Start(start, model.facts.mask_id, report=lambda *_, **__: Place(0, 0))
    beam, caches = [start], [None]
    while not finished(beam, strategy.rules.ends_with_best):
        readings: list[Reading | None] = []
        used: list[Any] = []
        for candidate, cache in zip(beam, caches, strict=True):
            if candidate.left:
                reading, cache = _read(model, strategy, candidate, cache, kind, refresh_every)  # noqa: PLW2901
                readings.append(reading)
            else:
                readings.append(None)
            used.append(cache)
        beam = advance(beam, readings, strategy, rule)
        caches = [used[candidate.last.origin] for candidate in beam]
    return beam[0]


def _read(
    model: TransformersLM, strategy: Strategy, candidate: Candidate, cache: Own | None, kind: str, most: int | None
) -> tuple[Reading, Own]:
    block = int(candidate.block[candidate.open].min())
    inside = np.flatnonzero(candidate.block == block)
    length = candidate.tokens.size
    anew = cache is None or cache.block != block or (most is not None and cache.age + 1 >= most)
    first = int(model.needed(inside)[0])
    columns = np.arange(length) if anew else model.needed(inside) if kind == "dual" else np.arange(first, length)
    if cache is None or anew:
        own = Own(block, [_WrittenOver(torch.from_numpy(columns), length) for _ in model.backbone.layers])
        states = _forward(model, candidate, columns, own.layers)
    else:
        # what a window computes is used in its own step; the next one starts again from what the block began with
        own = Own(block, cache.layers)
        own.age = cache.age + 1
        states = _forward(model, candidate, columns, cache.copied(columns))
    positions = candidate.window()
    outputs = [max(place - 1, 0) if model.needed(np.array([1])).size > 1 else place for place in positions]
    logits = model.logits(states[np.searchsorted(columns, outputs)]).float()
    ban(logits, torch.tensor([model.facts.mask_id]))
    tokens, confidence = read(logits, get_metric(strategy.metric), Sampling())
    return Reading(positions, tokens.numpy(), confidence.numpy(), np.zeros(positions.size, dtype=np.bool_)), own


def _forward(model: TransformersLM, candidate: Candidate, columns: Ints, layers: Sequence[_WrittenOver]) -> Tensor:
    ids, places = torch.from_numpy(candidate.tokens[columns])[None], torch.from_numpy(columns)[None]
    found: Tensor = model.backbone(input_ids=ids, position_ids=places, past_key_values=Cache(layers=list(layers)))[0]
    return found[0]
