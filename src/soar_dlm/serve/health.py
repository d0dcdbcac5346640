"""Whether the server lives, and whether it takes requests."""

from __future__ import annotations

from fastapi import APIRouter, Request

from soar_dlm.async_lm import AsyncLM
from soar_dlm.serve.failures import Refused

router = APIRouter(tags=["operation"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(request: Request) -> dict[str, str]:
    """The engine takes requests; 503 where it has died or is shutting down."""
    lm: AsyncLM = request.app.state.lm
    if lm.dead is not None:
        raise Refused(503, str(lm.dead), code="engine_stopped")
    if lm.closing:
        raise Refused(503, "The server is shutting down.", code="shutting_down")
    return {"status": "ready"}
