from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soar_dlm.tasks import mini_gsm
from soar_dlm.tasks import mini_gsm_words as words
from soar_dlm.tasks.catalogue import make_task
from soar_dlm.tasks.mini_gsm import MiniGsm
from soar_dlm.tasks.mini_gsm_words import Form, Theme
from soar_dlm.tasks.problem import Problem, Split

TOKEN = re.compile(r" ?[A-Za-z]+| ?\d+|\n|[^\sA-Za-z\d]| ?[^\sA-Za-z\d]")
STEP = re.compile(r"[A-Z][a-z]*( [A-Za-z]+){1,2} (\d+) ([-+*/]) (\d+) = (\d+)( [a-z]+)?\.")
TASK = MiniGsm()
SEEDS = st.integers(0, 2**64 - 1)


def problem_of(seed: int) -> Problem:
    return TASK.draw(random.Random(seed))


def calculate(left: int, operator: str, right: int) -> float:
    return {"+": left + right, "-": left - right, "*": left * right, "/": left / right}[operator]


def steps_of(problem: Problem) -> list[tuple[int, str, int, int]]:
    found = [STEP.fullmatch(line) for line in problem.answer.split("\n")[1:-1]]
    assert all(found), problem.answer
    return [(int(m[2]), m[3], int(m[4]), int(m[5])) for m in found if m]


def value_of_key(key: str) -> float:
    results: list[float] = []
    for step in key.split(";"):
        left, operator, right = re.split(r"([-+*/])", step)
        sides = [int(results[int(side[1:]) - 1]) if side[0] == "r" else int(side) for side in (left, right)]
        results.append(calculate(sides[0], operator, sides[1]))
    return results[-1]


@pytest.fixture(scope="module")
def many() -> list[Problem]:
    rng = random.Random(11)
    return [TASK.draw(rng) for _ in range(4000)]


def test_it_is_in_the_catalogue() -> None:
    task = make_task("mini-gsm")
    assert isinstance(task, MiniGsm)
    assert (task.name, task.canvas) == ("mini-gsm", 56)


@given(SEEDS)
def test_the_seed_decides_everything(seed: int) -> None:
    assert problem_of(seed) == problem_of(seed)


def test_other_seeds_give_other_problems() -> None:
    assert len({problem_of(seed).prompt for seed in range(50)}) > 45
    assert list(islice(TASK.problems(seed=1), 5)) == list(islice(TASK.problems(seed=1), 5))
    assert list(islice(TASK.problems(seed=1), 5)) != list(islice(TASK.problems(seed=2), 5))


def test_streams_keep_to_their_split() -> None:
    splits: tuple[Split, ...] = ("train", "validation", "test")
    keys = {}
    for split in splits:
        found = list(islice(TASK.problems(split), 100))
        assert {problem.split for problem in found} == {split}
        keys[split] = {problem.key for problem in found}
    assert not keys["train"] & keys["test"]
    assert not keys["train"] & keys["validation"]
    assert not keys["test"] & keys["validation"]


@given(SEEDS)
def test_every_line_is_true_and_the_last_is_the_answer(seed: int) -> None:
    problem = problem_of(seed)
    steps = steps_of(problem)
    assert all(calculate(left, operator, right) == result for left, operator, right, result in steps)
    answer = problem.checks["answer"]
    assert problem.answer.endswith(f"\n#### {answer}")
    assert steps[-1][3] == answer == value_of_key(problem.key)
    assert problem.kind == f"{len(steps)} steps"


@given(SEEDS)
def test_numbers_are_in_range(seed: int) -> None:
    problem = problem_of(seed)
    assert all(2 <= int(number) <= 60 for number in re.findall(r"\d+", problem.prompt + problem.answer))
    for left, operator, right, result in steps_of(problem):
        if operator == "*":
            assert min(left, right) <= 9
            assert result <= 96
        if operator == "/":
            assert 2 <= right <= 9


@given(SEEDS)
def test_the_solution_uses_what_the_story_or_a_step_gives(seed: int) -> None:
    problem = problem_of(seed)
    spelled = {"twice": 2, "half": 2, "third": 3, "three": 3, "four": 4, "quarter": 4, "five": 5}
    known = {int(number) for number in re.findall(r"\d+", problem.prompt)}
    given_numbers = Counter(re.findall(r"\d+", problem.prompt))
    known |= {number for word, number in spelled.items() if word in problem.prompt}
    for left, _, right, result in steps_of(problem):
        assert {left, right} <= known
        known.add(result)
    used = Counter(number for step in problem.key.split(";") for number in re.findall(r"(?<!r)\b\d+", step))
    assert (given_numbers - used).total() <= 1, "at most one number of the story is beside the point"


