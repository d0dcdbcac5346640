"""Messages on a pipe: their length, then their bytes. Runs inside the sandbox and outside."""

from __future__ import annotations

import os

HEADER = 8
READY = b"ready"
"""The first message of every sandbox: what follows, or does not, is the doing of the program."""


class TooLong(Exception):
    """A message is longer than its reader takes."""


def framed(message: bytes) -> bytes:
    return len(message).to_bytes(HEADER, "big") + message


def send(pipe: int, message: bytes) -> None:
    rest = memoryview(framed(message))
    while rest:
        rest = rest[os.write(pipe, rest) :]


def receive(pipe: int, most: int = 2**40) -> bytes:
    """The next message; nothing beyond it is read. The end of the pipe is an EOFError."""
    size = int.from_bytes(_exactly(pipe, HEADER), "big")
    if size > most:
        raise TooLong
    return _exactly(pipe, size)


def _exactly(pipe: int, size: int) -> bytes:
    parts = []
    while size:
        part = os.read(pipe, min(size, 2**20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
