"""A batch on Ray Data: its rows are chunks, its actors are workers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from soar_dlm.scale.cluster import check_fits, import_ray, resources, told_plainly
from soar_dlm.scale.inputs import Chunk, Part
from soar_dlm.scale.worker import Done, Task, Worker

TURNS = 8
"""How many tasks each worker gets at least, where there are chunks enough: so none waits long for the last."""
LONGEST_TASK = 32
"""Chunks in a task. Ray retries a task that its worker did not survive, without those chunks that are done."""


@dataclass(frozen=True)
class Pool:
    """How many workers there are, at least and at most, and what each of them takes."""

    least: int
    most: int
    cpus: float
    gpus: float


def pool_of(workers: tuple[int, int] | None, cpus: float, gpus: float | None) -> Pool:
    """The workers that were asked for; by default as many as the cluster has GPUs, or CPUs where it has none."""
    found = resources()
    own = float(found.get("GPU", 0.0) > 0) if gpus is None else gpus
    if workers is None:
        room = found.get("GPU", 0.0) // own if own else found.get("CPU", 0.0) // cpus
        workers = (max(1, int(room)),) * 2
    check_fits("workers", workers[0], {"CPU": cpus, **({"GPU": own} if own else {})})
    return Pool(*workers, cpus, own)


class _Actor:
    """A worker as Ray Data wants it: called with a chunk, several calls at a time."""

    def __init__(self, task: Task) -> None:
        self._worker = Worker(task)

    async def __call__(self, batch: Mapping[str, Any]) -> AsyncIterator[dict[str, list[int]]]:
        for text in batch["chunk"]:
            done = await self._worker.decode(_chunk(text))
            yield {name: [value] for name, value in asdict(done).items()}


def run_on_ray(task: Task, chunks: Sequence[Chunk], together: int, pool: Pool, on_done: Callable[[Done], None]) -> None:
    """Decode all chunks on the workers of a pool, each with ``together`` of them at a time.

    Ray starts a worker that died anew and gives it the same tasks again; a chunk that is written is not decoded twice.
    """
    data = import_ray().data
    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    per_task = min(LONGEST_TASK, max(1, len(chunks) // (pool.most * TURNS)))
    rows = [{"chunk": json.dumps(asdict(chunk))} for chunk in chunks]
    found = data.from_items(rows, override_num_blocks=-(-len(rows) // per_task)).map_batches(
        _Actor,
        fn_constructor_args=(task,),
        batch_size=1,
        compute=data.ActorPoolStrategy(
            min_size=pool.least, max_size=pool.most, max_concurrent_calls_per_actor=together
        ),
        num_cpus=pool.cpus,
        num_gpus=pool.gpus,
    )
    told: set[int] = set()
    with told_plainly():
        for row in found.iter_rows():
            if row["number"] not in told:
                told.add(row["number"])
                on_done(Done(**row))


def _chunk(text: str) -> Chunk:
    found = json.loads(text)
    return Chunk(found["number"], found["first"], tuple(Part(**part) for part in found["parts"]))
