"""Answers to the problems of a task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from soar_dlm.errors import SettingsError, SoarError
from soar_dlm.jobs import AnyStrategy
from soar_dlm.lm import LM
from soar_dlm.results import Result
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.task import Task
from soar_dlm.template import Template


def solve(
    lm: LM,
    task: Task,
    problems: Sequence[Problem],
    strategy: AnyStrategy,
    length: int | Sequence[int] | None = None,
    **options: Any,
) -> list[Result]:
    """Decode every problem as its task requires: by continuing the prompt or by filling a blank.

    ``length`` is the length of the canvas, or the number of masks that all blanks start with, or one number for each;
    by default the task's. ``options`` are those of ``generate`` or ``infill_template``.
    """
    results = dict(solved_as_completed(lm, task, problems, strategy, length, **options))
    return [results[place] for place in range(len(problems))]


def solved_as_completed(
    lm: LM,
    task: Task,
    problems: Sequence[Problem],
    strategy: AnyStrategy,
    length: int | Sequence[int] | None = None,
    **options: Any,
) -> Iterator[tuple[int, Result]]:
    """:func:`solve`, but yielding the index of a problem and its result as each is done."""
    size = task.canvas if length is None else length
    completed: Iterator[tuple[int, Result | SoarError]]
    if task.infills:
        sizes = [size] * len(problems) if isinstance(size, int) else size
        blanks = zip(problems, sizes, strict=True)
        templates = [Template.between(one.prompt, one.suffix, own) for one, own in blanks]
        completed = lm.infill_as_completed(templates, strategy, **options)
    elif isinstance(size, int):
        prompts = [problem.prompt for problem in problems]
        completed = lm.generate_as_completed(prompts, strategy, max_new_tokens=size, stop=task.stop, **options)
    else:
        raise SettingsError(f"{task.name} continues prompts; give a single length for all of them.")
    for place, result in completed:
        if isinstance(result, SoarError):
            raise result
        yield place, result
