"""Tasks by name; other packages add theirs by entry point."""

from __future__ import annotations

from collections.abc import Callable

from soar_dlm.errors import SettingsError
from soar_dlm.registry import Registry
from soar_dlm.tasks.task import Task

TASKS: Registry[Callable[[], Task]] = Registry(
    "task",
    "soar_dlm.tasks",
    {
        "mini-gsm": "soar_dlm.tasks.mini_gsm:MiniGsm",
        "mini-code": "soar_dlm.tasks.mini_code:MiniCode",
        "mini-sudoku": "soar_dlm.tasks.mini_sudoku:MiniSudoku",
        "mini-sums": "soar_dlm.tasks.mini_sums:MiniSums",
    },
)


def make_task(name: str) -> Task:
    """The task registered as ``name``."""
    task = TASKS.get(name)()
    if not isinstance(task, Task):
        raise SettingsError(f"Task {name!r} is not a soar_dlm.tasks.task.Task; ask its author to subclass it.")
    return task
