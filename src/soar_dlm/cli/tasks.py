"""``soar tasks``: what a model can be measured on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from soar_dlm.cli.listing import AsJson, Entry, print_listing

if TYPE_CHECKING:
    from soar_dlm.tasks.task import Task


def tasks(as_json: AsJson = False) -> None:
    """List the tasks that 'soar eval' measures on."""
    from soar_dlm.tasks.catalogue import TASKS, make_task

    print_listing("tasks", [_entry(name, make_task(name)) for name in TASKS.names()], as_json)


def _entry(name: str, task: Task) -> Entry:
    facts = {"canvas": task.canvas, "infills": task.infills, "runs_code": task.runs_code, "shots": task.shots}
    return Entry(name, task.about, facts)
