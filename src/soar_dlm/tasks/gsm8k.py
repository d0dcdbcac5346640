"""GSM8K: grade-school word problems with worked solutions (Cobbe et al., 2021)."""

from __future__ import annotations

import re
from typing import ClassVar

from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.published import PublishedTask, read_rows

HUB = "openai/gsm8k"
MARKED = re.compile(r"#### (-?[0-9.,]+)")
NUMBER = re.compile(r"(-?[$0-9.,]{2,})|(-?[0-9]+)")


class Gsm8k(PublishedTask):
    """Question and answer, after ``shots`` solved examples: the first of the training set.

    ``correct`` takes the number after ``####``, or the last number of the text if the mark is missing: what
    lm-evaluation-harness calls strict-match where the model writes the mark, and flexible-extract where it does not.
    """

    name: ClassVar[str] = "gsm8k"
    about: ClassVar[str] = "grade-school word problems; the number after #### decides"
    canvas: ClassVar[int] = 256
    shots: ClassVar[int] = 4
    answer_mark: ClassVar[str | None] = "####"
    stop: ClassVar[tuple[str, ...]] = ("Question:", "</s>", "<|im_end|>")

    def load(self) -> list[Problem]:
        examples = self._rows("train")[: self.shots]
        shown = "".join(f"{question(row)} {row['answer']}\n\n" for row in examples)
        return [
            Problem(
                prompt=shown + question(row),
                answer=f" {row['answer']}",
                key=f"gsm8k/{place}",
                kind="gsm8k",
                checks={"number": final_number(row["answer"])},
            )
            for place, row in enumerate(self._rows("test"))
        ]

    def _rows(self, split: str) -> list[dict[str, str]]:
        return read_rows(self.data_dir, f"gsm8k/{split}.jsonl", HUB, "main", split)

    def correct(self, problem: Problem, text: str) -> bool:
        return bool(final_number(text) == problem.checks["number"])


def question(row: dict[str, str]) -> str:
    return f"Question: {row['question']}\nAnswer:"


def final_number(text: str) -> str | None:
    """The number after the mark, else the last one, without currency signs, commas and a final full stop."""
    marked = MARKED.search(text)
    if marked:
        return _plain(marked[1])
    found = NUMBER.findall(text)
    return _plain(found[-1][0] or found[-1][1]) if found else None


def _plain(number: str) -> str:
    return number.replace(",", "").replace("$", "").removesuffix(".")
