"""A batch on Ray Data: its rows are chunks, its actors are workers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import islice
from threading import Thread

from soar_dlm.scale.inputs import Chunk, Part
from soar_dlm.scale.pool import Pool, mapped
from soar_dlm.scale.worker import Done, Task, Worker

TURNS = 32
"""How many tasks of a size there are at least for each worker."""
LONGEST_TASK = 32
"""Chunks in a task. Ray repeats a task that its worker did not survive, but chunks that are written stay."""


class _Engine:
    """A worker that threads can call: each waits for its chunk, and all chunks share the worker's rows."""

    def __init__(self, task: Task) -> None:
        self._worker, self._loop = Worker(task), asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, name="soar-chunks", daemon=True).start()

    def __call__(self, text: str) -> Done:
        return asyncio.run_coroutine_threadsafe(self._worker.decode(_chunk(text)), self._loop).result()


def run_on_ray(task: Task, chunks: Sequence[Chunk], together: int, pool: Pool, on_done: Callable[[Done], None]) -> None:
    """Decode all chunks on the workers of a pool, each with ``together`` of them at a time."""
    texts = (json.dumps(asdict(chunk)) for chunk in chunks)
    tasks = [list(islice(texts, size)) for size in task_sizes(len(chunks), pool.most)]
    told: set[int] = set()
    for done in mapped(tasks, partial(_Engine, task), pool, together, ordered=False):
        if done.number not in told:  # a task that is repeated may tell of its chunks again
            told.add(done.number)
            on_done(done)


def task_sizes(chunks: int, workers: int) -> Iterator[int]:
    """How many chunks each task has.

    A task costs the driver the same however long it is, so the first ones are long. The last ones are short, so that
    no worker is left with much to do when the others have nothing.
    """
    while chunks:
        size = min(LONGEST_TASK, max(1, chunks // (workers * TURNS)))
        yield size
        chunks -= size


def _chunk(text: str) -> Chunk:
    found = json.loads(text)
    return Chunk(found["number"], found["first"], tuple(Part(**part) for part in found["parts"]))
