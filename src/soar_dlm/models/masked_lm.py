"""A masked language model as the engine sees it: rows of token ids in, logits at the requested places out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class ModelFacts:
    """What the engine must know about a model besides how to run it.

    ``end_ids`` end a text; the first of them is the EOS; empty if the model has none. ``filler_id`` fills the rest of a
    canvas that ended early. ``context`` is the length of the longest row, None if there is no limit. ``thresholds``
    has a threshold for each metric. A model that can change the length of its canvas has both an ``expand_id`` and a
    ``delete_id``, which may be its EOS.
    """

    vocab_size: int
    mask_id: int
    pad_id: int
    filler_id: int
    end_ids: tuple[int, ...] = ()
    context: int | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    expand_id: int | None = None
    delete_id: int | None = None


@dataclass(frozen=True)
class Rows:
    """A left-padded batch and the places in it whose logits are wanted.

    ``ids`` [R, L]; ``padding`` [R] counts the pads at the start of each row, None if there are none;
    ``row`` and ``column`` [P] name the places.
    """

    ids: Tensor
    padding: Tensor | None
    row: Tensor
    column: Tensor

    @classmethod
    def packed(cls, canvases: Sequence[Ints], columns: Sequence[Ints], pad_id: int, device: torch.device | str) -> Rows:
        """Canvases of any length, padded on the left to the longest, with the columns to read in each.

        Columns count from the start of their own canvas; the places are in the order of the canvases.
        """
        longest = max(canvas.size for canvas in canvases)
        padding = np.array([longest - canvas.size for canvas in canvases])
        ids = np.full((len(canvases), longest), pad_id, dtype=np.int64)
        for row, canvas in enumerate(canvases):
            ids[row, padding[row] :] = canvas
        rows = np.repeat(np.arange(len(columns)), [part.size for part in columns])
        column = np.concatenate([part + pad for part, pad in zip(columns, padding, strict=True)])
        return cls(
            ids=torch.from_numpy(ids).to(device),
            padding=torch.from_numpy(padding).to(device) if padding.any() else None,
            row=torch.from_numpy(rows).to(device),
            column=torch.from_numpy(column).to(device),
        )


@dataclass(frozen=True, eq=False)
class Stored:
    """Keys and values of some columns of a row, as a forward has computed them.

    ``layers`` has those of each layer, both [H, C, D], already rotated to their positions, so that attention does not
    mind in which order they lie. Nothing writes to them: any number of rows may build on the same ones.
    """

    layers: Sequence[tuple[Tensor, Tensor]]
    size: int
    """C, the number of columns."""
    origin: Any = None
    """Whatever the model that stored them knows them by; it lives as long as they do."""

    def first(self, count: int) -> Stored:
        """The first columns, without a copy."""
        return replace(self, layers=[(keys[:, :count], values[:, :count]) for keys, values in self.layers], size=count)


@dataclass(frozen=True, eq=False)
class Past:
    """What the rows of a forward build on, and what is stored of them, row by row.

    ``places``: the position of each column that is run, left to right. ``stored``: the columns that the row sees
    besides; None for nothing. ``keep``: indices of the columns to store, counted over those stored before and then
    those run; None for nothing.
    """

    places: Sequence[Ints]
    stored: Sequence[Stored | None]
    keep: Sequence[Ints | None]


class MaskedLM(Protocol):
    """Anything that can be decoded. The head is separate so that it runs on few positions, in slices."""

    @property
    def facts(self) -> ModelFacts: ...

    @property
    def device(self) -> torch.device: ...

    def hidden(self, rows: Rows) -> Tensor:
        """The state from which the head predicts each place: [P, D]."""
        ...

    def head(self, hidden: Tensor, out: Tensor) -> None:
        """Write the logits of these places into ``out``: [S, D] -> [S, V] in float32."""
        ...


class CachingLM(MaskedLM, Protocol):
    """A model that can run some columns of a row over stored keys and values of the others."""

    @property
    def column_bytes(self) -> int | None:
        """What storing a column takes; None if this model cannot store any."""
        ...

    def needed(self, columns: Ints) -> Ints:
        """The columns whose output predicts these, and these, left to right."""
        ...

    def hidden_over(self, rows: Rows, past: Past) -> tuple[Tensor, list[Stored | None]]:
        """As :meth:`hidden`, for rows of which only some columns are run, and what is stored of each."""
        ...


def output_column(column: Tensor, first: Tensor | int, predicts_next: bool) -> Tensor:
    """The column whose output predicts each of these columns: [P] -> [P].

    In models that predict the next token (Dream), the output at i is about i + 1, so it is the column to the left; the
    first token of a row (at column ``first``) has none and is read at its own place. In other models it is the column
    itself.
    """
    return (column - 1).clamp(min=first) if predicts_next else column
