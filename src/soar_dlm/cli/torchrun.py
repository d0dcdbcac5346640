"""``torchrun ... -m soar_dlm ... --tensor-parallel N``: what to do in each of the processes it starts."""

from __future__ import annotations

import os
from collections.abc import Sequence

from soar_dlm.errors import SettingsError

OPTION = "--tensor-parallel"
_TOLD = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID")


def nothing_to_do(args: Sequence[str]) -> bool:
    """Whether another process of torchrun does what this one was started for.

    A model that is split starts its own processes, so the first one runs the command as if it were alone.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ or not any(arg.partition("=")[0] == OPTION for arg in args):
        return False
    if os.environ.get("GROUP_WORLD_SIZE", "1") != "1":
        raise SettingsError(f"{OPTION} splits a model over the devices of one machine: run torchrun with --nnodes 1.")
    spare = os.environ.get("RANK", "0") != "0"
    for name in _TOLD:
        os.environ.pop(name, None)
    return spare
