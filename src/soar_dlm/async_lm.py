"""The public face for asyncio: many callers, one engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from threading import Lock
from types import TracebackType
from typing import Any, TypeVar, cast, overload

from typing_extensions import Self, Unpack

from soar_dlm import checks
from soar_dlm.doors import answered, door
from soar_dlm.engine.request import Request
from soar_dlm.engine.thread import Counts, EngineThread
from soar_dlm.errors import EngineStopped, PromptTooLong, SettingsError
from soar_dlm.jobs import AnyStrategy, Job, Prompt, blank_between
from soar_dlm.lm import LM
from soar_dlm.mailbox import Mailbox
from soar_dlm.options import GenerateKeywords, InfillKeywords
from soar_dlm.results import Event, Infilling, Result
from soar_dlm.template import Template

T = TypeVar("T")

QUEUE = 64
"""How many requests may wait by default."""


class AsyncLM:
    """An LM for asyncio: any number of tasks share one engine, which steps on a thread of its own.

    1. Requests join at the next step, whatever strategy and options each has. Their texts are those of
       :meth:`LM.generate`, token for token.
    2. A task that is cancelled, or leaves the iterator of a stream, takes its requests with it: they are in no further
       step.
    3. A call that comes while ``queue`` requests wait for a row is refused with :class:`~soar_dlm.errors.Busy`, which
       says when to try again.
    4. A request whose prompt and canvas can have more than ``max_tokens`` tokens, or whose search may ask more than
       ``max_rows`` rows at a time, is refused.
    5. What fails ends its own call only. If the engine itself dies, all calls end with
       :class:`~soar_dlm.errors.EngineStopped`, later ones are refused, and ``dead`` says why.
    6. A reader of a stream that falls more than 64 events behind gets the latest in place of those between, whose
       records, where a trace is kept, are its ``missed``.

    Preparing a text and reading a result run on another thread, so they don't hold up the loop. Use it as an async
    context manager, or call :meth:`aclose` at the end.
    """

    @door
    def __init__(
        self, lm: LM, *, queue: int = QUEUE, max_tokens: int | None = None, max_rows: int | None = None
    ) -> None:
        self.lm = checks.instance("lm", lm, LM, "what soar_dlm.load() returns")
        self.max_tokens = None if max_tokens is None else checks.whole_number("max_tokens", max_tokens, 1)
        self.max_rows = None if max_rows is None else checks.whole_number("max_rows", max_rows, 1)
        self._jobs = lm._jobs
        self._engine = EngineThread(lm.engine(), checks.whole_number("queue", queue, 0))
        self._aside = ThreadPoolExecutor(1, "soar-texts")
        self._open = 0
        self._idle: asyncio.Event | None = None

    def __repr__(self) -> str:
        return f"<AsyncLM {self.lm.name!r}, {self.waiting} waiting, {self.live_rows} rows live>"

    @property
    def dead(self) -> EngineStopped | None:
        """What ended the engine; None while it lives, and after :meth:`aclose`."""
        return self._engine.dead

    @property
    def closing(self) -> bool:
        """Whether new calls are refused because of :meth:`close` or :meth:`aclose`."""
        return self._engine.closing

    @property
    def waiting(self) -> int:
        """How many requests wait for a row."""
        return self._engine.engine.waiting

    @property
    def live_rows(self) -> int:
        """How many rows the next step has."""
        return self._engine.engine.live_rows

    @property
    def counts(self) -> Counts:
        """What the engine has done so far."""
        return self._engine.counts

    @overload
    async def generate(
        self, prompt: Prompt, strategy: AnyStrategy = None, **options: Unpack[GenerateKeywords]
    ) -> Result: ...
    @overload
    async def generate(
        self, prompt: Prompt, strategy: AnyStrategy = None, *, n: int, **options: Unpack[GenerateKeywords]
    ) -> list[Result]: ...

    async def generate(
        self, prompt: Prompt, strategy: AnyStrategy = None, *, n: int | None = None, **options: Unpack[GenerateKeywords]
    ) -> Any:
        """Continue one text or conversation: a Result, or with ``n`` a list, as :meth:`LM.generate` has it."""
        chosen = self._jobs.strategy(strategy)
        samples = self._jobs.samples(n, chosen, options)
        numbers = range(samples.requests)
        return samples.texts(
            await self._results(lambda: [self._jobs.generate(prompt, chosen, options, 0, number) for number in numbers])
        )

    def stream(
        self, prompt: Prompt, strategy: AnyStrategy = None, **options: Unpack[GenerateKeywords]
    ) -> AsyncGenerator[Event, None]:
        """Continue one text, yielding an :class:`Event` per step; the last one carries the result."""
        return self._events(lambda: self._jobs.generate(prompt, strategy, options))

    async def infill(
        self, prefix: str, suffix: str, strategy: AnyStrategy = None, **options: Unpack[InfillKeywords]
    ) -> Infilling:
        """Write what is missing between two texts."""
        return await self.infill_template(blank_between(prefix, suffix, options), strategy, **options)

    async def infill_template(
        self, template: str | Template, strategy: AnyStrategy = None, **options: Unpack[InfillKeywords]
    ) -> Infilling:
        """Fill the blanks of a text; a blank is written ``{blank}`` or ``{blank:8}``."""
        (result,) = await self._results(lambda: [self._jobs.infill(template, strategy, options)])
        return cast(Infilling, result)

    def stream_infill(
        self, template: str | Template, strategy: AnyStrategy = None, **options: Unpack[InfillKeywords]
    ) -> AsyncGenerator[Event, None]:
        """Fill the blanks of one text, yielding an :class:`Event` per step; the last one carries the result."""
        return self._events(lambda: self._jobs.infill(template, strategy, options))

    def close(self) -> None:
        """Refuse new calls from now on; those that run go on. :meth:`aclose` waits for them."""
        self._engine.close()

    async def aclose(self, drain: bool = True) -> None:
        """End the engine: after the calls that run, or with ``drain=False`` at once, which ends them with an error."""
        self._engine.close(drain)
        if self._open:
            self._idle = self._idle or asyncio.Event()
            await self._idle.wait()
        with suppress(EngineStopped):
            await self.ended()
        self._aside.shutdown(wait=False)

    async def ended(self) -> None:
        """Wait until the engine has ended; raises what it died of."""
        await asyncio.shield(asyncio.wrap_future(self._engine.ended))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose(drain=error is None)

    async def _results(self, make: Callable[[], Sequence[Job]]) -> list[Result]:
        results: list[Result] = []
        async with self._submitted(make) as submitted:
            for job, mailbox in submitted:
                last = (await mailbox.get()).event
                if last.error is not None:
                    raise last.error
                assert last.decoding is not None
                results.append(await self._elsewhere(self._jobs.result, job, last.decoding))
        return results

    async def _events(self, make: Callable[[], Job]) -> AsyncGenerator[Event, None]:
        async with self._submitted(lambda: [make()], every=True) as ((job, mailbox),):
            final = False
            while not final:
                found = await mailbox.get()
                if found.event.error is not None:
                    raise found.event.error
                final = found.event.final
                yield await self._elsewhere(self._jobs.event, job, found.event, found.forwards, tuple(found.missed))

    @asynccontextmanager
    async def _submitted(
        self, make: Callable[[], Sequence[Job]], every: bool = False
    ) -> AsyncIterator[list[tuple[Job, Mailbox]]]:
        """The requests of one call with what the engine says of them; whoever leaves takes them out of the engine."""
        self._engine.check_open()
        lock = Lock()
        tickets: list[int] = []
        gone = False

        def submit(jobs: Sequence[Job], boxes: Sequence[Mailbox]) -> None:
            with lock:
                if not gone:
                    tickets.extend(self._engine.add([job.request for job in jobs], [box.put for box in boxes]))

        self._open += 1
        try:
            jobs = await self._elsewhere(make)
            for job in jobs:
                self._check(job.request)
            boxes = [Mailbox(every, job.request.options.trace) for job in jobs]
            await self._elsewhere(submit, jobs, boxes)
            yield list(zip(jobs, boxes, strict=True))
        finally:
            with lock:
                gone = True
            for ticket in tickets:
                self._engine.cancel(ticket)
            self._open -= 1
            if not self._open and self._idle is not None:
                self._idle.set()

    def _check(self, request: Request) -> None:
        """Refuse a request that is larger than this engine allows."""
        tokens, rows = request.longest, request.rows
        if self.max_tokens is not None and tokens > self.max_tokens:
            raise PromptTooLong(
                f"Prompt and canvas can come to {tokens} tokens; at most {self.max_tokens} are allowed here. Shorten "
                "the prompt, or lower max_tokens or the length of the blank."
            )
        if self.max_rows is not None and rows > self.max_rows:
            raise SettingsError(
                f"This strategy may take {rows} rows of a forward at a time; at most {self.max_rows} are allowed here. "
                "Lower its beam, or what else makes it branch."
            )

    async def _elsewhere(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run what may take a while on the other thread."""

        def run() -> T:
            with answered("Preparing or reading a text"):
                return work(*arguments)

        return await asyncio.get_running_loop().run_in_executor(self._aside, run)
