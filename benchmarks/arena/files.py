"""Files that appear whole or not at all, and locks, for processes that run at the same time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from soar_dlm.errors import SettingsError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write to the path this yields, which belongs to this process; it takes the place of ``path`` in one move."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield fresh
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    with replacing(path) as fresh:
        fresh.write_text(text, encoding="utf-8")


@contextmanager
def locked(path: Path, busy: str | None = None) -> Iterator[None]:
    """Hold a lock that one process has at a time and that ends with its process.

    Where another holds it, this waits; with ``busy`` it refuses at once and says that.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if busy is None else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise SettingsError(busy or "") from error
        yield
