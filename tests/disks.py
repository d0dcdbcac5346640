"""A disk that is full, and what is in a folder."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """The system refuses to make any file longer than this, as it does on a full disk; child processes inherit it."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file in a folder, hidden ones included."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