def test_numbers_beside_the_point_are_rare_but_occur(many: list[Problem]) -> None:
    distracted = sum(bool(re.search(r"years old|miles from|minutes every", problem.prompt)) for problem in many)
    assert 0.07 < distracted / len(many) < 0.13


def test_two_to_five_steps_in_the_intended_shares(many: list[Problem]) -> None:
    shares = {kind: count / len(many) for kind, count in Counter(problem.kind for problem in many).items()}
    assert shares == pytest.approx({"2 steps": 0.3, "3 steps": 0.3, "4 steps": 0.25, "5 steps": 0.15}, abs=0.03)


def test_lengths(many: list[Problem]) -> None:
    prompts = [len(TOKEN.findall(problem.prompt)) for problem in many]
    assert max(prompts) <= 95
    assert sum(prompts) / len(prompts) < 55
    for problem in many:
        assert len(TOKEN.findall(problem.answer)) < TASK.canvas
        assert all(len(TOKEN.findall(line + "\n")) <= 10 for line in problem.answer.split("\n"))
        assert "".join(TOKEN.findall(problem.prompt + problem.answer)) == problem.prompt + problem.answer


def test_prompts_are_plain_sentences_and_a_question(many: list[Problem]) -> None:
    for problem in many:
        assert re.fullmatch(r"([A-Z][A-Za-z0-9 ,]+\. )*[A-Z][A-Za-z ,]+\?", problem.prompt), problem.prompt
        assert "  " not in problem.prompt
        assert not re.search(r"\ba [aeiou]|(He|She) (have|give|need)\b|They \w+s \d", problem.prompt), problem.prompt


def test_vocabulary_is_small(many: list[Problem]) -> None:
    vocabulary = {word for problem in many for word in re.findall("[A-Za-z]+", problem.prompt + problem.answer)}
    assert 250 < len(vocabulary) < 450


def reworded(form: Form) -> Form:
    return replace(form, texts=form.texts[::-1])


def retold(theme: Theme) -> Theme:
    """The theme with other nouns and every choice of sentence the other way round."""
    roles = {role: tuple(map(reworded, getattr(theme, role))) for role in ("start", "events", "endings", "compare")}
    return replace(theme, things=tuple(thing.upper() for thing in theme.things), **roles)  # type: ignore[arg-type]


def test_wording_does_not_change_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [problem_of(seed) for seed in range(200)]
    monkeypatch.setattr(mini_gsm, "THEMES", [retold(theme) for theme in mini_gsm.THEMES])
    for table in ("MEN", "WOMEN", "GOODS", "DISTRACTORS", "SHOP_FIRST", "SHOP_BUY", "SHOP_ASK"):
        monkeypatch.setattr(words, table, getattr(words, table)[::-1])
    after = [problem_of(seed) for seed in range(200)]
    assert [problem.key for problem in before] == [problem.key for problem in after]
    assert not {problem.prompt for problem in before} & {problem.prompt for problem in after}


def test_the_key_names_numbers_and_operations_only(many: list[Problem]) -> None:
    operand = r"(r[1-4]|\d+)"
    assert all(re.fullmatch(rf"({operand}[-+*/]{operand};?)+", problem.key) for problem in many)
    assert len({problem.key for problem in many}) > 3000


def test_plans_are_not_only_chains(many: list[Problem]) -> None:
    joins = sum(bool(re.search(r"r\d[-+]r\d", problem.key)) for problem in many)
    assert joins > len(many) / 10


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("#### 19", True),
        ("Tom has 12 + 7 = 19.\n#### 19", True),
        ("####19", True),
        ("####  19 \n", True),
        ("#### 19.", True),
        ("#### 19.0", True),
        ("#### 7\n#### 19", True),
        ("#### 19\n#### 7", False),
        ("#### 190", False),
        ("#### 1,9", False),
        ("#### 19.5", False),
        ("#### 19 20", False),
        ("#### -19", False),
        ("#### ", False),
        ("####", False),
        ("### 19", False),
        ("19", False),
        ("", False),
        ("#### " + "9" * 5000, False),
        ("#### 9" + ",999" * 2000, False),
    ],
)
def test_judging(text: str, right: bool) -> None:
    assert TASK.correct(Problem("", "", "", "", {"answer": 19}), text) is right


def test_thousands_commas_are_read() -> None:
    assert TASK.correct(Problem("", "", "", "", {"answer": 1234}), "#### 1,234")


@given(SEEDS, st.integers(0, 120))
def test_the_reference_is_right_and_another_number_is_not(seed: int, number: int) -> None:
    problem = problem_of(seed)
    assert TASK.correct(problem, problem.answer)
    changed = re.sub(r"#### \d+", f"#### {number}", problem.answer)
    assert TASK.correct(problem, changed) == (number == problem.checks["answer"])
    assert not TASK.correct(problem, problem.answer.replace("####", ""))
