"""Rows of all requests, run in as few forwards as fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from soar_dlm.engine.memory import OutOfRoom, out_of_room
from soar_dlm.models.masked_lm import CachingLM, MaskedLM, Past, Rows, Stored
from soar_dlm.search.candidate import Ints

PADDING = 0.1
"""The share of a forward that may be padding."""
LITTLE = 64
"""Columns of padding that are always allowed: about what a forward of its own would cost."""


@dataclass(frozen=True, eq=False)
class Row:
    """The tokens [W] of the columns to run, and which of them to read, counted from the first that is run.

    A row of which only some columns are run has their ``places`` [W]. It is run over ``stored`` columns, and of all
    these, stored and run, those in ``keep`` are stored.
    """

    tokens: Ints
    read: Ints
    places: Ints | None = None
    stored: Stored | None = None
    keep: Ints | None = None

    @property
    def width(self) -> int:
        return int(self.tokens.size)

    @property
    def depth(self) -> int:
        return 0 if self.stored is None else self.stored.size

    @property
    def length(self) -> int:
        return self.width + self.depth


@dataclass(frozen=True, eq=False)
class Outcome:
    """The states of all places read [P, D], row by row; what was stored of each row; rows that did not fit, and why.

    The states of a row that does not fit into memory alone are zeros; there are none at all if no row fits.
    """

    states: Tensor | None
    kept: Sequence[Stored | None]
    lost: Mapping[int, str]


class Forwards:
    """Runs the backbone.

    1. Rows are sorted by how much is stored of them and how much is run, so that those of a forward are alike.
    2. A forward takes at most ``max_rows`` of them, left-padded to the longest, as long as no more than a tenth of the
       columns it runs is padding, and no more than a tenth of those it runs them over; a little is always allowed.
    3. Where one runs out of memory it is halved, and later ones are kept as small: memory grows with rows times
       length, so that product is what is remembered.
    """

    def __init__(self, model: MaskedLM, max_rows: int) -> None:
        self._model, self._max_rows = model, max_rows
        self._most_tokens: float = math.inf

    def run(self, rows: Sequence[Row]) -> Outcome:
        left = sorted(range(len(rows)), key=lambda number: (-rows[number].depth, -rows[number].width))
        done: list[tuple[Sequence[int], Tensor]] = []
        kept: list[Stored | None] = [None] * len(rows)
        lost: dict[int, str] = {}
        while left:
            batch = left[: self._fitting([rows[number] for number in left])]
            try:
                with out_of_room(self._model.device):
                    states, stored = self._forward([rows[number] for number in batch])
            except OutOfRoom as error:
                if len(batch) > 1:
                    self._most_tokens = len(batch) * max(rows[number].length for number in batch) / 2
                    continue
                lost[batch[0]] = str(error)
            else:
                done.append((batch, states))
                for number, own in zip(batch, stored, strict=True):
                    kept[number] = own
            left = left[len(batch) :]
        return Outcome(_in_order(rows, done), kept, lost)

    def _fitting(self, rows: Sequence[Row]) -> int:
        """How many of these rows, counted from the first, share the next forward: at least one."""
        run = stored = widest = deepest = 0
        for count, row in enumerate(rows[: self._max_rows], start=1):
            run, stored = run + row.width, stored + row.depth
            widest, deepest = max(widest, row.width), max(deepest, row.depth)
            padded = _too_padded(count * widest, run) or _too_padded(count * deepest, stored)
            if count > 1 and (padded or count * (widest + deepest) > self._most_tokens):
                return count - 1
        return min(len(rows), self._max_rows)

    def _forward(self, rows: Sequence[Row]) -> tuple[Tensor, Sequence[Stored | None]]:
        facts = self._model.facts
        packed = Rows.packed([row.tokens for row in rows], [row.read for row in rows], facts.pad_id, self._model.device)
        if all(row.places is None for row in rows):
            return self._model.hidden(packed), [None] * len(rows)
        places = [np.arange(row.width) if row.places is None else row.places for row in rows]
        past = Past(places, [row.stored for row in rows], [row.keep for row in rows])
        return cast(CachingLM, self._model).hidden_over(packed, past)


def _too_padded(area: int, used: int) -> bool:
    return area - used > max(LITTLE, PADDING * area)


def _in_order(rows: Sequence[Row], done: Sequence[tuple[Sequence[int], Tensor]]) -> Tensor | None:
    """The states of all forwards in the order of the rows, zeros for those that are missing."""
    if not done:
        return None
    if len(done) == 1 and list(done[0][0]) == list(range(len(rows))):
        return done[0][1]
    ends = np.cumsum([row.read.size for row in rows])
    whole = done[0][1].new_zeros(int(ends[-1]), done[0][1].shape[1])
    for batch, states in done:
        where = np.concatenate([np.arange(ends[number] - rows[number].read.size, ends[number]) for number in batch])
        whole[torch.from_numpy(where).to(whole.device)] = states.to(whole.device)
    return whole
