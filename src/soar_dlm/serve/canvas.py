"""``/v1/canvas``: a decoding step by step, for the page and for research."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import fields, is_dataclass
from typing import Any, Optional, Union

from fastapi import APIRouter, Request
from pydantic import Field
from sse_starlette import EventSourceResponse, ServerSentEvent

from soar_dlm.async_lm import AsyncLM
from soar_dlm.options import DEFAULT_LENGTH, in_blocks
from soar_dlm.results import Event
from soar_dlm.search.strategy import Strategy
from soar_dlm.serve import facts
from soar_dlm.serve.body import StrictRoute
from soar_dlm.serve.exchange import SEND_TIMEOUT
from soar_dlm.serve.failures import Refused, body_of, refused
from soar_dlm.serve.fields import SETTINGS, Decoding, Many, given, given_options
from soar_dlm.serve.models import served
from soar_dlm.serve.work import Search, Work, planned, until_gone
from soar_dlm.strict_json import json_line, plain
from soar_dlm.template import Template

router = APIRouter(tags=["canvas"], route_class=StrictRoute)
router.include_router(facts.router)

_OWN = ("temperature", "top_p", "stop", "runners_up")


class CanvasRequest(Decoding):  # type: ignore[misc]
    """A ``prompt`` to continue, or a ``template`` with blanks, which are written {blank} or {blank:8}."""

    model: Optional[str] = Field(None, description="The name of the model that is served.")
    prompt: Optional[str] = Field(None, description="A text to continue.")
    template: Optional[str] = Field(None, description="A text with blanks to fill; send it or a prompt.")
    max_tokens: Optional[int] = Field(None, ge=1, description="The most tokens to write after a prompt.")
    temperature: Optional[float] = Field(None, ge=0, description="0, the default, takes the most likely token.")
    top_p: Optional[float] = Field(None, gt=0, le=1)
    seed: Optional[int] = Field(None, ge=0, description="Default: 0.")
    stop: Optional[Union[str, Many[str]]] = None
    runners_up: Optional[bool] = Field(None, description="Tell for every token which one came second.")

    def options(self) -> dict[str, Any]:
        """The options of the request, by the names that the library has for them."""
        found = {**given_options(self, self.template is not None), **given(self, _OWN)}
        return found if self.max_tokens is None else {**found, "max_new_tokens": self.max_tokens}


_STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"description": "The steps, as they come.", "content": {"text/event-stream": {}}}
}


@router.post("/v1/canvas", response_class=EventSourceResponse, responses=_STREAMED)
async def canvas(body: CanvasRequest, request: Request) -> EventSourceResponse:
    """The steps of a decoding as they come, each as a server-sent event whose data is a JSON object.

    1. ``start``: the model, the strategy in words, and the scene: the text around the blanks, where these are, and
       between which values a confidence lies.
    2. ``step``, one for each: the candidates that it left, as a line of a trace file has them, the text of those tokens
       that are new, and the forwards so far. So the steps put together, with the scene and all pieces of text, are the
       trace of the decoding.
    3. ``result``: the text and its figures. Or ``error``, in the shape of every other error.
    """
    lm: AsyncLM = request.app.state.lm
    if (body.prompt is None) == (body.template is None):
        raise Refused(400, "Send a prompt to continue, or a template with blanks: one of the two.", "prompt")
    if body.model is not None:
        served(lm, body.model)
    try:
        strategy, options = lm.lm.strategy(body.strategy, **given(body, SETTINGS)), body.options()
        events = _planned(request, body, strategy, options).events()
        _, first = await until_gone(request, anext(events))  # what is wrong with a request is found by now
    except Exception as error:
        raise refused(error, body.model_fields_set) from error
    start = {"model": lm.lm.name, "strategy": _in_words(strategy, lm), "canvas": in_blocks(options)}
    return EventSourceResponse(
        _sent(start, first, events), sep="\n", send_timeout=SEND_TIMEOUT, headers={"Cache-Control": "no-store"}
    )


def _planned(request: Request, body: CanvasRequest, strategy: Strategy, options: dict[str, Any]) -> Work:
    settings = request.app.state.settings
    if settings.log_prompts:
        request.state.log["prompts"] = body.model_dump(include={"prompt", "template"}, exclude_none=True)
    text: Any = body.prompt
    if body.template is not None:
        text = Template.parse(body.template, options.get("length", DEFAULT_LENGTH))
    limits = {"most_choices": settings.max_choices, "timeout": settings.timeout}
    return planned(request.app.state.lm, [text], strategy, options, n=None, seed=body.seed or 0, **limits)


async def _sent(
    start: dict[str, Any], first: Event, events: AsyncGenerator[tuple[Search, Event], None]
) -> AsyncIterator[ServerSentEvent]:
    known: set[int] = set()
    async with aclosing(events):
        try:
            assert first.scene is not None
            yield _event("start", {**start, "scene": first.scene.to_json()})
            for step in _steps(first, known):
                yield _event("step", step)
            last = first
            async for _, last in events:
                for step in _steps(last, known):
                    yield _event("step", step)
            assert last.result is not None
            yield _event("result", last.result.to_dict())
        except Exception as error:
            yield _event("error", body_of(refused(error)))


def _steps(event: Event, known: set[int]) -> list[dict[str, Any]]:
    """The steps that an event tells of, the first of them with the text of the tokens that are not yet ``known``."""
    records = [*event.missed, *([] if event.record is None else [event.record])]
    pieces = {str(token): piece for token, piece in event.pieces.items() if token not in known}
    known.update(event.pieces)
    so_far = event.forwards - sum(record.forwards for record in records)
    steps: list[dict[str, Any]] = []
    for record in records:
        so_far += record.forwards
        steps.append({**record.to_json(), "forwards_so_far": so_far, "pieces": {} if steps else pieces})
    return steps


def _event(name: str, data: dict[str, Any]) -> ServerSentEvent:
    return ServerSentEvent(json_line(data), event=name, sep="\n")


def _in_words(strategy: Strategy, lm: AsyncLM) -> str:
    """A strategy with the settings that are used, such as "Soar: beam 2, threshold 0.95, metric probability"."""
    bound = strategy.bound(lm.lm.model.facts.thresholds)
    settings: Any = fields(bound) if is_dataclass(bound) else ()
    values = {entry.name: plain(getattr(bound, entry.name)) for entry in settings}
    values = {name: " ".join(map(str, value)) if isinstance(value, list) else value for name, value in values.items()}
    told = [f"{name.replace('_', ' ')} {value}" for name, value in values.items() if value not in (None, False)]
    return f"{type(bound).__name__}: {', '.join(told)}" if told else type(bound).__name__
