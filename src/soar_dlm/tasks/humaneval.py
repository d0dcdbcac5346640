"""HumanEval: the body of a Python function from its signature and docstring (Chen et al., 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from soar_dlm.tasks.code_text import first_block, function_only
from soar_dlm.tasks.execution import Asserts
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.published import PublishedTask, read_rows
from soar_dlm.tasks.unit_tests import all_pass_tests, asserts_of_function

HUB = "openai/openai_humaneval"


class HumanEval(PublishedTask):
    """The prompt as published, without examples; the benchmark's own tests decide.

    Whatever follows the function (another definition, a comment, a printed call) is cut off. If the model wrote a
    fenced block of code, only that block counts.
    """

    name: ClassVar[str] = "humaneval"
    about: ClassVar[str] = "Python functions from their docstrings; judged by tests"
    canvas: ClassVar[int] = 256
    shots: ClassVar[int] = 0
    stop: ClassVar[tuple[str, ...]] = ("\nclass", "\ndef", "\n#", "\nif", "\nprint")
    runs_code: ClassVar[bool] = True

    def load(self) -> list[Problem]:
        return [
            Problem(
                prompt=row["prompt"],
                answer=row["canonical_solution"],
                key=row["task_id"],
                kind="humaneval",
                checks={"test": f"{row['test']}\ncheck({row['entry_point']})"},
            )
            for row in read_rows(self.data_dir, "humaneval/HumanEval.jsonl.gz", HUB, "openai_humaneval", "test")
        ]

    def correct(self, problem: Problem, text: str) -> bool:
        return self.all_correct([problem], [text])[0]

    def asserts(self, problem: Problem) -> Asserts:
        """The benchmark's own tests of one problem."""
        return asserts_of_function(problem.checks["test"], problem.prompt)

    def all_correct(self, problems: Sequence[Problem], texts: Sequence[str]) -> list[bool]:
        pairs = zip(problems, texts, strict=True)
        programs = [one.prompt + function_only(first_block(text), self.stop) for one, text in pairs]
        return all_pass_tests(programs, [self.asserts(problem) for problem in problems])
