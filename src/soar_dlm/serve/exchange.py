"""One request on its way back: the answer, or the chunks of a stream."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from sse_starlette import EventSourceResponse, ServerSentEvent

from soar_dlm.async_lm import AsyncLM
from soar_dlm.results import Event, Result
from soar_dlm.serve.answers import (
    Answer,
    ChatChoice,
    ChatCompletion,
    Completion,
    CompletionChoice,
    Written,
    took,
    usage,
)
from soar_dlm.serve.failures import body_of, refused
from soar_dlm.serve.requests import StreamOptions
from soar_dlm.serve.settled import SettledText
from soar_dlm.serve.work import Search, Work, until_gone
from soar_dlm.strict_json import json_line

SEND_TIMEOUT = 60.0
"""How many seconds a client may take to read a chunk before it counts as gone."""


@dataclass(frozen=True)
class Exchange:
    """What a request asked for, and how it is to be told."""

    lm: AsyncLM
    work: Work
    stream_options: StreamOptions | None
    stop: tuple[str, ...]
    chat: bool
    logprobs: bool
    diffusing: bool
    prompts: int
    log: dict[str, Any]
    created: int = field(default_factory=lambda: int(time.time()))
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def _head(self) -> dict[str, Any]:
        prefix = "chatcmpl" if self.chat else "cmpl"
        return {"id": f"{prefix}-{self.id}", "created": self.created, "model": self.lm.lm.name}

    def _written(self, result: Result) -> Written:
        return Written.of(self.lm.lm, result, self.stop, self.logprobs)

    def _sums(self, results: list[Result], written: list[Written]) -> dict[str, Any]:
        """What all searches took and wrote, which the log is told, too."""
        guided = bool(self.work.searches[0].options.get("cfg_scale"))
        each = len(self.work.searches) // self.prompts
        tokens, spent = usage(results, written, each), took(results, self.work.seed, guided)
        self.log.update(tokens.model_dump(), forwards=spent.forwards)
        if "prompts" in self.log:
            self.log["texts"] = [one.text for one in written]
        return {"usage": tokens, "soar": spent}

    async def answered(self, request: Request) -> Response:
        """All choices in one object."""
        results = await self.work.results(request)
        found = [
            (index, self._written(one))
            for search, result in zip(self.work.searches, results, strict=True)
            for index, one in search.choices(result)
        ]
        sums = self._sums(results, [written for _, written in found])
        made: ChatCompletion | Completion
        if self.chat:
            choices = [ChatChoice(message=Answer(content=one.text), **self._end(index, one)) for index, one in found]
            made = ChatCompletion(**self._head, choices=choices, **sums)
        else:
            texts = [CompletionChoice(text=one.text, **self._end(index, one)) for index, one in found]
            made = Completion(**self._head, choices=texts, **sums)
        return JSONResponse(made.model_dump(mode="json"))

    def _end(self, index: int, written: Written) -> dict[str, Any]:
        """What is known of a choice when its text is finished."""
        logprobs = None
        if self.logprobs:
            logprobs = (written.chat_logprobs if self.chat else written.completion_logprobs)(self.lm.lm)
        return {"index": index, "finish_reason": written.finish, "logprobs": logprobs}

    async def streamed(self, request: Request) -> Response:
        """The chunks as server-sent events. What is refused at once is an answer of its own, not an event."""
        events = self.work.events()
        first = await until_gone(request, anext(events))
        return EventSourceResponse(
            self._messages(first, events), sep="\n", send_timeout=SEND_TIMEOUT, headers={"Cache-Control": "no-store"}
        )

    async def _messages(
        self, first: tuple[Search, Event], events: AsyncGenerator[tuple[Search, Event], None]
    ) -> AsyncIterator[ServerSentEvent]:
        try:
            async for chunk in self._chunks(first, events):
                yield ServerSentEvent(json_line(chunk), sep="\n")
            yield ServerSentEvent("[DONE]", sep="\n")
        except Exception as error:
            yield ServerSentEvent(json_line(body_of(refused(error))), event="error", sep="\n")
        finally:
            await events.aclose()

    async def _chunks(
        self, first: tuple[Search, Event], events: AsyncIterator[tuple[Search, Event]]
    ) -> AsyncIterator[dict[str, Any]]:
        settled = {search.first: self._settled(search) for search in self.work.searches}
        results: dict[int, Result] = {}
        written: list[Written] = []
        for search in self.work.searches:
            if self.chat:
                yield self._chunk(search.first, "", {"role": "assistant"})
        async for search, event in _after(first, events):
            if event.result is None:
                text = event.text if self.diffusing else settled[search.first].more(event)
                if text:
                    yield self._chunk(search.first, text)
                continue
            results[search.first] = event.result
            last: dict[str, Any] = {}
            for index, result in search.choices(event.result):
                written.append(self._written(result))
                for chunk in self._last(index, written[-1], settled.get(index) or self._settled(search)):
                    if last:
                        yield last
                    last = chunk
            if len(results) < len(self.work.searches):
                yield last
        sums = self._sums([results[search.first] for search in self.work.searches], written)
        yield {**last, "soar": sums["soar"].model_dump(mode="json")}
        if self.stream_options is not None and self.stream_options.include_usage:
            yield {**self._object([]), "usage": sums["usage"].model_dump(mode="json")}

    def _last(self, index: int, written: Written, settled: SettledText) -> Iterator[dict[str, Any]]:
        """The end of a choice: what of its text has not been sent, and why it ends."""
        if not self.diffusing and (text := settled.rest(written.text)):
            yield self._chunk(index, text)
        yield self._chunk(index, written.text if self.diffusing else "", end=self._end(index, written))

    def _settled(self, search: Search) -> SettledText:
        return SettledText(self.lm.lm, self.stop, search.options.get("stop_token_ids", ()))

    def _chunk(
        self, index: int, text: str, delta: dict[str, Any] | None = None, end: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        own = {**(delta or {}), "content": text} if self.chat else text
        logprobs = None if end is None or end["logprobs"] is None else end["logprobs"].model_dump(mode="json")
        choice = {
            "index": index,
            "delta" if self.chat else "text": own,
            "finish_reason": None if end is None else end["finish_reason"],
            "logprobs": logprobs,
        }
        return self._object([choice])

    def _object(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        meta = {"diffusion_meta": {"diffusion_content": True}} if self.diffusing and choices else {}
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return {**self._head, "object": kind, "choices": choices, **meta}


async def _after(
    first: tuple[Search, Event], rest: AsyncIterator[tuple[Search, Event]]
) -> AsyncIterator[tuple[Search, Event]]:
    yield first
    async for one in rest:
        yield one
