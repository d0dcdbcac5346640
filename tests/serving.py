"""A server on loopback, in a thread of this process or in one of its own."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from soar_dlm.async_lm import AsyncLM
from soar_dlm.lm import LM
from soar_dlm.serve.app import make_app
from soar_dlm.serve.settings import ServeSettings

LIMIT = 120.0


@dataclass(frozen=True)
class Served:
    """Where a server is, and what it serves."""

    url: str
    lm: AsyncLM


@contextmanager
def served(lm: LM, settings: ServeSettings | None = None, **limits: Any) -> Iterator[Served]:
    """A server in a thread; ``limits`` are those of :class:`AsyncLM`."""
    shared = AsyncLM(lm, **limits)
    config = uvicorn.Config(make_app(shared, settings), "127.0.0.1", 0, log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    eventually(lambda: server.started)
    try:
        yield Served(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", shared)
    finally:
        server.should_exit = True
        thread.join(LIMIT)
        assert not thread.is_alive()


@dataclass
class Process:
    """A ``soar serve`` of its own; ``log`` is what it has said so far."""

    process: subprocess.Popen[str]
    url: str
    log: list[str]

    def wait(self) -> int:
        return self.process.wait(LIMIT)


@contextmanager
def serve_process(*options: str, program: str = "-m soar_dlm") -> Iterator[Process]:
    """``soar serve`` on a free port, killed at the end if it still runs."""
    environment = {**os.environ, "SOAR_TRACEBACK": "", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *program.split(), "serve", "--port", "0", "--device", "cpu", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    log: list[str] = []

    def read() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            log.append(line)

    threading.Thread(target=read, daemon=True).start()
    try:
        eventually(lambda: any("serving" in line for line in log) or process.poll() is not None)
        found = re.search(r"http://\S+", "".join(log))
        assert found is not None, "".join(log)
        yield Process(process, found[0], log)
    finally:
        process.kill()
        process.wait()


def eventually(true: Callable[[], bool]) -> None:
    """Wait until something is the case, or fail."""
    end = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < end, "it has not come about"
        time.sleep(0.005)
