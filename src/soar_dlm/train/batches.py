"""Examples as rows of token ids, batched with others of about the same length."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from soar_dlm.errors import SettingsError
from soar_dlm.train.examples import Examples
from soar_dlm.train.variable_length import draw_state

ROUNDING = 16
"""The length of a batch is that of its longest row, rounded up to a multiple of this, so that few shapes occur."""


@dataclass(frozen=True)
class Position:
    """The next batch of a run: the number of its pool, and its number in the pool."""

    pool: int = 0
    batch: int = 0


@dataclass(frozen=True)
class Batch:
    """``ids`` [R, L], and ``canvas`` [R, L], which is True for the answer and the EOS tokens after it.

    ``hidden`` [R, L] marks what is masked, if that is decided already.
    """

    ids: Tensor
    canvas: Tensor
    hidden: Tensor | None = None


@dataclass(frozen=True)
class Row:
    """One example as ids. Its canvas is from ``start`` to ``stop``; None means the end of the batch's rows.

    ``hidden`` marks what is masked in the canvas, if that is decided already.
    """

    ids: list[int]
    start: int
    stop: int | None = None
    hidden: list[bool] | None = None


class Batches:
    """An endless stream of batches.

    1. A pool of examples is encoded; rows that are longer than the context or have nothing to hide are left out. With
       an ``expand_id``, each answer is replaced by one of its states (:mod:`soar_dlm.train.variable_length`; EOS means
       delete), between BOS and EOS.
    2. Rows are sorted by rounded length and cut into batches of at most ``batch_tokens`` positions.
    3. Every row of a batch is filled with EOS to the length of the longest, as LLaDA does: EOS is learned like any
       other token, and there is no padding to mask.
    4. The batches of a pool come in random order.
    """

    def __init__(
        self,
        examples: Examples,
        tokenizer: Tokenizer,
        eos_id: int,
        batch_tokens: int,
        context: int,
        expand_id: int | None = None,
        bos_id: int | None = None,
    ) -> None:
        self.examples, self.tokenizer = examples, tokenizer
        self.eos_id, self.expand_id, self.bos_id = eos_id, expand_id, bos_id
        self.batch_tokens, self.context = batch_tokens, context

    def stream(self, start: Position) -> Iterator[tuple[Position, Batch]]:
        """The batches from a position on, each with the position of the next one."""
        pool, first = start.pool, start.batch
        while True:
            batches = self._pool(pool)
            for number in range(first, len(batches)):
                last = number + 1 == len(batches)
                yield Position(pool + 1) if last else Position(pool, number + 1), batches[number]
            pool, first = pool + 1, 0

    def check(self) -> None:
        """Refuse data that nothing can be learned from, before anything else is done."""
        self._fitting(0)

    def _fitting(self, pool: int) -> list[Row]:
        rows = [row for row in self._rows(pool) if row.start != row.stop]
        if not rows:
            raise SettingsError("The training data has nothing to learn: every example has an empty answer.")
        fitting = [row for row in rows if len(row.ids) <= self.context]
        if not fitting:
            shortest = min(len(row.ids) for row in rows)
            raise SettingsError(
                f"No training example fits into model.context = {self.context} tokens: the shortest of {len(rows)} "
                f"takes {shortest}. Increase it, or shorten the examples."
            )
        return fitting

    def _pool(self, number: int) -> list[Batch]:
        rows = self._fitting(number)
        rng = random.Random(f"{self.examples.seed} batches {number}")
        rng.shuffle(rows)
        rows.sort(key=self._length)  # by rounded length, so that a batch mixes sources of similar length
        batches, start = [], 0
        while start < len(rows):
            stop = start + 1
            while stop < len(rows) and self._length(rows[stop]) * (stop + 1 - start) <= self.batch_tokens:
                stop += 1
            batches.append(self._batch(rows[start:stop]))
            start = stop
        rng.shuffle(batches)
        return batches

    def _rows(self, pool: int) -> list[Row]:
        examples = self.examples.pool(pool)
        texts = ([getattr(one, part) for one in examples] for part in ("prompt", "answer", "suffix"))
        encoded = [self.tokenizer.encode_batch_fast(part, add_special_tokens=False) for part in texts]
        rng = random.Random(f"{self.examples.seed} states {pool}")
        return [
            self._row(prompt.ids, answer.ids, suffix.ids, example.canvas or 0, rng)
            for example, prompt, answer, suffix in zip(examples, *encoded, strict=True)
        ]

    def _row(self, prompt: list[int], answer: list[int], suffix: list[int], canvas: int, rng: random.Random) -> Row:
        """Prompt, answer and suffix; without a suffix, EOS to the end of the example's canvas, but at least one.

        With an ``expand_id``, the order is DreamOn's: BOS, prompt, a state of the answer, suffix, EOS.
        """
        start = len(prompt)
        if self.expand_id is not None:
            state = draw_state(answer, self.expand_id, self.eos_id, rng)
            before = [] if self.bos_id is None else [self.bos_id]
            start += len(before)
            ids = [*before, *prompt, *state.targets, *suffix, self.eos_id]
            return Row(ids, start, start + len(state.targets), state.hidden)
        if suffix:
            return Row([*prompt, *answer, *suffix], start, start + len(answer))
        fill = min(max(canvas - len(answer), 1), self.context + 1)  # longer rows are left out anyway
        return Row([*prompt, *answer, *[self.eos_id] * fill], start)

    def _length(self, row: Row) -> int:
        return min(-(-len(row.ids) // ROUNDING) * ROUNDING, self.context)

    def _batch(self, rows: Sequence[Row]) -> Batch:
        length = max(self._length(row) for row in rows)
        ids = np.full((len(rows), length), self.eos_id, dtype=np.int64)
        canvas, hidden = np.zeros((2, len(rows), length), dtype=np.bool_)
        for place, row in enumerate(rows):
            ids[place, : len(row.ids)] = row.ids
            canvas[place, row.start : row.stop] = True
            if row.hidden is not None:
                hidden[place, row.start : row.stop] = row.hidden
        settled = self.expand_id is not None
        return Batch(torch.from_numpy(ids), torch.from_numpy(canvas), torch.from_numpy(hidden) if settled else None)
