"""The body of a request, read by the one reader of JSON."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from soar_dlm.errors import InputFileError
from soar_dlm.strict_json import read_json


class _StrictRequest(Request):
    async def json(self) -> Any:
        try:
            return read_json(await self.body())
        except InputFileError as error:
            raise HTTPException(400, f"The body cannot be read. {error}".rstrip(".")) from error


class StrictRoute(APIRoute):
    """A route whose body is JSON without surprises: no NaN, no name twice, no deep nesting."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await handler(_StrictRequest(request.scope, request.receive))

        return handle
