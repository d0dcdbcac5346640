from __future__ import annotations

import json
import random
import re
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soar_dlm.tasks import unit_tests
from soar_dlm.tasks.catalogue import make_task
from soar_dlm.tasks.execution import Outcome, same
from soar_dlm.tasks.mini_code import MiniCode, function_body, length
from soar_dlm.tasks.mini_code_cases import draw_input, evaluate
from soar_dlm.tasks.mini_code_operations import OPERATIONS, Operation
from soar_dlm.tasks.mini_code_styles import Step, bodies
from soar_dlm.tasks.problem import Problem

TASK = MiniCode()
BY_NAME = {operation.name: operation for operation in OPERATIONS}


@cache
def drawn(count: int, seed: int = 0) -> list[Problem]:
    rng = random.Random(seed)
    return [TASK.draw(rng) for _ in range(count)]


def pipeline(key: str) -> list[Step]:
    """The steps a key names: it must say all there is to know."""
    steps = []
    for part in key.split(" | "):
        name, *constants = part.split(" ")
        steps.append((BY_NAME[name], tuple(int(text) if text.isdigit() else text for text in constants)))
    return steps


def returned(program: str, name: str, value: Any) -> Any:
    space: dict[str, Any] = {}
    exec(program, space)
    return space[name](json.loads(json.dumps(value)))


def test_every_style_of_many_programs_gives_the_expected_values() -> None:
    for problem in drawn(400):
        steps = pipeline(problem.key)
        name, parameter = re.findall(r"\w+", problem.prompt)[1:3]
        written = bodies(steps, parameter)
        assert problem.answer.removeprefix("\n") in written
        for body in written:
            for (value,), expected in problem.checks["cases"]:
                assert same(expected, returned(f"{problem.prompt}\n{body}", name, value)), (problem, body)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_operation_is_total_and_written_as_it_computes(operation: Operation) -> None:
    rng = random.Random(operation.name)
    empty: dict[str, Any] = {"ints": [], "words": [], "str": "", "int": 0}
    for _ in range(10):
        step = (operation, tuple(rng.choice(choices) for choices in operation.constants))
        near = [constant for constant in step[1] if isinstance(constant, int)]
        steps = [step]
        if operation.role == "guard":
            follower = {"ints": "sum", "str": "length", "int": "negate"}[operation.takes]
            steps.append((BY_NAME[follower], ()))
        for value in (empty[operation.takes], draw_input(operation.takes, near, rng)):
            expected = evaluate(steps, value)
            for body in bodies(steps, "v"):
                assert same(expected, returned(f"def f(v):\n{body}", "f", value)), body


def test_names_are_unique_and_phrasings_plenty() -> None:
    assert len(BY_NAME) == len(OPERATIONS) >= 35
    assert all(len(set(operation.phrases)) >= 2 for operation in OPERATIONS)
    used = {step[0].name for problem in drawn(3200, seed=2) for step in pipeline(problem.key)}
    assert len(used) > 0.9 * len(OPERATIONS)


def test_problems_are_short_and_plain() -> None:
    problems = drawn(600, seed=1)
    prompts, answers = [length(p.prompt) for p in problems], [length(p.answer) for p in problems]
    assert max(prompts) <= 80
    assert sum(prompts) / len(prompts) < 45
    assert max(answers) < TASK.canvas
    assert 24 < sum(answers) / len(answers) < 32
    assert len({word for p in problems for word in re.findall("[A-Za-z]+", p.prompt + p.answer)}) < 400
    for problem in problems:
        numbers = map(int, re.findall(r"\d+", problem.prompt + problem.answer))
        assert max(numbers, default=0) <= 20
        assert 8 <= len(problem.checks["cases"]) <= 12
        assert same(json.loads(json.dumps(problem.checks)), dict(problem.checks))
        assert problem.kind == f"{len(pipeline(problem.key))} operations"
        assert "{" not in problem.prompt + problem.answer


