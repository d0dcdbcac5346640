"""The fixed problems of the tasks made by code: the same everywhere, in a fair order, and small enough for a canvas."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from hashlib import sha256
from itertools import islice
from math import comb

import pytest

from soar_dlm.errors import SettingsError, SoarError
from soar_dlm.evals.statistics import rank_correlation
from soar_dlm.lm import load
from soar_dlm.tasks.catalogue import make_task
from soar_dlm.tasks.fixed_sets import RECORDED, SPLITS, first_of_each_key, measured_skips, recorded_skips, task_id
from soar_dlm.tasks.mini_sums import MiniSums
from soar_dlm.tasks.problem import Problem, Split

FINGERPRINTS = {
    ("mini-gsm", "test"): "f36458eb648a0307",
    ("mini-gsm", "validation"): "56ad186e9a7e6bb5",
    ("mini-code", "test"): "00f845fdae2eb084",
    ("mini-code", "validation"): "7f4bb45989f624c1",
    ("mini-infill", "test"): "dd10f17a40e90a63",
    ("mini-infill", "validation"): "66ff6ac1d69344b3",
    ("mini-infill-lines", "test"): "1c52a00c4c3ad0cf",
    ("mini-infill-lines", "validation"): "07820a3103bee610",
    ("mini-sudoku", "test"): "272af3bc056e3e86",
    ("mini-sudoku", "validation"): "ba49e267813983e6",
    ("mini-sums", "test"): "5411ad55afc31af1",
    ("mini-sums", "validation"): "f976eb9e20835005",
}
"""A change here is a change of the benchmark: figures measured before it no longer compare with those after it."""

SAMPLES = (32, 64, 100, 200, 300, 500)
LONGEST_BLANK = 64


@cache
def fixed(name: str, split: Split) -> list[Problem]:
    return make_task(name).distinct(split)


def fingerprint(problems: list[Problem]) -> str:
    texts = [[one.prompt, one.answer, one.key, one.kind, dict(one.checks), one.suffix] for one in problems]
    return sha256(json.dumps(texts).encode()).hexdigest()[:16]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", RECORDED)
def test_the_fixed_problems_are_the_same_everywhere(name: str, split: Split) -> None:
    problems = fixed(name, split)
    assert len(problems) == len({problem.key for problem in problems}) == 1000
    assert {problem.split for problem in problems} == {split}
    assert fingerprint(problems) == FINGERPRINTS[name, split]


@pytest.mark.parametrize("name", RECORDED)
def test_answers_fit_the_canvas(name: str) -> None:
    task = make_task(name)
    tokenizer = load("mini-dreamon" if task.infills else "mini-llada", device="cpu").tokenizer
    answers = tokenizer([problem.answer for problem in fixed(name, "test")])["input_ids"]
    assert max(map(len, answers)) < (LONGEST_BLANK if task.infills else task.canvas)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_places_are_those_of_the_stream(name: str, split: Split) -> None:
    """A stale record would give problems that the stream does not have."""
    task = make_task(name)
    assert recorded_skips()[task_id(task)][split][:8] == measured_skips(task, split, 8)
    first = islice(first_of_each_key(task.problems(split)), 8)
    assert {problem.key for problem in first} <= {problem.key for problem in fixed(name, split)}


def test_a_subclass_draws_its_own_problems() -> None:
    """The record is that of a class: a subclass keeps the name and may draw differently."""

    class Another(MiniSums):
        pass

    assert Another().distinct("test", 20) == MiniSums().distinct("test", 20)
    assert task_id(Another()) not in recorded_skips()


def test_fewer_problems_are_the_first_of_more() -> None:
    task = make_task("mini-sums")
    assert task.distinct("test", 10) == task.distinct("test")[:10]
    more = task.distinct("test", 1001)
    assert {problem.key for problem in more} > {problem.key for problem in task.distinct("test")}
    assert task.distinct("test", 10, seed=1) == task.distinct("test", 100, seed=1)[:10] != task.distinct("test", 10)


def tail(marked: int, drawn: int, found: int, total: int = 1000) -> float:
    """Hypergeometric: how likely ``drawn`` of ``total`` hold ``found`` of the ``marked`` ones, or a rarer number."""
    ways = [comb(marked, count) * comb(total - marked, drawn - count) for count in range(drawn + 1)]
    return min(sum(ways[: found + 1]), sum(ways[found:])) / comb(total, drawn)


def rarest(problems: list[Problem], start: int, size: int) -> float:
    """The smallest :func:`tail` of any kind among the problems from ``start`` on."""
    own = Counter(problem.kind for problem in problems[start : start + size])
    return min(tail(count, size, own[kind]) for kind, count in Counter(one.kind for one in problems).items())


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", RECORDED)
def test_any_first_problems_are_a_fair_sample(name: str, split: Split) -> None:
    """In the order of drawing, 44% of the first 64 of mini-code had 2 operations, and 26% of the last 500."""
    problems = fixed(name, split)
    for size in SAMPLES:
        assert rarest(problems, 0, size) > 1e-3, f"the first {size}"
        for start in range(size, 1001 - size, size):
            assert rarest(problems, start, size) > 1e-5, f"{size} from {start} on"
    for kind in {problem.kind for problem in problems}:
        places = [float(problem.kind == kind) for problem in problems]
        trend = rank_correlation(places, list(range(1000)))
        assert trend is None or abs(trend) < 3 / 1000**0.5, f"{kind} are not spread evenly"


def test_what_no_task_has_is_refused_instead_of_being_looked_for_without_end() -> None:
    task = MiniSums()
    with pytest.raises(SoarError, match="test"):
        task.distinct("tests")  # type: ignore[arg-type]
    with pytest.raises(SoarError, match="train"):
        next(task.problems("trian"))  # type: ignore[arg-type]
    for count in (-1, 2.5, 10**9):
        with pytest.raises(SettingsError, match="count"):
            task.distinct("test", count)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="data_dir"):
        make_task("gsm8k", 5)  # type: ignore[arg-type]
