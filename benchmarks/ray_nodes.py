"""A Ray cluster by ``ray start``, all of whose nodes are on this machine and may die as a machine does."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from soar_dlm.scale.tokens import MODE, TOKEN

Node = subprocess.Popen[bytes]
"""The ``ray start --block`` whose children are a node."""
SECONDS = 120.0
"""How long a node may take to start."""
OBJECTS = 200_000_000
"""Bytes for the objects of a node. Prompts and results need little, and all nodes share one memory."""


class Nodes:
    """Nodes with one CPU each, without Ray's log monitors: nobody reads what they forward, and all share the cores."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as held:
            port = held.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        self._folder = folder
        self.alive: list[Node] = []
        self._start("--head", f"--port={port}", f"--temp-dir={folder}", "--include-dashboard=false")

    def add(self) -> Node:
        return self._start(f"--address={self.address}")

    def _start(self, *which: str) -> Node:
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus=1", *which]
        command += ["--disable-usage-stats", "--include-log-monitor=false", f"--object-store-memory={OBJECTS}"]
        settings = {**os.environ, MODE: "token", "RAY_worker_niceness": "0"}
        place = self._folder / f"start-{len(list(self._folder.glob('start-*')))}.log"
        with place.open("wb") as log:
            node = subprocess.Popen(command, stdout=log, stderr=log, env=settings, start_new_session=True)
        self.alive.append(node)
        deadline = time.monotonic() + SECONDS
        while "Ray runtime started" not in place.read_text(errors="replace"):
            if node.poll() is not None or time.monotonic() > deadline:
                self.remove(node)
                raise SystemExit(f"A node of the cluster did not start:\n{place.read_text(errors='replace')}")
            time.sleep(0.05)
        return node

    def remove(self, node: Node) -> None:
        """End all processes of a node at once, as if its machine had lost power."""
        for pid in descendants(node.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        node.kill()
        node.wait()
        self.alive.remove(node)

    def workers(self, *of: Node) -> set[int]:
        """The processes that decode, on these nodes or on all."""
        found = {pid for node in of or self.alive for pid in descendants(node.pid)}
        return {pid for pid in found if _name(pid).startswith("ray::MapWorker")}


@contextmanager
def nodes(count: int) -> Iterator[Nodes]:
    """A cluster of so many nodes, which lives as long as the block; this process has its token inside."""
    before = os.environ.get(TOKEN)
    os.environ[TOKEN] = secrets.token_hex(32)
    folder = Path(tempfile.mkdtemp(prefix="ray-"))
    try:
        cluster = Nodes(folder)
        try:
            for _ in range(count - 1):
                cluster.add()
            yield cluster
        finally:
            for node in reversed(cluster.alive.copy()):
                cluster.remove(node)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.environ.pop(TOKEN)
        if before is not None:
            os.environ[TOKEN] = before


def descendants(pid: int) -> set[int]:
    """The children of a process, and theirs."""
    children: dict[int, set[int]] = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            parent = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, set()).add(int(name))
    found: set[int] = set()
    ahead = {pid}
    while ahead:
        ahead = {child for parent in ahead for child in children.get(parent, ())} - found
        found |= ahead
    return found


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
