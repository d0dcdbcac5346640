"""One engine that decodes chunk after chunk, several at a time so that its rows stay in use."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

from soar_dlm.async_lm import AsyncLM
from soar_dlm.errors import EngineStopped, SoarError
from soar_dlm.prompt_lines import Line
from soar_dlm.records import record_of, traces_of
from soar_dlm.scale.inputs import Chunk, lines_of
from soar_dlm.scale.shards import Shards
from soar_dlm.strict_json import json_line

if TYPE_CHECKING:
    from soar_dlm.lm import LM
    from soar_dlm.search.strategy import Strategy

Ready = Callable[[], "tuple[LM, Strategy]"]
"""Loads the model; it is called where the model is to be, so it can be sent to another process."""


@dataclass(frozen=True)
class Task:
    """What a worker does with its chunks: which model and strategy, which options, where the results go."""

    ready: Ready
    shards: Shards
    n: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """A chunk that was decoded: its number, its prompts, and how many of them failed."""

    number: int
    prompts: int
    failed: int


class Worker:
    """A model with its engine. Prompts of all chunks that are decoded at a time share its rows."""

    def __init__(self, task: Task, on_prompt: Callable[[], Union[object, None]] = lambda: None) -> None:
        task.shards.check_seen()
        lm, self._strategy = task.ready()
        lm.generate_as_completed([], self._strategy, n=task.n, **task.options)  # raises what is wrong for every prompt
        self._task, self._on_prompt = task, on_prompt
        self._lm = AsyncLM(lm, queue=sys.maxsize)

    async def decode(self, chunk: Chunk) -> Done:
        """Write the records of a chunk, unless they are there; that of a prompt that is bad or fails has an error."""
        if self._task.shards.has(chunk.number):
            return Done(chunk.number, chunk.count, self._task.shards.failed(chunk.number))
        lines = await asyncio.to_thread(lambda: list(lines_of(chunk)))
        written = await asyncio.gather(*(self._written(line) for line in lines))
        records, traces = [record for record, _, _ in written], [one for _, own, _ in written for one in own]
        await asyncio.to_thread(self._task.shards.write, chunk.number, records, traces)
        return Done(chunk.number, len(lines), sum(failed for _, _, failed in written))

    async def _written(self, line: Line) -> tuple[str, list[str], bool]:
        """The record of a prompt, its traces, and whether it failed."""
        try:
            if line.error is not None:
                raise line.error
            outcome: Any = await self._generated(line)
        except EngineStopped:
            raise
        except SoarError as error:
            return json_line(record_of(line, error)), [], True
        finally:
            self._on_prompt()
        traces = [json_line(trace) for trace in traces_of(line, outcome)] if self._task.shards.traces else []
        return json_line(record_of(line, outcome)), traces, False

    async def _generated(self, line: Line) -> Any:
        n, prompt = self._task.n, line.prompt
        if n is None:
            return await self._lm.generate(prompt, self._strategy, **self._task.options)
        return await self._lm.generate(prompt, self._strategy, n=n, **self._task.options)

    async def close(self) -> None:
        await self._lm.aclose(drain=False)


def at_once(chunk_size: int, rows: int) -> int:
    """How many chunks a worker should have in work: as one runs out of prompts, the next fills the rows."""
    return 1 + max(1, -(-rows // chunk_size))
