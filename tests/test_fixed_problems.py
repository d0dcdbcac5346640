"""The fixed test problems of the tasks made by code, and that the embedded models have room for the answers."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest

from soar_dlm.lm import load
from soar_dlm.tasks.catalogue import make_task

FINGERPRINTS = {
    "mini-code": "75e03a65e6790deb",
    "mini-gsm": "355e054b1ae69eea",
    "mini-infill": "428cbeedd6636439",
    "mini-sudoku": "add48cacd2dc49ae",
    "mini-sums": "45dd96aa7752dbc9",
}
"""A change here is a change of the benchmark: published numbers end with it."""

COUNTS = {"mini-infill": 250}
"""How many of a thousand are looked at where they take long to make."""

LONGEST_BLANK = 64


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_the_fixed_problems_are_the_same_everywhere_and_fit_their_canvas(name: str) -> None:
    task = make_task(name)
    count = COUNTS.get(name, 1000)
    problems = task.distinct(count=count)
    assert len(problems) == len({problem.key for problem in problems}) == count
    assert {problem.split for problem in problems} == {"test"}
    told = [[p.prompt, p.answer, p.key, p.kind, dict(p.checks), *([p.suffix] if p.suffix else [])] for p in problems]
    assert sha256(json.dumps(told).encode()).hexdigest()[:16] == FINGERPRINTS[name]
    tokenizer = load("mini-dreamon" if task.infills else "mini-llada", device="cpu").tokenizer
    answers = tokenizer([problem.answer for problem in problems])["input_ids"]
    assert max(map(len, answers)) < (LONGEST_BLANK if task.infills else task.canvas)
