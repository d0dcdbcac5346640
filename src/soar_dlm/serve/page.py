"""The page at ``/``: plain files of the package, which load nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request, Response

from soar_dlm import web
from soar_dlm.serve.reference import page_of

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable  # Python 3.10 has it elsewhere

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def mount(app: FastAPI) -> None:
    """Serve the page: ``index.html`` at ``/``, the other files and those it shares with the report below ``/page``.

    The reference of the routes that ``app`` has is at ``/docs``.

    A browser asks each time whether a file is still the same, which its ETag tells.
    """
    own = [one for one in files(__package__).joinpath("static").iterdir() if _ending(one) in _TYPES]
    shared = [files(web.__name__).joinpath(name) for name in (*web.STYLES, *web.SCRIPTS)]
    for file in (*own, *shared):
        path = "/" if file.name == "index.html" else f"/page/{file.name}"
        _add(app, path, partial(bytes, file.read_bytes()), _TYPES[_ending(file)])
    _add(app, "/docs", lambda: page_of(app.openapi()).encode(), "text/html")


def _add(app: FastAPI, path: str, content: Callable[[], bytes], media: str) -> None:
    async def send(request: Request) -> Response:
        found = content()
        headers = {**_HEADERS, "ETag": f'"{sha256(found).hexdigest()[:32]}"'}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(found, headers=headers, media_type=f"{media}; charset=utf-8")

    app.add_api_route(path, send, methods=["GET", "HEAD"], include_in_schema=False, response_class=Response)


def _ending(file: Traversable) -> str:
    return file.name[file.name.rfind(".") :]