def test_there_are_many_pipelines() -> None:
    """Drawn from only 100,000 keys, 1,500 would hold about 11 pairs of equals."""
    keys = [problem.key for problem in drawn(3200, seed=2) if problem.kind != "2 operations"][:1500]
    assert len(keys) == 1500
    assert len(set(keys)) > 1500 - 11


def test_the_cases_tell_a_pipeline_from_its_neighbours() -> None:
    for problem in drawn(200, seed=3):
        steps = pipeline(problem.key)
        for at, (operation, constants) in enumerate(steps):
            if operation.takes == operation.gives:
                assert _fails(steps[:at] + steps[at + 1 :], problem)
            if constants and isinstance(constants[0], int):
                assert _fails([*steps[:at], (operation, (constants[0] + 1, *constants[1:])), *steps[at + 1 :]], problem)


def _fails(steps: list[Step], problem: Problem) -> bool:
    return any(not same(expected, evaluate(steps, value)) for (value,), expected in problem.checks["cases"])


def test_the_style_cannot_be_read_from_the_prompt() -> None:
    for problem in drawn(200, seed=3):
        parameter = re.findall(r"\w+", problem.prompt)[2]
        assert len(bodies(pipeline(problem.key), parameter)) >= 2


@settings(max_examples=20)
@given(st.integers(0, 10**9))
def test_the_same_seed_gives_the_same_problem(seed: int) -> None:
    assert TASK.draw(random.Random(seed)) == TASK.draw(random.Random(seed))


def test_known_pipelines_read_as_a_person_would_write_them() -> None:
    triple = [(BY_NAME["above"], (5,)), (BY_NAME["each_multiply"], (3,)), (BY_NAME["sum"], ())]
    loop = "    total = 0\n    for x in xs:\n        if x > 5:\n            "
    assert bodies(triple, "xs") == [
        "    return sum(x * 3 for x in xs if x > 5)",
        "    ys = [x for x in xs if x > 5]\n    ys = [x * 3 for x in ys]\n    return sum(ys)",
        f"{loop}total += x * 3\n    return total",
    ]
    steps: list[Step] = [(BY_NAME["unless_empty"], (7,)), (BY_NAME["add"], (2,)), (BY_NAME["if_above"], (9, 1, 0))]
    steps[1:1] = [(BY_NAME["largest"], ())]
    assert bodies(steps, "xs")[-1].endswith("if y > 9:\n        return 1\n    return 0")


def test_right_answers_pass_and_wrong_ones_fail() -> None:
    problems = drawn(12, seed=4)
    answers = [problem.answer for problem in problems]
    assert TASK.all_correct(problems, answers) == [True] * 12
    assert TASK.all_correct(problems, answers[1:] + answers[:1]) == [False] * 12
    problem = problems[0]
    assert TASK.correct(problem, problem.answer + "\n\nprint('more')\nraise SystemExit")
    assert not TASK.correct(problem, problem.answer.lstrip())
    assert not TASK.correct(problem, "")
    assert not TASK.correct(problem, "    return None")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("    return 1", "    return 1"),
        ("    a = 1\n\n    return a\nprint(a)\n    b", "    a = 1\n\n    return a"),
        ("return 1", ""),
        ("\n    return 1\n\n", "\n    return 1\n\n"),
    ],
)
def test_only_the_function_is_kept(text: str, kept: str) -> None:
    assert function_body(text) == kept


def test_the_same_program_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def run(program: str, name: str, cases: list[Any]) -> Outcome:
        ran.append(program)
        return Outcome("passed" if "return 1" in program else "wrong")

    monkeypatch.setattr(unit_tests, "run_cases", run)
    first, second = drawn(2, seed=6)
    texts = ["    return 1", "    return 2", "    return 1\nrest", "    return 1"]
    assert TASK.all_correct([first, first, first, second], texts) == [True, False, True, True]
    assert len(ran) == 3
    with pytest.raises(ValueError, match="shorter"):
        TASK.all_correct([first], [])


def test_the_catalogue_knows_it() -> None:
    assert isinstance(make_task("mini-code"), MiniCode)
