"""Models that come with the package and need no download.

So far these are made from a seed when they are first asked for: tiny random-weight checkpoints in the exact on-disk
layout of the real families. They write nonsense; they are for trying the library and for testing code that uses it.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path


@dataclass(frozen=True)
class EmbeddedModel:
    """``writer`` names the function of :mod:`soar_dlm.models.random_checkpoint` that writes the checkpoint."""

    about: str
    writer: str


EMBEDDED = {
    "random-llada": EmbeddedModel("LLaDA layout, random weights: writes nonsense", "write_llada"),
    "random-dream": EmbeddedModel("Dream layout, random weights: writes nonsense", "write_dream"),
}


def embedded_names() -> list[str]:
    return sorted(EMBEDDED)


@cache
def embedded_folder(name: str) -> str | None:
    """The folder of an embedded model, made on first use and removed at exit; None for other names."""
    if name not in EMBEDDED:
        return None
    folder = Path(tempfile.mkdtemp(prefix=f"soar-{name}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    getattr(import_module("soar_dlm.models.random_checkpoint"), EMBEDDED[name].writer)(folder)
    return str(folder)
