"""The server's life: from the first line of its log to the last request it finishes."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator

import uvicorn
from fastapi import FastAPI
from sse_starlette.sse import AppStatus

from soar_dlm.async_lm import AsyncLM
from soar_dlm.errors import EngineStopped

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Server(uvicorn.Server):
    """A server whose signals are ours: uvicorn would raise them again once it has shut down."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(app: FastAPI, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Answer requests until a signal comes, or the engine dies, which is raised.

    1. ``ready`` is told the address once requests are taken; port 0 chooses a free one.
    2. At the first signal, new requests are refused and those that run are finished. At the second, they are not.
    3. When the engine dies, its requests get their errors before the server ends.
    """
    asyncio.run(_served(app, host, port, ready))


async def _served(app: FastAPI, host: str, port: int, ready: Callable[[str], None]) -> None:
    lm: AsyncLM = app.state.lm
    AppStatus.enable_automatic_graceful_drain = False  # streams that run are finished
    config = uvicorn.Config(
        app, host, port, log_config=None, access_log=False, server_header=False, timeout_keep_alive=30
    )
    server = _Server(config)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        server.force_exit = server.should_exit
        server.should_exit = True
        lm.close()

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop)
    watching = asyncio.create_task(_watch(lm, server))
    serving = asyncio.create_task(server.serve())
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if server.started:
        ready(_address(server, host))
    await serving
    watching.cancel()
    if lm.dead is not None:
        raise lm.dead


async def _watch(lm: AsyncLM, server: _Server) -> None:
    """End the server when the engine dies."""
    try:
        await lm.ended()
    except EngineStopped:
        server.should_exit = True


def _address(server: _Server, host: str) -> str:
    port = server.servers[0].sockets[0].getsockname()[1]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
