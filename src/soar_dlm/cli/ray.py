"""``--ray [ADDRESS]``: the one option whose value may be left out."""

from __future__ import annotations

import re
from typing import Annotated, Any, Optional

import typer
from typer.core import TyperCommand

PANEL = "Several machines"
_ADDRESS = re.compile(r"auto|ray://\S+|\[?[\w.:-]+\]?:\d+")
"""What may follow --ray as its value; anything else belongs to the next argument."""


def _option(text: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=PANEL, **more)


Address = Annotated[
    Optional[str],
    _option(
        "Use a Ray cluster: HOST:PORT, or 'auto' for the one this machine belongs to. Without a value, one is started "
        "here.",
        "--ray",
        metavar="[ADDRESS]",
    ),
]
CpusPerWorker = Annotated[Optional[float], _option("CPUs of each worker, and so its threads. Default: 1.", min=0)]
GpusPerWorker = Annotated[Optional[float], _option("GPUs of each worker. Default: 1 if the cluster has any.", min=0)]


class RayCommand(TyperCommand):
    """A command that takes ``--ray`` with an address or without."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        whole: list[str] = []
        for place, arg in enumerate(args):
            whole.append(arg)
            if arg == "--":
                whole += args[place + 1 :]
                break
            if arg == "--ray" and not (place + 1 < len(args) and _ADDRESS.fullmatch(args[place + 1])):
                whole.append("")
        return super().parse_args(ctx, whole)
