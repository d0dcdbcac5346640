"""Answers to the problems of a task."""

from __future__ import annotations

from collections.abc import Sequence

from soar_dlm.errors import SettingsError
from soar_dlm.lm import LM, AnyStrategy
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
) -> list[Result]:
    """Decode every problem the way its task asks for: by continuing the prompt, or by filling a blank.

    ``length`` is that of the canvas, or the number of masks a blank starts with, one for all or one for each; by
    default the task's.
    """
    size = task.canvas if length is None else length
    if not task.infills:
        if not isinstance(size, int):
            raise SettingsError(f"{task.name} continues prompts; give one length for all of them.")
        return lm.generate([problem.prompt for problem in problems], strategy, max_new_tokens=size)
    sizes = [size] * len(problems) if isinstance(size, int) else size
    blanks = zip(problems, sizes, strict=True)
    return [*lm.infill_template([Template.between(one.prompt, one.suffix, own) for one, own in blanks], strategy)]
