"""Errors in OpenAI's shape: ``{"error": {"message", "type", "param", "code"}}``, in an answer or in a stream."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from typing import Any, Optional

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import Match

from soar_dlm.errors import (
    Busy,
    EngineStopped,
    InputFileError,
    NoTokenizer,
    PromptError,
    SettingsError,
    SoarError,
    UnknownName,
    shown,
    told,
)

_MISTAKES = (SettingsError, PromptError, NoTokenizer, InputFileError)
"""What the sender of a request can put right."""

_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_RENAMED = {"max_new_tokens": "max_tokens"}
_WORD = re.compile(r"[A-Za-z_]+")
_SHOULD = "Input should be "
"""How most of pydantic's sentences begin."""


class Refused(SoarError):
    """An answer other than success: its status, its sentence, and the field that is to blame."""

    def __init__(
        self,
        status: int,
        message: str,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status, self.param, self.code = status, param, code
        self.headers = dict(headers or {})
        super().__init__(message)


def refused(error: Exception, fields: Iterable[str] = ()) -> Refused:
    """Whatever went wrong as a refusal; ``fields`` are the names of the request's, one of which a sentence may name."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, Busy):
        return Refused(429, str(error), code="queue_full", headers={"Retry-After": str(error.retry_after)})
    if isinstance(error, EngineStopped):
        return Refused(503, str(error), code="engine_stopped")
    if isinstance(error, _MISTAKES):
        return Refused(400, _renamed(error), param=_param(error, {*fields}))
    if isinstance(error, SoarError):
        return Refused(500, str(error))
    return Refused(500, f"Something went wrong that should not ({type(error).__name__}: {told(error)}).")


def _param(error: SoarError, fields: Set[str]) -> str | None:
    """The field that an error is about: a sentence about a setting begins with its name."""
    if isinstance(error, PromptError):
        words = ["prompt", "messages", "template"]
    elif isinstance(error, UnknownName):
        words = [_RENAMED.get(str(error.name), str(error.name)), *error.kind.split()]
    else:
        words = _WORD.findall(_renamed(error))[:1]
    return next((word for word in words if word in fields), None)


def _renamed(error: SoarError) -> str:
    """The sentence with the names that fields have here."""
    sentence = str(error)
    for name, here in _RENAMED.items():
        sentence = sentence.replace(name, here)
    return sentence


def late(timeout: float | None) -> Refused:
    return Refused(504, f"This took more than {timeout:g} s, which is all a request may take.", code="timeout")


def body_of(error: Refused) -> dict[str, Any]:
    """The JSON object that says what went wrong."""
    kind = _KINDS.get(error.status, "invalid_request_error" if error.status < 500 else "server_error")
    return {"error": {"message": str(error), "type": kind, "param": error.param, "code": error.code}}


class Details(BaseModel):
    message: str
    type: str
    param: Optional[str]
    code: Optional[str]


class Failure(BaseModel):
    """How every error is told."""

    error: Details


RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": Failure, "description": about}
    for status, about in {
        400: "The request has a mistake, or asks for what is not offered.",
        401: "The key is missing or wrong.",
        403: "The server does not go by this name.",
        404: "There is nothing of this name.",
        405: "Not with this method.",
        413: "The body is too large.",
        429: "Too many requests wait already; Retry-After says when to come back.",
        500: "The decoding failed.",
        503: "The engine has stopped, or is shutting down.",
        504: "It took too long.",
    }.items()
}
"""What any route may answer besides success."""


def answer(error: Refused) -> JSONResponse:
    return JSONResponse(body_of(error), error.status, error.headers)


def _invalid(error: RequestValidationError) -> Refused:
    """What pydantic says of one field: of the first, or of what is deepest in it, where it may be of several kinds."""
    found = [(_path(one, error.body), one) for one in error.errors()]
    field = found[0][0][:1]
    path = max((path for path, _ in found if path[:1] == field), key=len)
    about = [one for where, one in found if where == path]
    if not path:
        return Refused(400, "The body must be a JSON object.")
    param, kind = ".".join(map(str, path)), about[0]["type"]
    if kind == "extra_forbidden":
        return Refused(400, f"There is no field {shown(param)} here. See /openapi.json for those there are.", param)
    if kind == "missing":
        return Refused(400, f"{param} is missing.", param)
    told = dict.fromkeys(one["msg"] for one in about)
    if all(one.startswith(_SHOULD) for one in told):
        return Refused(400, f"{param} must be {' or '.join(one.removeprefix(_SHOULD) for one in told)}.", param)
    return Refused(400, f"{param}: {next(iter(told))}.", param)


def _path(complaint: Mapping[str, Any], body: Any) -> tuple[str | int, ...]:
    """Where in a body something is wrong, without pydantic's names for the kinds that a value may be of."""
    kind, *parts = complaint["loc"]
    if kind != "body":
        return tuple(parts)
    path: list[str | int] = []
    for part in parts:
        if (part in body) if isinstance(body, dict) else (isinstance(body, list) and isinstance(part, int)):
            path.append(part)
            body = body[part]
    return (*path, parts[-1]) if complaint["type"] == "missing" and parts else tuple(path)


def _other_method(request: Request) -> bool:
    """Whether a route would answer at this path, asked in another way; the page's files hide this from the router."""
    return any(route.matches(request.scope)[0] == Match.PARTIAL for route in request.app.routes)


def install(app: FastAPI) -> None:
    """Give every error of an app OpenAI's shape."""

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return answer(_invalid(error))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        status = 405 if error.status_code == 404 and _other_method(request) else error.status_code
        sentences = {
            404: f"There is nothing at {request.scope['path']}.",
            405: f"{request.scope['path']} does not take {request.method}.",
        }
        message = sentences.get(status, f"{error.detail}.")
        return answer(Refused(status, message, headers=error.headers))

    @app.exception_handler(SoarError)
    async def ours(request: Request, error: SoarError) -> JSONResponse:
        return answer(refused(error))

    @app.exception_handler(Exception)
    async def unforeseen(request: Request, error: Exception) -> JSONResponse:
        return answer(refused(error))
