"""Tasks in which the text after the answer is given."""

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
        """Whether ``text`` is exactly what was taken out, including white space, which is all that some spans are."""
        return text == problem.answer
