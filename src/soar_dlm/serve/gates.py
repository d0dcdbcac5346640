"""Who is let in, and with how much: by which name the server is called, with which key, how large a body."""

from __future__ import annotations

import hmac

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from soar_dlm.serve.failures import Refused, answer
from soar_dlm.serve.settings import ServeSettings

_LOCKED = ("/v1/", "/metrics")
"""What needs the key; pages and health are open."""


class _Gate:
    """Passes requests on, or answers those that :meth:`refusal` has something against."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            error = self.refusal(scope, Headers(scope=scope))
            if error is not None:
                await answer(error)(scope, receive, send)
                return
            receive = self.received(receive)
        await self._app(scope, receive, send)

    def refusal(self, scope: Scope, headers: Headers) -> Refused | None:
        raise NotImplementedError

    def received(self, receive: Receive) -> Receive:
        """What the app reads the body with."""
        return receive


class _HostGate(_Gate):
    """Only names of this server: a page of another site whose name points here (DNS rebinding) is kept out."""

    def refusal(self, scope: Scope, headers: Headers) -> Refused | None:
        hosts = self._settings.hosts
        sent = headers.get("host", "")
        name = sent[1 : sent.find("]")] if sent.startswith("[") else sent.rpartition(":")[0] or sent
        if hosts is None or name.lower() in hosts:
            return None
        return Refused(
            403, f"This server does not go by the name {name!r}. Start it with --allow-host NAME if it should."
        )


class _KeyGate(_Gate):
    """The key, as a bearer token; how long the comparison takes tells nothing of it."""

    def refusal(self, scope: Scope, headers: Headers) -> Refused | None:
        key = self._settings.api_key
        path = scope["path"].removeprefix(scope.get("root_path", ""))  # the rest, where the app is mounted
        if key is None or not path.startswith(_LOCKED):
            return None
        kind, _, sent = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and hmac.compare_digest(sent.strip().encode(), key.encode()):
            return None
        wanted = "Send the server's key in the header: Authorization: Bearer KEY."
        return Refused(401, wanted, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})


class _BodyGate(_Gate):
    """Bodies up to a size: what says that it is larger is not read at all, other bodies no further than that."""

    def refusal(self, scope: Scope, headers: Headers) -> Refused | None:
        size = headers.get("content-length", "")
        if size.isdecimal() and int(size) > self._settings.max_body:
            return Refused(413, self._sentence, headers={"Connection": "close"})
        return None

    @property
    def _sentence(self) -> str:
        return f"The body is larger than {self._settings.max_body} bytes, which is all that is allowed here."

    def received(self, receive: Receive) -> Receive:
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._settings.max_body:
                raise HTTPException(413, self._sentence.rstrip("."))
            return message

        return counted


def install(app: FastAPI, settings: ServeSettings) -> None:
    """Put the gates around an app; the host is looked at first, the body last."""
    app.add_middleware(_BodyGate, settings=settings)
    app.add_middleware(_KeyGate, settings=settings)
    if settings.cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors),
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=["x-request-id", "retry-after"],
        )
    app.add_middleware(_HostGate, settings=settings)
