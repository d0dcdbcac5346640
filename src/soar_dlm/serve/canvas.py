"""``/v1/canvas``: a decoding step by step."""

from __future__ import annotations

from collections.abc import AsyncIterator

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict
from sse_starlette import EventSourceResponse, ServerSentEvent

from soar_dlm.async_lm import AsyncLM
from soar_dlm.errors import SoarError
from soar_dlm.serve.failures import body_of, refused
from soar_dlm.strict_json import json_line

router = APIRouter(tags=["canvas"])


class Canvas(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    prompt: str
    strategy: str | None = None


@router.post("/v1/canvas", response_class=EventSourceResponse)
async def canvas(body: Canvas, request: Request) -> EventSourceResponse:
    """Each step of a decoding as an event."""
    lm: AsyncLM = request.app.state.lm

    async def events() -> AsyncIterator[ServerSentEvent]:
        try:
            async for event in lm.stream(body.prompt, body.strategy):
                yield ServerSentEvent(json_line(event.to_dict()), event="step", sep="\n")
        except SoarError as error:
            yield ServerSentEvent(json_line(body_of(refused(error))), event="error", sep="\n")

    return EventSourceResponse(events(), sep="\n")
