"""The body of a request, read by the one reader of JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from soar_dlm.errors import InputFileError
from soar_dlm.serve.failures import Refused, late
from soar_dlm.strict_json import read_json


class _StrictRequest(Request):
    async def json(self) -> Any:
        try:
            return read_json(await self.body())
        except InputFileError as error:
            raise HTTPException(400, f"The body cannot be read. {error}".rstrip(".")) from error


class StrictRoute(APIRoute):
    """A route whose body is JSON without surprises: no NaN, no name twice, no deep nesting.

    It must be said to be JSON, too: a page of another site can send everything else without asking the server first.
    It must have come within the time that a request may take.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            strict = _StrictRequest(request.scope, request.receive)
            if self.body_field is not None:
                await _receive(strict)
            return await handler(strict)

        return handle


async def _receive(request: Request) -> None:
    """Read the body, which the request keeps."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(400, "Send the body as JSON, with the header Content-Type: application/json.")
    timeout = request.app.state.settings.timeout
    try:
        await asyncio.wait_for(request.body(), timeout)
    except asyncio.TimeoutError:
        raise late(timeout) from None
    except ClientDisconnect:
        raise Refused(499, "The client has left.") from None
