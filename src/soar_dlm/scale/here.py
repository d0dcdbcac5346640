"""A batch in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from soar_dlm.scale.inputs import Chunk
from soar_dlm.scale.worker import Done, Task, Worker


def run_here(
    task: Task, chunks: Sequence[Chunk], together: int, on_done: Callable[[Done], None], on_prompt: Callable[[], None]
) -> None:
    """Decode all chunks, ``together`` of them at a time."""
    asyncio.run(_run(Worker(task, on_prompt), chunks, together, on_done))


async def _run(worker: Worker, chunks: Sequence[Chunk], together: int, on_done: Callable[[Done], None]) -> None:
    waiting, running = iter(chunks), set[asyncio.Task[Done]]()
    try:
        while True:
            for chunk in waiting:
                running.add(asyncio.ensure_future(worker.decode(chunk)))
                if len(running) == together:
                    break
            if not running:
                return
            ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for one in ended:
                on_done(one.result())
    finally:
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await worker.close()
