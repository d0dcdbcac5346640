"""Programs that try to get out, or to talk their way to a pass."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from soar_dlm.tasks.execution import Limits, missing_walls, run_cases
from soar_dlm.tasks.isolation import WALLS, readable
from soar_dlm.tasks.unit_tests import all_pass_tests

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="walls are built on Linux alone")
QUICK = Limits(wall_seconds=3.0, cpu_seconds=1, memory_bytes=256 * 2**20)


def needs(*walls: str) -> None:
    """Skip where the system does not allow a wall."""
    absent = [WALLS[wall] for wall in WALLS if wall in walls and wall in missing_walls()]
    if absent:
        pytest.skip(f"this system does not allow: {', '.join(absent)}")


def outcome(program: str, limits: Limits = QUICK) -> str:
    """What became of a program whose function should have returned True."""
    return run_cases(program, "solve", [[[], True]], limits=limits).why


def attempt(line: str) -> str:
    """A function that returns True if ``line`` raises no error."""
    return f"import os, sys, socket, signal\ndef solve():\n    {line}\n    return True\n"


@pytest.mark.parametrize(
    "line",
    [
        "os.fork()",
        "os.posix_spawn('/bin/true', ['true'], {})",
        "os.execv('/bin/true', ['true'])",
        "socket.socket()",
        "socket.create_connection(('127.0.0.1', 80))",
        "os.kill(1, signal.SIGKILL)",
        "os.kill(os.getppid(), signal.SIGKILL)",
        "os.killpg(0, signal.SIGKILL)",
    ],
)
def test_no_processes_no_sockets_no_signals(line: str) -> None:
    needs("calls")
    assert outcome(attempt(line)) == "error"


def test_a_fork_bomb_does_not_go_off() -> None:
    needs("calls")
    bomb = "import os\ndef solve():\n    while True:\n        try: os.fork()\n        except OSError: pass\n"
    assert outcome(bomb) == "timeout"


def test_files_outside_are_not_there(tmp_path: Path) -> None:
    needs("files")
    secret = tmp_path / "secret"
    secret.write_text("x")
    assert outcome(attempt(f"open({str(secret)!r})")) == "error"
    assert outcome(attempt(f"os.listdir({str(Path.home())!r}) and 1 / 0")) == "error"
    assert outcome(attempt(f"os.stat({os.getcwd()!r})")) == "error"
    assert outcome(attempt("os.listdir('/proc')")) == "error"


def test_what_can_be_read_cannot_be_written() -> None:
    needs("files")
    for path in readable():
        if Path(path).is_dir():
            assert outcome(attempt(f"open({path + '/soar-test'!r}, 'w')")) == "error"
    assert outcome(attempt("open('/tmp/own', 'w').write('x')")) == "passed"
    assert outcome(attempt("open('own', 'w').write('x')")) == "passed"


def test_the_disk_is_small() -> None:
    needs("files")
    filling = (
        "def solve():\n    for number in range(64):\n        with open(str(number), 'wb') as file:\n"
        "            file.write(bytes(2**20 - 1))\n    return True\n"
    )
    assert outcome(filling) == "error"
    assert outcome(attempt("open('large', 'wb').write(bytes(2**22))")) != "passed"


def test_other_processes_are_not_seen() -> None:
    needs("processes")
    assert outcome("import os\ndef solve():\n    return os.getpid() == 2 and os.getppid() == 1\n") == "passed"


def test_memory_output_and_time_are_bounded() -> None:
    assert outcome("def solve():\n    return len(bytearray(2**30)) > 0\n") == "memory"
    assert outcome("def solve():\n    text = 'x'\n    while True: text += text\n") == "memory"
    assert outcome("def solve():\n    while True: print('x' * 2**20)\n") == "timeout"
    assert outcome("def solve():\n    return 'x' * 2**18\n", replace(QUICK, output_bytes=2**16)) == "output"
    assert outcome("import time\ndef solve():\n    time.sleep(60)\n", Limits(wall_seconds=0.5)) == "timeout"


@pytest.mark.parametrize(
    "program",
    [
        "import sys\nsys.exit(0)\n",
        "import os\nos._exit(0)\n",
        "raise SystemExit\n",
        "import builtins\nbuiltins.exec = builtins.compile = lambda *_: None\n",
        "import builtins\nbuiltins.AssertionError = Exception\nbuiltins.abs = lambda _: 0\nadd = lambda a, b: 99\n",
        "def check(*_): pass\n",
        "import sys\nsys._getframe(1).f_locals['tests'] = ''\n",
        "import sys\nsys._getframe(1).f_globals['_passes_its_tests'] = lambda: True\n",
        "import sys\nsys.settrace(lambda *_: None)\ndef add(a, b): return 99\n",
        "import __main__\n__main__.finish('passed', ['true'])\n",
        "import sys\nsys._getframe(2).f_globals['finish']('passed', ['true'])\n",
        "try: 1 / 0\nexcept Exception as e: frame = e.__traceback__.tb_frame\n"
        "frame.f_back.f_back.f_globals['finish']('passed', ['true'])\n",
        "g = (g.gi_frame.f_back.f_back.f_back.f_globals['finish']('passed', ['true']) for _ in [0])\nnext(g)\n",
        "import gc\nnext(f for f in gc.get_objects() if getattr(f, '__name__', 0) == 'finish')('passed', ['true'])\n",
    ],
)
def test_a_program_cannot_get_around_its_tests(program: str) -> None:
    tests = "def check(add):\n    assert abs(add(1, 2) - 3) < 1e-6\ncheck(add)"
    assert all_pass_tests([program], [tests]) == [False]
    assert all_pass_tests(["def add(a, b): return a + b"], [tests]) == [True]


def test_programs_may_use_what_looks_at_frames_in_passing() -> None:
    program = (
        "from collections import namedtuple\nfrom dataclasses import dataclass\nfrom enum import Enum\n"
        "from typing import NamedTuple\nimport re, math, heapq, itertools, functools, statistics, fractions, decimal\n"
        "Point = namedtuple('Point', 'x y')\nclass Colour(Enum):\n    RED = 1\nclass Pair(NamedTuple):\n    a: int\n"
        "def add(a, b): return Point(a, b).x + Pair(b).a + Colour.RED.value - 1\n"
    )
    assert all_pass_tests([program], ["assert add(1, 2) == 3"]) == [True]


def test_walls_are_those_that_users_read_about() -> None:
    assert set(missing_walls()) <= set(WALLS)
