"""What clients are told when no replica answers them, in the shape of every other error.

Ray's proxies import this; it must not import PyTorch.
"""

from __future__ import annotations

from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from soar_dlm.scale.names import MARK, RETRY_AFTER
from soar_dlm.serve.failures import Refused, answer, body_of
from soar_dlm.strict_json import json_line

_RAYS_OWN = "/-/"
"""Where a proxy answers for itself."""


def middlewares() -> list[Middleware]:
    """What Ray's proxies put around their answers."""
    return [Middleware(Mended)]


class Mended:
    """Lets the answers of replicas through, and completes or replaces all others.

    1. What Ray itself answers becomes an error of ours: 429 where all replicas have their hands full, 504 where it took
       too long, 503 where there is no replica.
    2. A replica that is lost before its answer has begun makes it a 503. All these say in ``Retry-After`` when to come
       back.
    3. A stream that breaks off ends with an event ``error``. Of any other answer, either all or nothing arrives.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(_RAYS_OWN):
            await self._app(scope, receive, send)
            return
        reply = _Reply(send)
        await self._app(scope, receive, reply.take)
        await reply.finish(scope, receive)


class _Reply:
    """An answer on its way: its beginning waits for the first part of its body."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._begun = self._done = False

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        elif self._of_replica:
            await self._begin()
            self._done = self._done or not message.get("more_body", False)
            await self._send(message)

    async def finish(self, scope: Scope, receive: Receive) -> None:
        """Say what is missing, if anything is."""
        if self._done:
            return
        if not self._begun:
            refusal = self._refusal()
            refusal.headers["x-request-id"] = Headers(scope=scope).get("x-request-id", "")  # Ray gives each one
            await answer(refusal)(scope, receive, self._send)
        elif self._headers.get("content-type", "").startswith("text/event-stream"):
            event = f"event: error\ndata: {json_line(body_of(_lost()))}\n\n"
            await self._send({"type": "http.response.body", "body": event.encode(), "more_body": False})

    @property
    def _headers(self) -> Headers:
        return Headers(scope=self._start or {"headers": []})

    @property
    def _of_replica(self) -> bool:
        return MARK in self._headers

    async def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        assert self._start is not None
        headers = MutableHeaders(scope=self._start)
        if "x-request-id" in headers:
            headers["x-request-id"] = headers["x-request-id"]  # the replica's; Ray adds one more
        await self._send(self._start)

    def _refusal(self) -> Refused:
        if self._start is None or self._of_replica:
            return _lost()
        status = self._start["status"]
        if status == 429:
            return _later(429, "All replicas have as many requests as they may have.", "queue_full")
        if status == 408:
            return _later(504, "This took longer than a request may take.", "timeout")
        return _later(503, "No replica takes requests: they are being started, or shut down.", "no_replica")


def _lost() -> Refused:
    return _later(503, "The replica that worked on this was lost. Send the request again.", "replica_lost")


def _later(status: int, message: str, code: str) -> Refused:
    headers: dict[str, Any] = {"Retry-After": str(RETRY_AFTER)}
    return Refused(status, message, code=code, headers=headers)
