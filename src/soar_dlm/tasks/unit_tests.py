"""Judging programs: by cases whose results are compared outside the process, or by a benchmark's own asserts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from soar_dlm.tasks.execution import Limits, run_cases

WORKERS = 2
PASSES = "_passes_its_tests"
TEST_LIMITS = Limits(wall_seconds=30.0, cpu_seconds=15)
"""A benchmark's own asserts get more time: the slowest reference solution of MBPP takes four seconds on a slow core."""

_Job = TypeVar("_Job")

# Both texts are run by functions bound before the program could change anything, the tests with their own builtins.
_TESTED = """\
def {passes}(program={program!r}, tests={tests!r}, run=exec, read=compile, builtins=dict(vars(__import__("builtins")))):
    space = {{"__name__": "program", "__builtins__": dict(builtins)}}
    run(read(program, "program", "exec"), space)
    space["__builtins__"] = builtins
    run(read(tests, "tests", "exec"), space)
    return True
"""


def all_pass(programs: Sequence[str], checks: Sequence[Any]) -> list[bool]:
    """Whether each program passes its cases: ``checks`` has the ``name`` of the function and ``cases`` for each."""
    texts = [json.dumps(dict(own)) for own in checks]
    return _each(_passes_cases, list(zip(programs, texts, strict=True)))


def all_pass_tests(programs: Sequence[str], tests: Sequence[str]) -> list[bool]:
    """Whether each program, followed by its tests, runs to the end without an error."""
    return _each(_passes_tests, list(zip(programs, tests, strict=True)))


def _passes_cases(job: tuple[str, str]) -> bool:
    checks = json.loads(job[1])
    return run_cases(job[0], checks["name"], checks["cases"]).passed


def _passes_tests(job: tuple[str, str]) -> bool:
    tested = _TESTED.format(passes=PASSES, program=job[0], tests=job[1])
    return run_cases(tested, PASSES, [[[], True]], limits=TEST_LIMITS).passed


def _each(judge: Callable[[_Job], bool], jobs: Sequence[_Job]) -> list[bool]:
    """Two run at a time; the same job runs once."""
    unique = list(dict.fromkeys(jobs))
    with ThreadPoolExecutor(WORKERS) as workers:
        verdicts = dict(zip(unique, workers.map(judge, unique), strict=True))
    return [verdicts[job] for job in jobs]
