"""GSM8K, MBPP and HumanEval in their published formats: what a model is asked, and what counts as right."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.scorers import harness_verdict

from soar_dlm.tasks.catalogue import make_task
from soar_dlm.tasks.code_text import first_block, function_only
from soar_dlm.tasks.gsm8k import final_number
from soar_dlm.tasks.task import Task

SUM = {"question": "Ann has 2 pens and buys 3. How many?", "answer": "She has 2 + 3 = <<2+3=5>>5 pens.\n#### 5"}
LARGE = {"question": "How much is a thousand and a half thousand?", "answer": "1,000 + 500 = 1,500\n#### 1,500"}

DOUBLE = {
    "task_id": "Test/0",
    "prompt": 'def double(x):\n    """Twice x."""\n',
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(-1) == -2\n",
    "entry_point": "double",
}


def mbpp_row(number: int) -> dict[str, Any]:
    return {
        "task_id": number,
        "text": f"Write a function to add {number}.",
        "code": f"def add(x):\r\n    return x + {number}",
        "test_list": [f"assert add({value}) == {value + number}" for value in range(4)],
        "test_setup_code": "",
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder laid out as the benchmarks publish their files."""

    def write(name: str, rows: Iterable[Any]) -> None:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        content = "".join(json.dumps(row) + "\n" for row in rows).encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)

    write("gsm8k/train.jsonl", [{**SUM, "question": f"Question {place}?"} for place in range(6)])
    write("gsm8k/test.jsonl", [SUM, LARGE])
    write("mbpp/mbpp_prompt.jsonl", [mbpp_row(number) for number in range(1, 11)])
    write("mbpp/mbpp_test.jsonl", [mbpp_row(11), mbpp_row(12)])
    write("humaneval/HumanEval.jsonl.gz", [DOUBLE])
    return tmp_path


def right(task: Task, *texts: str) -> list[bool]:
    """The verdicts on texts about a task's first problem."""
    problem = next(iter(task.problems("test")))
    return task.all_correct([problem] * len(texts), texts)


def test_gsm8k_is_asked_after_four_solved_problems(data: Path) -> None:
    task = make_task("gsm8k", data)
    first, second = task.problems("test")
    shown = [f"Question: Question {place}?\nAnswer: {SUM['answer']}\n\n" for place in range(4)]
    assert first.prompt == "".join(shown) + f"Question: {SUM['question']}\nAnswer:"
    assert task.shots == 4
    assert task.correct(first, first.answer)
    assert task.correct(second, "so it is $1500. #### 1500.")
    assert not task.correct(first, second.answer)
    assert not task.correct(first, "")


TEXTS = [
    ("She has 2 + 3 = 5 pens.\n#### 5", "5"),
    ("#### 5\n\nAnd 7 more.", "5"),
    ("The answer is 5.", "5"),
    ("It costs $1,234.", "1234"),
    ("#### -3", "-3"),
    ("12 and then 13", "13"),
    ("no idea", None),
]


@pytest.mark.parametrize(("text", "number"), TEXTS)
def test_the_number_that_counts(text: str, number: str | None) -> None:
    assert final_number(text) == number


@pytest.mark.parametrize("text", [text for text, _ in TEXTS])
@pytest.mark.parametrize("reference", ["all in all\n#### 5", "#### 1,234", "#### -3"])
def test_numbers_are_judged_as_the_harness_judges_them(text: str, reference: str) -> None:
    assert (final_number(text) == final_number(reference)) == harness_verdict(text, reference)


def test_mbpp_is_asked_after_three_solved_problems(data: Path) -> None:
    task = make_task("mbpp", data)
    first = next(iter(task.problems("test")))
    assert first.prompt.count("[BEGIN]") == 4
    assert first.prompt.count("[DONE]") == task.shots == 3
    assert [f"add {number}." in first.prompt for number in (1, 2, 3, 4, 11)] == [False, True, True, True, True]
    assert first.prompt.endswith("assert add(2) == 13\n[BEGIN]\n")
    fenced = f"```python\n{first.answer}\n```\n[DONE]"
    assert right(task, first.answer, f"{first.answer}\n[DONE]\nnonsense(", fenced) == [True] * 3
    assert right(task, "def add(x):\n    return x", "", "raise SystemExit(0)") == [False] * 3


def test_humaneval_is_asked_as_it_is_and_cut_after_the_function(data: Path) -> None:
    task = make_task("humaneval", data)
    first = next(iter(task.problems("test")))
    assert (first.prompt, task.shots) == (DOUBLE["prompt"], 0)
    body = first.answer
    assert (
        right(task, body, f"{body}\nprint(double('x') / 0)", f"{body}\ndef other(:", f"{body}```\nDone.") == [True] * 4
    )
    assert right(task, "    return x\n", "    import sys; sys.exit(0)\n", "    return 2 * (\n") == [False] * 3


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x = 1\n", "x = 1\n"),
        ("```python\nx = 1\n```", "x = 1"),
        ("Here it is:\n```python\nx = 1\n```\nIt sets x.", "x = 1"),
        ("```\nx = 1", "x = 1"),
        ("    return 1\n```\nThat is all.", "    return 1\n"),
        ("    return 1\n```\n```python\ny = 2\n```", "    return 1\n"),
    ],
)
def test_code_is_taken_out_of_its_fences(text: str, code: str) -> None:
    assert first_block(text) == code


def test_a_function_ends_at_the_first_mark() -> None:
    assert function_only("    return 1\n\nprint(2)\ndef g", ("\ndef", "\nprint")) == "    return 1\n"
    assert function_only("    return 1\n", ("\ndef",)) == "    return 1\n"
