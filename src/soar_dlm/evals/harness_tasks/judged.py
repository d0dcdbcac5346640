"""What the task files in this folder name: the problems of a task, and its judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from datasets import Dataset

from soar_dlm.tasks.catalogue import make_task
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.sandbox.consent import require_consent
from soar_dlm.tasks.task import Task


def problems(soar_task: str, **_: Any) -> dict[str, Dataset]:
    """The test problems, in their order; published ones are read from SOAR_DATA_DIR or from the Hub.

    A task that runs model-written code is marked ``unsafe_code`` in its file, so that the harness refuses it without
    ``--confirm_run_unsafe_code``. Here it is refused where the sandbox does not hold, before anything is decoded.
    """
    if _loaded(soar_task)[0].runs_code:
        require_consent(soar_task, allowed=True)
    rows = [
        {"task": soar_task, "place": place, "prompt": problem.prompt, "answer": problem.answer}
        for place, problem in enumerate(_loaded(soar_task)[1])
    ]
    return {"test": Dataset.from_list(rows)}


def judged(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    task, known = _loaded(doc["task"])
    return {"correct": float(task.correct(known[doc["place"]], results[0]))}


@cache
def _loaded(name: str) -> tuple[Task, list[Problem]]:
    task = make_task(name)
    return task, task.test_set()
