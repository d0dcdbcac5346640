"""Judging many programs: by cases whose results are compared outside, or by a benchmark's own asserts."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from soar_dlm.errors import InputFileError, shown
from soar_dlm.tasks.execution import Asserts, Limits, run_cases, run_tests
from soar_dlm.tasks.sandbox.launch import begin, end_all

WORKERS = 2
TEST_LIMITS = Limits(wall_seconds=30.0, cpu_seconds=15)
"""A benchmark's own asserts get more time: the slowest reference solution of MBPP takes four seconds on a slow core."""

_Job = TypeVar("_Job")


def all_pass(programs: Sequence[str], checks: Sequence[Any]) -> list[bool]:
    """Whether each program passes its cases: ``checks`` has the ``name`` of the function and ``cases`` for each."""
    texts = [json.dumps(dict(own)) for own in checks]
    return _each(_passes_cases, list(zip(programs, texts, strict=True)))


def all_pass_tests(programs: Sequence[str], tests: Sequence[Asserts]) -> list[bool]:
    """Whether each program passes its benchmark's tests."""
    return _each(_passes_tests, list(zip(programs, tests, strict=True)))


def asserts_of_function(tests: str, prompt: str) -> Asserts:
    """Tests that end with ``check(name)``; what the prompt has before that function is given, not the model's."""
    name = tests.rstrip().rpartition("(")[2].rstrip(")")
    start = re.search(rf"^def {re.escape(name)}\b", prompt, re.MULTILINE)
    given = prompt[: start.start()] if start else ""
    return Asserts(tests, (name,), given if _defined(given) & set(_used(tests)) else "")


def asserts_of_program(tests: str, reference: str) -> Asserts:
    """Tests of a whole program; they take from it the names that a right program (``reference``) has for them."""
    defined = _defined(reference)
    return Asserts(tests, tuple(name for name in dict.fromkeys(_used(tests)) if name in defined))


def _defined(code: str) -> set[str]:
    """The names that ``code`` gives to functions, classes and values of its own; what it imports is not its own."""
    found: set[str] = set()
    for node in _parsed(code).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            found |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return found


def _used(code: str) -> list[str]:
    return [one.id for one in ast.walk(_parsed(code)) if isinstance(one, ast.Name)]


def _parsed(code: str) -> ast.Module:
    """Code of a benchmark, which its files may have in a damaged state."""
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputFileError(
            f"A test or an answer of the benchmark is not valid Python ({error}): {shown(code)}. Get its files again."
        ) from error


def _passes_cases(job: tuple[str, str]) -> bool:
    checks = json.loads(job[1])
    return run_cases(job[0], checks["name"], checks["cases"]).passed


def _passes_tests(job: tuple[str, Asserts]) -> bool:
    return run_tests(job[0], job[1], limits=TEST_LIMITS).passed


def _each(judge: Callable[[_Job], bool], jobs: Sequence[_Job]) -> list[bool]:
    """Two run at a time; the same job runs once. An interruption ends the programs instead of waiting for them."""
    begin()
    unique = list(dict.fromkeys(jobs))
    workers = ThreadPoolExecutor(WORKERS)
    try:
        verdicts = dict(zip(unique, workers.map(judge, unique), strict=True))
    except BaseException:
        workers.shutdown(wait=False, cancel_futures=True)
        end_all()
        raise
    workers.shutdown()
    return [verdicts[job] for job in jobs]
