"""From a request's fields to searches, and what comes of them: all at once, or event by event."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request

from soar_dlm.async_lm import AsyncLM
from soar_dlm.jobs import Prompt
from soar_dlm.results import Event, Result
from soar_dlm.samples import Samples
from soar_dlm.search.strategy import Strategy
from soar_dlm.serve.failures import Refused, late
from soar_dlm.template import Template

T = TypeVar("T")


@dataclass(frozen=True)
class Search:
    """One search of a request: it gives up to ``texts`` choices, numbered from ``first``."""

    lm: AsyncLM
    prompt: Prompt | Template
    strategy: Strategy
    options: Mapping[str, Any]
    first: int
    texts: int

    async def result(self) -> Result:
        if isinstance(self.prompt, Template):
            return await self.lm.infill_template(self.prompt, self.strategy, **self.options)
        found: Result = await self.lm.generate(self.prompt, self.strategy, **self.options)
        return found

    def events(self) -> AsyncGenerator[Event, None]:
        if isinstance(self.prompt, Template):
            return self.lm.stream_infill(self.prompt, self.strategy, **self.options)
        return self.lm.stream(self.prompt, self.strategy, **self.options)

    def choices(self, result: Result) -> list[tuple[int, Result]]:
        """The texts that were asked for, best first, by the numbers of their choices."""
        return list(enumerate([result, *result.alternatives][: self.texts], self.first))


@dataclass(frozen=True)
class Work:
    """The searches of one request, to be done within ``timeout`` seconds; ``seed`` is that of the first."""

    searches: Sequence[Search]
    seed: int
    timeout: float | None

    async def results(self, request: Request) -> list[Result]:
        """What every search found. The first that fails ends the others, and so does a client that leaves."""
        tasks = [asyncio.ensure_future(search.result()) for search in self.searches]
        try:
            return await asyncio.wait_for(until_gone(request, asyncio.gather(*tasks)), self.timeout)
        except asyncio.TimeoutError:
            raise late(self.timeout) from None
        finally:
            await _ended(*tasks)

    async def events(self) -> AsyncGenerator[tuple[Search, Event], None]:
        """The events of all searches as they come; each waits until the one before has been taken."""
        deadline = None if self.timeout is None else time.monotonic() + self.timeout
        found: asyncio.Queue[tuple[Search, Event]] = asyncio.Queue(1)

        async def pump(search: Search) -> None:
            events = search.events()
            try:
                async for event in events:
                    await found.put((search, event))
            finally:
                await events.aclose()

        tasks = [asyncio.ensure_future(pump(search)) for search in self.searches]
        finished = 0
        try:
            while finished < len(tasks):
                got = await self._next(found, tasks, deadline)
                finished += got[1].result is not None
                yield got
        finally:
            await _ended(*tasks)

    async def _next(self, found: asyncio.Queue[T], tasks: Sequence[asyncio.Future[None]], deadline: float | None) -> T:
        """The next event; raises what has ended a search, or that there is no time left."""
        getting = asyncio.ensure_future(found.get())
        try:
            while not getting.done():
                for task in tasks:
                    if task.done():
                        task.result()  # raises
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise late(self.timeout)
                pending: list[asyncio.Future[Any]] = [getting, *(task for task in tasks if not task.done())]
                await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            return getting.result()
        finally:
            getting.cancel()


def planned(
    lm: AsyncLM,
    prompts: Sequence[Prompt | Template],
    strategy: Strategy,
    options: Mapping[str, Any],
    *,
    n: int | None,
    seed: int | None,
    most_choices: int,
    timeout: float | None,
) -> Work:
    """The searches that give ``n`` choices for each prompt: choice i of prompt p has the number p * n + i."""
    temperature = float(options.get("temperature", lm.lm.defaults.options.get("temperature", 0.0)))
    samples = Samples.of(n or 1, strategy, temperature)
    wanted = n or 1
    if wanted * len(prompts) > most_choices:
        raise Refused(
            400, f"This asks for {wanted * len(prompts)} texts; at most {most_choices} are allowed at a time.", "n"
        )
    first_seed = secrets.randbits(32) if seed is None else seed
    texts = 1 if samples.requests == wanted else wanted
    searches = [
        Search(lm, prompt, strategy, {**options, "seed": first_seed + number}, place * wanted + number, texts)
        for place, prompt in enumerate(prompts)
        for number in range(samples.requests)
    ]
    return Work(searches, first_seed, timeout)


async def until_gone(request: Request, work: Awaitable[T]) -> T:
    """The result of some work, which is given up if the client leaves before it is done."""
    doing = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({doing, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise Refused(499, "The client has left.")
        return doing.result()
    finally:
        await _ended(gone, doing)


async def _gone(request: Request) -> None:
    """Wait until the client has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _ended(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    waiting: Awaitable[Any] = asyncio.gather(*tasks, return_exceptions=True)
    await waiting
