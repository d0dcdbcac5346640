"""A batch on Ray Data: its rows are chunks, its actors are workers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from soar_dlm.scale.cluster import told_plainly
from soar_dlm.scale.inputs import Chunk, Part
from soar_dlm.scale.pool import Made, Pool, mapped
from soar_dlm.scale.worker import Done, Task, Worker

TURNS = 8
"""How many tasks each worker gets at least, where there are chunks enough: so none waits long for the last."""
LONGEST_TASK = 32
"""Chunks in a task. Ray repeats a task that its worker did not survive, but chunks that are written stay."""


class _Actor:
    """A worker as Ray Data wants it: called with a chunk, several calls at a time."""

    def __init__(self, task: Task) -> None:
        self._worker = Made(lambda: Worker(task))

    async def __call__(self, batch: Mapping[str, Any]) -> AsyncIterator[dict[str, list[int]]]:
        for text in batch["chunk"]:
            done = await self._worker().decode(_chunk(text))
            yield {name: [value] for name, value in asdict(done).items()}


def run_on_ray(task: Task, chunks: Sequence[Chunk], together: int, pool: Pool, on_done: Callable[[Done], None]) -> None:
    """Decode all chunks on the workers of a pool, each with ``together`` of them at a time."""
    per_task = min(LONGEST_TASK, max(1, len(chunks) // (pool.most * TURNS)))
    rows = [{"chunk": json.dumps(asdict(chunk))} for chunk in chunks]
    told: set[int] = set()
    with told_plainly():
        for row in mapped(rows, _Actor, task, pool, -(-len(rows) // per_task), together, ordered=False):
            if row["number"] not in told:  # a task that is repeated tells of its chunks again
                told.add(row["number"])
                on_done(Done(**row))


def _chunk(text: str) -> Chunk:
    found = json.loads(text)
    return Chunk(found["number"], found["first"], tuple(Part(**part) for part in found["parts"]))
