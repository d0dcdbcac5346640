"""mini-code: from a signature and a docstring to the body of a Python function."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import ClassVar

from soar_dlm.tasks.mini_code_cases import draw_cases
from soar_dlm.tasks.mini_code_operations import OPERATIONS, Operation, Type
from soar_dlm.tasks.mini_code_styles import Step, bodies
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.task import Task
from soar_dlm.tasks.unit_tests import all_pass

NAMES = ("solve", "run", "compute", "answer", "process")
PARAMETERS: dict[Type, tuple[str, ...]] = {
    "ints": ("xs", "nums", "values"),
    "str": ("s", "text", "line"),
    "int": ("n", "k", "number"),
    "words": ("words", "names", "items"),
}
STARTS: tuple[Type, ...] = ("ints", "ints", "ints", "ints", "str", "str", "int")
LENGTHS = (2, 2, 2, 3, 3, 3, 4)
GUARDED = 0.15
LONGEST_BODY = 40
LONGEST_PROMPT = 48
TOKEN = re.compile(r" ?[A-Za-z_]+| ?\d+|\n *| ?[^\sA-Za-z\d]")

TYPES: tuple[Type, ...] = ("ints", "int", "words", "str", "bool")
GUARDS = {kind: [op for op in OPERATIONS if op.takes == kind and op.role == "guard"] for kind in TYPES}
LAST = {kind: [op for op in OPERATIONS if op.takes == kind and op.role != "guard"] for kind in TYPES}
MIDDLE = {kind: [op for op in LAST[kind] if op.gives != "bool" and op.role != "choose"] for kind in TYPES}


class MiniCode(Task):
    """Pipelines of two to four operations on a list of numbers, a text or a number.

    The prompt says what the function does, not how it is written; the answer has one of several styles, chosen at
    random. The key names the operations and their constants. The judge runs hidden cases.
    """

    name: ClassVar[str] = "mini-code"
    about: ClassVar[str] = "write the body of a Python function from its docstring; judged by hidden tests"
    canvas: ClassVar[int] = 44
    runs_code: ClassVar[bool] = True

    def draw(self, rng: random.Random) -> Problem:
        start, count, guarded = rng.choice(STARTS), rng.choice(LENGTHS), rng.random() < GUARDED
        while True:
            steps = _pipeline(start, count, guarded and count > 2, rng)
            if steps is None:
                continue
            cases = draw_cases(steps, rng)
            if cases is None:
                continue
            parameter, function = rng.choice(PARAMETERS[start]), rng.choice(NAMES)
            styles = [body for body in bodies(steps, parameter) if length(body) <= LONGEST_BODY]
            prompt = f'def {function}({parameter}):\n    """{_sentence(steps, rng)}"""'
            if len(styles) > 1 and length(prompt) <= LONGEST_PROMPT:
                checks = {"name": function, "cases": cases}
                return Problem(prompt, "\n" + rng.choice(styles), _key(steps), f"{count} operations", checks)

    def correct(self, problem: Problem, text: str) -> bool:
        return self.all_correct([problem], [text])[0]

    def all_correct(self, problems: Sequence[Problem], texts: Sequence[str]) -> list[bool]:
        whole = [one.prompt + function_body(text) for one, text in zip(problems, texts, strict=True)]
        return all_pass(whole, [problem.checks for problem in problems])


def length(text: str) -> int:
    """About how many tokens ``text`` has: words, numbers, marks and line starts."""
    return len(TOKEN.findall(text))


def function_body(text: str) -> str:
    """``text`` up to the first line that is neither indented nor blank."""
    lines = text.split("\n")
    end = next((at for at, line in enumerate(lines) if line.strip() and not line.startswith((" ", "\t"))), len(lines))
    return "\n".join(lines[:end])


def _pipeline(kind: Type, count: int, guarded: bool, rng: random.Random) -> list[Step] | None:
    """Operations whose types fit together, none twice; None if the random walk cannot be completed."""
    chosen: list[Operation] = []
    if guarded and GUARDS[kind]:
        chosen.append(rng.choice(GUARDS[kind]))
    while len(chosen) < count:
        operation = rng.choice((LAST if len(chosen) == count - 1 else MIDDLE)[kind])
        if operation in chosen:
            return None
        chosen.append(operation)
        kind = operation.gives
    if chosen[0].role == "guard" and kind != "int":
        return None
    return [(operation, tuple(map(rng.choice, operation.constants))) for operation in chosen]


def _sentence(steps: Sequence[Step], rng: random.Random) -> str:
    """The docstring: what each operation does, in order."""
    clauses = []
    for at, (operation, constants) in enumerate(steps):
        phrase = rng.choice(operation.phrases).format(**dict(zip("abc", constants, strict=False)))
        if operation.noun:
            phrase = f"{'return' if at == len(steps) - 1 else rng.choice(('take', 'find'))} {phrase}"
        clauses.append(phrase)
    opening = f"{clauses.pop(0)}, otherwise " if steps[0][0].role == "guard" else ""
    if rng.random() < 0.5:
        text = ", then ".join(clauses)
    else:
        text = " and ".join(filter(None, (", ".join(clauses[:-1]), clauses[-1])))
    text = opening + text
    return f"{text[0].upper()}{text[1:]}."


def _key(steps: Sequence[Step]) -> str:
    return " | ".join(" ".join((operation.name, *map(str, constants))) for operation, constants in steps)
