"""What workers of the tests do that need no model. A worker imports this file alone, so it starts quickly."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from soar_dlm.errors import CheckpointError


def broken() -> Callable[[str], str]:
    raise CheckpointError("There is no such model here.")


def failing_later() -> Callable[[str], str]:
    def work(item: str) -> str:
        if item == "3":
            raise ZeroDivisionError("by nothing")
        return item

    return work


def dying() -> Callable[[str], str]:
    def work(item: str) -> str:
        if item == "bad":
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    return work


def never_starting() -> Callable[[str], str]:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError
