"""Tasks by name; other packages add theirs by entry point."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from soar_dlm.doors import door
from soar_dlm.errors import SettingsError, shown
from soar_dlm.registry import Registry
from soar_dlm.tasks.published import PublishedTask
from soar_dlm.tasks.task import Task

TASKS: Registry[Callable[[], Task]] = Registry(
    "task",
    "soar_dlm.tasks",
    {
        "mini-gsm": "soar_dlm.tasks.mini_gsm:MiniGsm",
        "mini-code": "soar_dlm.tasks.mini_code:MiniCode",
        "mini-infill": "soar_dlm.tasks.mini_infill:MiniInfill",
        "mini-infill-lines": "soar_dlm.tasks.mini_infill:MiniInfillLines",
        "gsm8k": "soar_dlm.tasks.gsm8k:Gsm8k",
        "mbpp": "soar_dlm.tasks.mbpp:Mbpp",
        "humaneval": "soar_dlm.tasks.humaneval:HumanEval",
        "humaneval-infilling-single": "soar_dlm.tasks.humaneval_infilling:SingleLine",
        "humaneval-infilling-multi": "soar_dlm.tasks.humaneval_infilling:MultiLine",
        "humaneval-infilling-random": "soar_dlm.tasks.humaneval_infilling:RandomSpan",
        "mini-sudoku": "soar_dlm.tasks.mini_sudoku:MiniSudoku",
        "mini-sums": "soar_dlm.tasks.mini_sums:MiniSums",
    },
)


@door
def make_task(name: str, data_dir: str | os.PathLike[str] | None = None) -> Task:
    """The task registered as ``name``; ``data_dir`` is the folder with the files of a published benchmark."""
    if data_dir is not None and not isinstance(data_dir, (str, os.PathLike)):
        raise SettingsError(f"data_dir must be the path of a folder, not {shown(data_dir)}.")
    task = TASKS.get(name)()
    if isinstance(task, PublishedTask) and data_dir is not None:
        task.data_dir = Path(data_dir)
    if not isinstance(task, Task):
        raise SettingsError(f"Task {name!r} is not a soar_dlm.tasks.task.Task; ask its author to subclass it.")
    return task
