"""Models that come with the package and need no download.

``mini-llada`` and ``mini-dreamon`` are trained and part of the wheel. The random ones are made from a seed on first
use: they write nonsense, and are for testing code that uses the library.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from soar_dlm.files import lasting_folder

SHIPPED = Path(__file__).parent / "shipped"


@dataclass(frozen=True)
class EmbeddedModel:
    """``writer`` names the function of :mod:`soar_dlm.models.random_checkpoint` that writes the checkpoint.

    Without one, the checkpoint is in the package, in a folder named like the model, and ``tasks`` are those it was
    trained for.
    """

    about: str
    writer: str | None = None
    tasks: tuple[str, ...] = ()


EMBEDDED = {
    "mini-llada": EmbeddedModel(
        "LLaDA layout, 2.4M parameters: word problems, Python functions, sudoku",
        tasks=("mini-gsm", "mini-code", "mini-sudoku"),
    ),
    "mini-dreamon": EmbeddedModel(
        "Dream layout with expand, 2.2M parameters: missing lines of Python functions", tasks=("mini-infill",)
    ),
    "random-llada": EmbeddedModel("LLaDA layout, random weights: writes nonsense", "write_llada"),
    "random-dream": EmbeddedModel("Dream layout, random weights: writes nonsense", "write_dream"),
    "random-dreamon": EmbeddedModel("Dream layout with expand, random weights: writes nonsense", "write_dreamon"),
}


def embedded_names() -> list[str]:
    return sorted(EMBEDDED)


@cache
def embedded_folder(name: str) -> str | None:
    """The folder of an embedded model; None for other names. Random ones are made on first use, removed at exit."""
    model = EMBEDDED.get(name)
    if model is None:
        return None
    if model.writer is None:
        return str(SHIPPED / name)
    folder = lasting_folder(f"soar-{name}-")
    getattr(import_module("soar_dlm.models.random_checkpoint"), model.writer)(folder)
    return str(folder)
