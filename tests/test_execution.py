from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soar_dlm.errors import SettingsError
from soar_dlm.tasks.execution import Limits, run_cases, same

CASES = [[[1], 2], [[0], 1], [[-5], -4]]
RIGHT = "def solve(n):\n    return n + 1\n"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def why(program: str, cases: list[list[Any]] = CASES, limits: Limits | None = None) -> str:
    outcome = run_cases(program, "solve", cases, limits=limits or Limits())
    assert outcome.passed == (outcome.why == "passed")
    return outcome.why


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (RIGHT, "passed"),
        ("def solve(n):\n    return n + 2\n", "wrong"),
        ("def solve(n):\n    return n + 1 if n else 1.0\n", "wrong"),
        ("def solve(n):\n    return (n + 1,)[0] if n else True\n", "wrong"),
        ("def solve(n):\n    return 1 // 0\n", "error"),
        ("def solve(n):\n    return solve(n)\n", "error"),
        ("def other(n):\n    return n + 1\n", "missing"),
        ("solve = 3\n", "missing"),
        ("def solve(n):\nreturn n + 1\n", "syntax"),
        ("def solve(n):\n    return '\0'\n", "syntax"),
        ("def solve(n):\n    return bytearray(2**30)\n", "memory"),
    ],
)
def test_the_verdict_says_what_happened(program: str, expected: str) -> None:
    assert why(program) == expected


@pytest.mark.parametrize(
    "start",
    [
        "import sys\nsys.exit(0)\n",
        "import os\nos._exit(0)\n",
        "print('passed')\nraise SystemExit\n",
        "import builtins\nbuiltins.all = builtins.any = lambda values: True\nbuiltins.type = lambda value: int\n",
        "import os\nfor fd in 3, 4, 5:\n    try: os.write(fd, b'[1,\"passed\",[2,1,-4]]')\n    except OSError: 0\n",
        "import json\njson.loads = json.dumps = lambda *_: []\n",
    ],
)
def test_a_wrong_program_cannot_talk_its_way_to_a_pass(start: str) -> None:
    assert why(start + "def solve(n):\n    return None\n") in ("exit", "wrong")


def test_a_value_that_claims_to_equal_everything_is_wrong() -> None:
    liar = "class Liar({}):\n    def __eq__(self, other): return True\n    def __repr__(self): return '2'\n"
    assert why(liar.format("object") + "def solve(n):\n    return Liar()\n") == "wrong"
    assert why(liar.format("int") + "def solve(n):\n    return Liar(n + 1)\n") == "wrong"


@pytest.mark.parametrize("value", ["(1, 2)", "{1}", "float('nan')", "{1: 2}", "solve", "b'x'"])
def test_values_that_json_does_not_know_are_wrong(value: str) -> None:
    assert why(f"def solve():\n    return {value}\n", [[[], None]]) == "wrong"


def test_an_endless_loop_ends_at_the_wall_clock_and_at_the_cpu_limit() -> None:
    endless = "def solve(n):\n    while True: pass\n"
    assert why(endless, limits=Limits(wall_seconds=0.3)) == "timeout"
    assert why(endless, limits=Limits(wall_seconds=60, cpu_seconds=1)) == "timeout"


def test_a_program_that_hangs_up_and_stays_is_ended() -> None:
    program = "import os, time\nos.closerange(0, 50)\ntime.sleep(60)\n"
    assert why(program, limits=Limits(wall_seconds=0.3)) == "timeout"


def test_prints_are_thrown_away_and_large_values_refused() -> None:
    assert why("print('x' * 10**7)\n" + RIGHT) == "passed"
    assert why("def solve(n):\n    return [7] * 10**5\n", limits=Limits(output_bytes=1000)) == "output"


def test_files_stay_in_a_directory_that_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program = (
        "import os\ndef solve():\n    before = os.listdir()\n    open('left', 'w').write('x')\n"
        "    return [before, os.listdir()]\n"
    )
    assert why(program, [[[], [[], ["left"]]]]) == "passed"
    assert list(tmp_path.iterdir()) == []


def test_a_file_cannot_grow_beyond_its_limit() -> None:
    program = "def solve():\n    with open('big', 'wb') as file: file.write(bytes(5000))\n"
    assert why(program, [[[], None]], Limits(file_bytes=5000)) == "passed"
    assert why(program, [[[], None]], Limits(file_bytes=4999)) == "error"


def test_environment_and_input_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "1")
    program = "import os, sys\ndef solve():\n    return [dict(os.environ), sys.stdin.read()]\n"
    assert "SECRET" in os.environ
    assert why(program, [[[], [{}, ""]]]) == "passed"


def test_values_survive_the_journey_both_ways() -> None:
    values: list[Any] = [None, True, -3, 10**30, 0.1, 'quote " \\ \n', "é€𝄞\ud800", [[]], {"a": [1, {"": False}]}]
    assert why("def solve(value):\n    return value\n", [[[value], value] for value in values]) == "passed"


def test_cases_take_several_arguments_and_a_large_request_arrives() -> None:
    program = "# " + "x" * 200_000 + "\ndef solve(a, b):\n    return a - b\n"
    assert why(program, [[[3, 1], 2], [[1, 3], -2]]) == "passed"


@given(JSON, JSON)
def test_same_is_equality_of_type_and_value(left: Any, right: Any) -> None:
    assert same(left, left)
    assert same(left, right) == (repr(_sorted(left)) == repr(_sorted(right)))


def _sorted(value: Any) -> Any:
    """Dictionaries by key, and no negative zero: what repr shows and equality ignores."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return (
        [_sorted(item) for item in value]
        if isinstance(value, list)
        else value + 0.0
        if value == 0.0 and isinstance(value, float)
        else value
    )


@pytest.mark.parametrize(
    "change",
    [
        {"wall_seconds": 0},
        {"wall_seconds": float("inf")},
        {"cpu_seconds": 0},
        {"memory_bytes": 0},
        {"file_bytes": -1},
        {"open_files": 3},
        {"threads": 0},
        {"output_bytes": 1.5},
    ],
)
def test_impossible_limits_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(change))):
        replace(Limits(), **change)
