"""Running programs that nobody has read, and judging them by what their functions return.

Each program runs in a process of its own, in the sandbox of :mod:`soar_dlm.tasks.sandbox`. :func:`run_cases` sends
arguments and compares what comes back here, outside; the expected values never enter the sandbox. :func:`run_tests`
runs a benchmark's own asserts in a second process of the sandbox, which gets plain values alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

from soar_dlm.errors import SettingsError
from soar_dlm.tasks.sandbox.launch import Sandbox, current
from soar_dlm.tasks.sandbox.limits import Limits
from soar_dlm.tasks.sandbox.walls import NEEDED, WALLS, Wall, missing

__all__ = ["Asserts", "Limits", "Outcome", "Why", "missing_walls", "run_cases", "run_tests", "same"]

Why = Literal["passed", "wrong", "error", "missing", "syntax", "timeout", "memory", "output", "exit"]
DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class Outcome:
    """Whether every case was right, one word that says why or why not, and which walls were ``missing``."""

    why: Why
    missing: Sequence[Wall] = ()

    @property
    def passed(self) -> bool:
        return self.why == "passed"


@dataclass(frozen=True)
class Asserts:
    """A benchmark's tests: their text, the ``names`` they take from the program, and ``given`` code they rely on."""

    text: str
    names: tuple[str, ...]
    given: str = ""


def run_cases(
    program: str,
    name: str,
    cases: Sequence[Sequence[Any]],
    *,
    limits: Limits = DEFAULT_LIMITS,
    sandbox: Sandbox | None = None,
) -> Outcome:
    """Run ``program`` and call its function ``name`` on every case ``[arguments, expected]``.

    Arguments and expected values are plain JSON values. A returned value is right if it equals the expected one in
    type and value; any value that is not exactly a JSON type, such as a tuple, is wrong.
    """
    arguments = [list(given) for given, _ in cases]
    outcome, answers = _outcome(("cases", program, name, arguments), limits, sandbox)
    if not outcome.passed:
        return outcome
    right = len(answers) == len(cases) and all(
        same(expected, answer) for (_, expected), answer in zip(cases, answers, strict=True)
    )
    return outcome if right else Outcome("wrong", outcome.missing)


def run_tests(
    program: str, tests: Asserts, *, limits: Limits = DEFAULT_LIMITS, sandbox: Sandbox | None = None
) -> Outcome:
    """Run ``program``, and the tests beside it in another process, to their end."""
    request = ("tests", program, tests.given, tests.text, list(tests.names))
    return _outcome(request, limits, sandbox)[0]


def _outcome(request: Sequence[Any], limits: Limits, sandbox: Sandbox | None) -> tuple[Outcome, list[Any]]:
    why, answers, built = (sandbox or current()).run(request, limits)
    if why == "refused":
        raise SettingsError(no_walls(built))
    return Outcome(why if why in get_args(Why) else "exit", missing(built)), answers  # type: ignore[arg-type]


def no_walls(built: list[str]) -> str:
    lacking = [WALLS[wall] for wall in NEEDED if wall in missing(built)]
    return (
        f"Model-written code cannot be isolated here; this system does not offer: {'; '.join(lacking)}. "
        "Install bubblewrap or use Linux 5.13 or later. To run it anyway, add --unsafe-sandbox."
    )


@cache
def missing_walls() -> tuple[Wall, ...]:
    """The walls that this machine does not allow, as names of :data:`soar_dlm.tasks.sandbox.walls.WALLS`."""
    return tuple(run_cases("def nothing():\n    return True\n", "nothing", [[[], True]]).missing)


def same(expected: Any, answer: Any) -> bool:
    """Equality of JSON values in which ``1``, ``1.0`` and ``true`` all differ."""
    if type(expected) is not type(answer):
        return False
    if isinstance(expected, list):
        return len(expected) == len(answer) and all(map(same, expected, answer))
    if isinstance(expected, dict):
        return expected.keys() == answer.keys() and all(same(expected[key], answer[key]) for key in expected)
    return bool(expected == answer)
