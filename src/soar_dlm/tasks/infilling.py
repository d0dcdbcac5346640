"""Tasks in which the text behind the answer is there already."""

from __future__ import annotations

from typing import ClassVar

from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.task import Task


class InfillingTask(Task):
    """A task whose problems have a suffix; ``canvas`` is the number of masks a blank starts with."""

    infills: ClassVar[bool] = True

    def correct(self, problem: Problem, text: str) -> bool:
        return self.all_correct([problem], [text])[0]

    def exact(self, problem: Problem, text: str) -> bool:
        """Whether ``text`` is the very text that was taken out, white space included: some spans are nothing else."""
        return text == problem.answer
