"""Examples as rows of token ids, batched with others of about their length."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from soar_dlm.errors import SettingsError
from soar_dlm.train.examples import Example, Examples

ROUNDING = 16
"""Rows are as long as the longest of their batch, rounded up to a multiple of this, so that few shapes occur."""


@dataclass(frozen=True)
class Position:
    """The next batch of a run: its pool, and its number in the pool."""

    pool: int = 0
    batch: int = 0


@dataclass(frozen=True)
class Batch:
    """``ids`` [R, L] and ``canvas`` [R, L], True where the answer and the EOS after it stand."""

    ids: Tensor
    canvas: Tensor


class Batches:
    """An endless stream of batches.

    1. A pool of examples is encoded; rows longer than the context are left out.
    2. Rows are sorted by rounded length and cut into batches of at most ``batch_tokens`` positions.
    3. Every row of a batch is filled with EOS to the length of the longest, as LLaDA fills answers: EOS is learned
       like any other token, and no padding needs to be masked.
    4. The batches of a pool come in random order.
    """

    def __init__(self, examples: Examples, tokenizer: Tokenizer, eos_id: int, batch_tokens: int, context: int) -> None:
        self.examples, self.tokenizer, self.eos_id = examples, tokenizer, eos_id
        self.batch_tokens, self.context = batch_tokens, context

    def stream(self, start: Position) -> Iterator[tuple[Position, Batch]]:
        """Batches from a position on, each with the position of the one after it."""
        pool, first = start.pool, start.batch
        while True:
            batches = self._pool(pool)
            for number in range(first, len(batches)):
                last = number + 1 == len(batches)
                yield Position(pool + 1) if last else Position(pool, number + 1), batches[number]
            pool, first = pool + 1, 0

    def _pool(self, number: int) -> list[Batch]:
        rows = [row for row in self._rows(self.examples.pool(number)) if len(row[0]) <= self.context]
        if not rows:
            raise SettingsError(f"No training example fits into model.context = {self.context} tokens; raise it.")
        rng = random.Random(f"{self.examples.seed} batches {number}")
        rng.shuffle(rows)
        rows.sort(key=self._length)  # by rounded length, so that a batch mixes sources of about one length
        batches, start = [], 0
        while start < len(rows):
            stop = start + 1
            while stop < len(rows) and self._length(rows[stop]) * (stop + 1 - start) <= self.batch_tokens:
                stop += 1
            batches.append(self._batch(rows[start:stop]))
            start = stop
        rng.shuffle(batches)
        return batches

    def _rows(self, examples: Sequence[Example]) -> list[tuple[list[int], int]]:
        """Ids of prompt and answer with at least one EOS, up to the example's canvas; and where the answer starts."""
        prompts = self.tokenizer.encode_batch_fast([example.prompt for example in examples], add_special_tokens=False)
        answers = self.tokenizer.encode_batch_fast([example.answer for example in examples], add_special_tokens=False)
        rows = []
        for example, prompt, answer in zip(examples, prompts, answers, strict=True):
            fill = max((example.canvas or 0) - len(answer.ids), 1)
            rows.append(([*prompt.ids, *answer.ids, *[self.eos_id] * fill], len(prompt.ids)))
        return rows

    def _length(self, row: tuple[list[int], int]) -> int:
        return min(-(-len(row[0]) // ROUNDING) * ROUNDING, self.context)

    def _batch(self, rows: Sequence[tuple[list[int], int]]) -> Batch:
        length = max(self._length(row) for row in rows)
        ids = np.full((len(rows), length), self.eos_id, dtype=np.int64)
        for place, (row, _) in enumerate(rows):
            ids[place, : len(row)] = row
        starts = torch.tensor([start for _, start in rows])
        return Batch(torch.from_numpy(ids), torch.arange(length) >= starts.unsqueeze(1))
