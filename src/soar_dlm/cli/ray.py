"""Options of commands that can use a cluster; ``--ray [ADDRESS]`` is the one option whose value may be left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from typer.core import TyperCommand

from soar_dlm.cli.loading import status
from soar_dlm.errors import SettingsError

if TYPE_CHECKING:
    from soar_dlm.scale.pool import Pool

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
Workers = Annotated[
    Optional[str],
    _option("How many workers, such as 4, or 2-16 to follow the load. Default: all that fit.", metavar="N"),
]
Replicas = Annotated[
    Optional[str],
    _option("How many servers, such as 4, or 2-16 to follow the load. Default: all that fit.", metavar="N"),
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


@dataclass(frozen=True)
class Asked:
    """What a command was told of the cluster."""

    address: str
    workers: tuple[int, int] | None
    cpus: float | None
    gpus: float | None


def checked(
    ray: str | None, workers: str | None, cpus: float | None, gpus: float | None, what: str = "workers"
) -> Asked | None:
    """The options of this module; None where there is no cluster."""
    if ray is None:
        if (workers, cpus, gpus) != (None, None, None):
            raise SettingsError(f"{what.capitalize()} are for a cluster: add --ray, or leave out what is said of them.")
        return None
    if ray.startswith("ray://"):
        raise SettingsError(
            "This does not work through ray://. Run the command on a machine of the cluster, with '--ray auto' or "
            "the address that 'ray start' was given."
        )
    return Asked(ray, None if workers is None else _range(workers, what), cpus, gpus)


def _range(workers: str, what: str) -> tuple[int, int]:
    """The least and the most workers of "4" or "2-16"."""
    low, _, high = workers.partition("-")
    if not low.isdecimal() or not (high or low).isdecimal() or not 1 <= int(low) <= int(high or low):
        raise SettingsError(f"--{what} takes a number such as 4, or a range such as 2-16, not {workers!r}.")
    return int(low), int(high or low)


@contextmanager
def cluster(asked: Asked) -> Iterator[Pool]:
    """The workers that were asked for, on the cluster that this process is connected to inside."""
    from soar_dlm.scale.cluster import connected
    from soar_dlm.scale.pool import pool_of

    with ExitStack() as stack:
        with status("Connecting to Ray ..."):
            stack.enter_context(connected(asked.address))
        yield pool_of(asked.workers, asked.cpus, asked.gpus)
