"""mini-infill: one or a few missing lines of a short Python function."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import ClassVar

from soar_dlm.tasks.infilling import InfillingTask
from soar_dlm.tasks.mini_code import MiniCode
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.unit_tests import all_pass


class MiniInfill(InfillingTask):
    """Functions of mini-code with lines taken out, in the manner of HumanEval-Infilling.

    The prompt ends with a line break; the answer is whole lines with their indentation and line breaks. The key is
    that of the function, so that no line of a test function is trained on. The judge runs the function's hidden cases;
    :meth:`exact` compares texts. ``more_lines`` is how often two or three lines are missing instead of one.
    """

    name: ClassVar[str] = "mini-infill"
    about: ClassVar[str] = "write the missing line of a Python function; judged by hidden tests"
    canvas: ClassVar[int] = 16
    runs_code: ClassVar[bool] = True
    more_lines: ClassVar[float] = 0.25

    def __init__(self) -> None:
        self._functions = MiniCode()

    def draw(self, rng: random.Random) -> Problem:
        while True:
            function = self._functions.draw(rng)
            lines = [f"{line}\n" for line in function.answer.strip("\n").split("\n")]
            if len(lines) > 1:
                break
        count = min(rng.randint(2, 3) if rng.random() < self.more_lines else 1, len(lines) - 1)
        first = rng.randrange(len(lines) - count + 1)
        return Problem(
            prompt="".join([f"{function.prompt}\n", *lines[:first]]),
            answer="".join(lines[first : first + count]),
            suffix="".join(lines[first + count :]),
            key=function.key,
            kind="1 line" if count == 1 else f"{count} lines",
            checks=function.checks,
        )

    def all_correct(self, problems: Sequence[Problem], texts: Sequence[str]) -> list[bool]:
        whole = [one.prompt + text + one.suffix for one, text in zip(problems, texts, strict=True)]
        return all_pass(whole, [problem.checks for problem in problems])


class MiniInfillLines(MiniInfill):
    """A drill for long blanks: two or three lines are missing wherever the function has enough of them."""

    name: ClassVar[str] = "mini-infill-lines"
    about: ClassVar[str] = "write two or three missing lines of a Python function; judged by hidden tests"
    more_lines: ClassVar[float] = 1.0
