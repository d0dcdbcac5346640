"""The server's life: from the first line of its log to the last request it finishes."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn
from fastapi import FastAPI
from sse_starlette.sse import AppStatus

from soar_dlm.async_lm import AsyncLM
from soar_dlm.errors import EngineStopped, SettingsError

KEEP_ALIVE = 30
"""Seconds that a connection may be idle."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Server(uvicorn.Server):
    """A server that tells when it takes requests, and whose signals are ours: uvicorn would raise them again."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def bound(host: str, port: int) -> socket.socket:
    """A socket with this address; port 0 chooses a free one. It does not take connections yet."""
    made = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as error:
        if made is not None:
            made.close()
        raise SettingsError(
            f"The server cannot listen on {host}, port {port}: {error.strerror}. Choose others with --host and --port."
        ) from error
    return made


def serve(app: FastAPI, listener: socket.socket, ready: Callable[[str], None]) -> None:
    """Answer requests until a signal comes, or the engine dies, which is raised.

    1. ``ready`` is told the address once requests are taken.
    2. At the first signal, new requests are refused and those that run are finished. At the second, they are not.
    3. When the engine dies, its requests get their errors before the server ends.
    """
    asyncio.run(_served(app, listener, ready))


async def _served(app: FastAPI, listener: socket.socket, ready: Callable[[str], None]) -> None:
    lm: AsyncLM = app.state.lm
    AppStatus.enable_automatic_graceful_drain = False  # streams that run are finished
    server = _Server(
        uvicorn.Config(app, log_config=None, access_log=False, server_header=False, timeout_keep_alive=KEEP_ALIVE),
        lambda: ready(_address(listener)),
    )
    loop = asyncio.get_running_loop()

    def stop() -> None:
        server.force_exit = server.should_exit
        server.should_exit = True
        lm.close()

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop)
    watching = asyncio.create_task(_watch(lm, server))
    await server.serve([listener])
    watching.cancel()
    if lm.dead is not None:
        raise lm.dead


async def _watch(lm: AsyncLM, server: _Server) -> None:
    """End the server when the engine dies."""
    try:
        await lm.ended()
    except EngineStopped:
        server.should_exit = True


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
