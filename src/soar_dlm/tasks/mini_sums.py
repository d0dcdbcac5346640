"""mini-sums: bare arithmetic, a drill for mini-gsm."""

from __future__ import annotations

import random
from typing import ClassVar

from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.task import Task

LINES = 5


class MiniSums(Task):
    """Five sums to copy and work out, with the numbers of mini-gsm: all of them up to 50."""

    name: ClassVar[str] = "mini-sums"
    about: ClassVar[str] = "Five bare sums with numbers up to 50."
    canvas: ClassVar[int] = 40

    def draw(self, rng: random.Random) -> Problem:
        sums = [_sum(rng) for _ in range(LINES)]
        asked = "".join(f"Sum {left}\n" for left, _ in sums)
        worked = "".join(f"\nSum {left} = {result}" for left, result in sums)
        return Problem(f"{asked}Results", worked, ";".join(left for left, _ in sums), f"{LINES} sums")

    def correct(self, problem: Problem, text: str) -> bool:
        return [line.split() for line in text.strip().split("\n")] == [
            line.split() for line in problem.answer.strip().split("\n")
        ]


def _sum(rng: random.Random) -> tuple[str, int]:
    """The left side of a sum and its result; most are additions and subtractions, which have the most facts."""
    sign = rng.choices("+-*/", (8, 8, 2, 2))[0]
    if sign in "+-":
        total = rng.randint(3, 50)
        part = rng.randint(1, total - 1)
        return (f"{part} + {total - part}", total) if sign == "+" else (f"{total} - {part}", total - part)
    few = rng.randint(2, 9)
    many = rng.randint(2, 48 // few)
    if sign == "/":
        return f"{few * many} / {few}", many
    return (f"{few} * {many}" if rng.random() < 0.5 else f"{many} * {few}"), few * many
