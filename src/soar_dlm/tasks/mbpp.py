"""MBPP: short Python programs from a sentence and three tests (Austin et al., 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from soar_dlm.tasks.code_text import first_block
from soar_dlm.tasks.execution import Asserts
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.published import PublishedTask, read_rows
from soar_dlm.tasks.unit_tests import all_pass_tests, asserts_of_program

HUB = "google-research-datasets/mbpp"
SHOWN = (2, 3, 4)
"""The examples shown before the question, by task_id: the same as in lm-evaluation-harness."""


class Mbpp(PublishedTask):
    """Three solved examples, then a sentence and its tests; the same tests decide."""

    name: ClassVar[str] = "mbpp"
    about: ClassVar[str] = "short Python programs from a sentence and tests; judged by the tests"
    canvas: ClassVar[int] = 256
    shots: ClassVar[int] = len(SHOWN)
    stop: ClassVar[tuple[str, ...]] = ("[DONE]",)
    runs_code: ClassVar[bool] = True

    def load(self) -> list[Problem]:
        examples = {row["task_id"]: row for row in self._rows("prompt")}
        shown = "".join(f"{question(examples[number])}{examples[number]['code']}\n[DONE]\n\n" for number in SHOWN)
        return [
            Problem(
                prompt=shown + question(row),
                answer=row["code"],
                key=f"mbpp/{row['task_id']}",
                kind="mbpp",
                checks={"test": "\n".join([row["test_setup_code"], *row["test_list"]])},
            )
            for row in self._rows("test")
        ]

    def _rows(self, split: str) -> list[dict[str, Any]]:
        return read_rows(self.data_dir, f"mbpp/mbpp_{split}.jsonl", HUB, "full", split)

    def correct(self, problem: Problem, text: str) -> bool:
        return self.all_correct([problem], [text])[0]

    def asserts(self, problem: Problem) -> Asserts:
        """The benchmark's own tests of one problem."""
        return asserts_of_program(problem.checks["test"], problem.answer)

    def all_correct(self, problems: Sequence[Problem], texts: Sequence[str]) -> list[bool]:
        programs = [first_block(text.split(self.stop[0])[0]) for text in texts]
        return all_pass_tests(programs, [self.asserts(problem) for problem in problems])


def question(row: dict[str, Any]) -> str:
    tests = "\n".join(row["test_list"][:3])
    return (
        f"You are an expert Python programmer, and here is your task: {row['text']} "
        f"Your code should pass these tests:\n\n{tests}\n[BEGIN]\n"
    )
