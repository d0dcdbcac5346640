"""The server's app: what answers where."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI

import soar_dlm
from soar_dlm.async_lm import AsyncLM
from soar_dlm.serve import canvas, failures, gates, health, models, openai, page, watch
from soar_dlm.serve.settings import ServeSettings


class _App(FastAPI):
    """An app whose schema promises no answer that is never given: mistakes in a body are told with 400 here."""

    def openapi(self) -> dict[str, Any]:
        schema = super().openapi()
        for methods in schema["paths"].values():
            for route in methods.values():
                route["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            schema["components"]["schemas"].pop(name, None)
        return schema


def make_app(lm: AsyncLM, settings: ServeSettings | None = None) -> FastAPI:
    """An ASGI app that serves ``lm``; it ends the engine when it is shut down.

    Routes find the engine as ``request.app.state.lm`` and the limits as ``request.app.state.settings``.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await lm.aclose()

    app = _App(
        title="soar-dlm",
        version=soar_dlm.__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,  # both fetch scripts from elsewhere
        redirect_slashes=False,  # behind a TLS proxy, a redirect would send the client's key over plain http
        responses=failures.RESPONSES,
    )
    allowed = settings or ServeSettings()
    app.state.lm, app.state.settings = lm, allowed
    failures.install(app)
    gates.install(app, allowed)
    watch.install(app, lm)
    for router in (openai.router, models.router, canvas.router, health.router, watch.router):
        app.include_router(router)
    page.mount(app)
    return app
