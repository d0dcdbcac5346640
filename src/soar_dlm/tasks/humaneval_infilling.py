"""HumanEval-Infilling: lines or spans taken out of HumanEval's solutions (Bavarian et al., 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from soar_dlm.tasks.execution import Asserts
from soar_dlm.tasks.infilling import InfillingTask
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.published import PublishedTask, read_rows
from soar_dlm.tasks.unit_tests import all_pass_tests, asserts_of_function

HUB = "loubnabnl/humaneval_infilling"


class HumanEvalInfilling(InfillingTask, PublishedTask):
    """One subclass for each ``subset``, which names the file.

    Prefix and suffix surround the blank as they are; no prompt is built from them. ``correct`` runs the benchmark's
    own tests (pass@1), ``exact`` compares with the canonical solution.
    """

    subset: ClassVar[str]
    canvas: ClassVar[int] = 16
    runs_code: ClassVar[bool] = True

    def load(self) -> list[Problem]:
        file = f"humaneval_infilling/HumanEval-{self.subset}.jsonl.gz"
        return [
            Problem(
                prompt=row["prompt"],
                answer=row["canonical_solution"],
                suffix=row["suffix"],
                key=row["task_id"],
                kind=self.subset,
                checks={"test": f"{row['test']}\ncheck({row['entry_point']})"},
            )
            for row in read_rows(self.data_dir, file, HUB, f"HumanEval-{self.subset}", "test")
        ]

    def asserts(self, problem: Problem) -> Asserts:
        """The benchmark's own tests of one problem."""
        return asserts_of_function(problem.checks["test"], problem.prompt)

    def all_correct(self, problems: Sequence[Problem], texts: Sequence[str]) -> list[bool]:
        programs = [one.prompt + text + one.suffix for one, text in zip(problems, texts, strict=True)]
        return all_pass_tests(programs, [self.asserts(problem) for problem in problems])


class SingleLine(HumanEvalInfilling):
    name: ClassVar[str] = "humaneval-infilling-single"
    about: ClassVar[str] = "one line of a HumanEval solution; judged by its tests"
    subset: ClassVar[str] = "SingleLineInfilling"


class MultiLine(HumanEvalInfilling):
    name: ClassVar[str] = "humaneval-infilling-multi"
    about: ClassVar[str] = "some lines of a HumanEval solution; judged by its tests"
    subset: ClassVar[str] = "MultiLineInfilling"


class RandomSpan(HumanEvalInfilling):
    name: ClassVar[str] = "humaneval-infilling-random"
    about: ClassVar[str] = "any span of a HumanEval solution; judged by its tests"
    subset: ClassVar[str] = "RandomSpanInfilling"
