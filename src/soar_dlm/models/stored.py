"""Keys and values that outlive a forward, through the cache interface of transformers.

That interface is made for text that only grows at its end. Here every forward may run any columns of a row: what it
computes is joined to what was stored of the others, and nothing that is stored changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import Cache
from transformers.cache_utils import CacheLayerMixin

from soar_dlm.models.masked_lm import Ints, Past, Stored


class _Layer(CacheLayerMixin):  # type: ignore[misc]
    """One layer during one forward.

    The attention hands over the keys and values [R, H, W, D] of the columns run, and attends to what comes back: those
    stored of each row, left-padded to the longest, and then the new ones.
    """

    def __init__(self, number: int, past: Past, padding: Sequence[int]) -> None:
        super().__init__()
        self._number, self._past, self._padding = number, past, padding
        self._longest = longest_stored(past)
        self.kept: list[tuple[Tensor, Tensor] | None] = []

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        keys, values = self._joined(key_states, 0), self._joined(value_states, 1)
        self.kept = [
            None if chosen is None else (self._chosen(keys, row, chosen), self._chosen(values, row, chosen))
            for row, chosen in enumerate(self._past.keep)
        ]
        return keys, values

    def _joined(self, new: Tensor, part: int) -> Tensor:
        """Stored and new keys (part 0) or values (part 1): [R, H, W, D] -> [R, H, longest + W, D]."""
        if not self._longest:
            return new
        rows, heads, width, size = new.shape
        whole = new.new_empty(rows, heads, self._longest + width, size)
        for row, stored in enumerate(self._past.stored):
            first = self._longest - (0 if stored is None else stored.size)
            whole[row, :, :first] = 0.0  # masked, but what is masked must be finite
            if stored is not None:
                whole[row, :, first : self._longest] = stored.layers[self._number][part]
        whole[:, :, self._longest :] = new
        return whole

    def _chosen(self, whole: Tensor, row: int, chosen: Ints) -> Tensor:
        """The columns to store of a row: [H, C, D] of its own."""
        stored = self._past.stored[row]
        before = 0 if stored is None else stored.size
        columns = chosen + self._longest - before
        columns[chosen >= before] += self._padding[row]
        return whole[row].index_select(1, torch.from_numpy(columns).to(whole.device))

    def get_seq_length(self) -> int:
        return self._longest

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._longest + query_length, 0

    def get_max_length(self) -> int:
        return -1

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """There is nothing to prepare."""


class Joining(Cache):  # type: ignore[misc]
    """The cache of one forward: see :class:`_Layer`."""

    def __init__(self, layers: int, past: Past, padding: Sequence[int]) -> None:
        super().__init__(layers=[_Layer(number, past, padding) for number in range(layers)])
        self._past = past

    def kept(self) -> list[Stored | None]:
        """What the forward has stored of each row."""
        layers = [layer.kept for layer in self.layers]
        return [
            None if chosen is None else Stored([layer[row] for layer in layers], chosen.size)
            for row, chosen in enumerate(self._past.keep)
        ]


def longest_stored(past: Past) -> int:
    """The most columns that are stored of any row."""
    return max((stored.size for stored in past.stored if stored is not None), default=0)
