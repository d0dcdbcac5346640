"""Judging by a benchmark's own asserts: right programs pass, and no trick beside the asserts makes a wrong one pass."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.attack_programs import FORGERIES
from hypothesis import given
from hypothesis import strategies as st

from soar_dlm.errors import InputFileError
from soar_dlm.tasks.execution import Asserts, run_tests
from soar_dlm.tasks.sandbox.values import NotPlain, pack, unpack
from soar_dlm.tasks.unit_tests import all_pass_tests, asserts_of_function, asserts_of_program

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.complex_numbers(allow_nan=False)
    | st.text(max_size=5) | st.binary(max_size=5) | st.decimals(allow_nan=False) | st.fractions(),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple)
    | st.dictionaries(st.text(max_size=3), inner, max_size=3) | st.sets(st.integers(), max_size=3)
    | st.frozensets(st.text(max_size=3), max_size=3),
    max_leaves=8,
)  # fmt: skip
CLOSE = Asserts("def check(add):\n    assert abs(add(1, 2) - 3) < 1e-6\ncheck(add)", ("add",))
EQUAL = Asserts(
    "import math\nassert add(1, 2) == 3\nassert math.isclose(add(2, 2), 4)\nassert add(0, 0) in [0]", ("add",)
)
TRUE = Asserts("assert add(1, 2)\nassert not add(0, 0)\nassert add(1, 1) != 3", ("add",))


@pytest.mark.parametrize("name", FORGERIES)
def test_a_wrong_program_cannot_get_around_its_tests(name: str) -> None:
    assert all_pass_tests([FORGERIES[name]] * 3, [CLOSE, EQUAL, TRUE]) == [False] * 3


def test_a_right_program_passes_the_same_tests() -> None:
    assert all_pass_tests(["def add(a, b): return a + b"] * 3, [CLOSE, EQUAL, TRUE]) == [True] * 3


def passes(program: str, tests: str, *names: str, given: str = "") -> bool:
    return run_tests(program, Asserts(tests, names or ("f",), given)).passed


@pytest.mark.parametrize(
    ("program", "tests"),
    [
        ("from collections import Counter\ndef f(x): return Counter(x)", "assert f('aab') == {'a': 2, 'b': 1}"),
        ("from collections import namedtuple as n\nP = n('P', 'x y')\ndef f(): return P(1, 2)", "assert f() == (1, 2)"),
        ("from fractions import Fraction\ndef f(): return Fraction(1, 2)", "assert f() == 0.5"),
        ("from decimal import Decimal\ndef f(): return Decimal('2.50')", "assert f() == 2.5"),
        ("def f(n):\n    for i in range(n): yield i", "assert list(f(3)) == [0, 1, 2]"),
        ("f = lambda *a, **k: (a, k)", "assert f(1, b={2}) == ((1,), {'b': {2}})"),
        ("def f(x): return map(str, x)", "assert sorted(f({2, 1})) == ['1', '2']"),
        ("def f(x): return x.sort()", "x = [2, 1]\nassert f(x) is None\nassert x == [1, 2]"),
        ("def f(x): x['a'] = 1", "x = {}\nf(x)\nassert x == {'a': 1}"),
        ("def f(x, *, y): y.append(x)", "y = []\nf(1, y=y)\nassert y == [1]"),
        ("def f(x): return x.decode()", "try:\n    f(b'\\xff')\n    assert False\nexcept ValueError:\n    pass"),
        ("def f(x): raise KeyError(x)", "try:\n    f(1)\n    assert False\nexcept KeyError:\n    pass"),
        ("import re\ndef f(x): return re.match('a', x)", "assert f('ab').group() == 'a'\nassert f('b') is None"),
        ("def f(): return 1 + 2j, float('nan'), b'x'", "a = f()\nassert a[0] == 1 + 2j and a[1] != a[1]"),
        ("def f(n): return 10 ** n", "assert f(5000) == 10 ** 5000"),
        ("def f(): return 'é€𝄞\\ud800'", "assert f() == 'é€𝄞\\ud800'"),
        ("import numpy\ndef f(x): return numpy.sum(x)", "assert f([1, 2]) == 3"),
        ("def f(x): print(x); return x", "print(1)\nassert f(1) == 1"),
        ("class Node:\n    def __init__(self, x): self.x, self.next = x, None\n"
         "def f(node): return node.x + node.next.x", "a = Node(1)\na.next = Node(2)\nassert f(a) == 3"),
    ],
)  # fmt: skip
def test_right_programs_pass_whatever_their_values_are(program: str, tests: str) -> None:
    names = ("Node", "f") if "Node" in tests else ("f",)
    assert passes(program, tests, *names)
    assert not passes(program.replace("return", "return None and"), tests + "\nassert f is None", *names)


def test_the_program_never_holds_what_is_expected() -> None:
    program = "import gc\ndef f():\n    return ''.join(['wax', 'wing']) in repr(gc.get_objects())\n"
    assert passes(program, "assert f() == False, 'so many as waxwing'")


def test_helpers_of_the_prompt_are_not_the_models() -> None:
    prompt = "import math\ndef helper(x):\n    return math.floor(x)\n\ndef f(x):\n    '''Doc.'''\n"
    tests = asserts_of_function("def check(candidate):\n    assert candidate(2) == helper(3.5)\ncheck(f)", prompt)
    assert tests.names == ("f",)
    assert run_tests(f"{prompt}    return 3\n", tests).passed
    assert not run_tests(f"{prompt}    return 9\nhelper = lambda x: 9\n", tests).passed


def test_tests_that_are_not_python_are_a_fault_of_the_benchmarks_files() -> None:
    with pytest.raises(InputFileError, match="Get its files again"):
        asserts_of_program("assert f(1 == 2", "def f(x):\n    return x\n")


def test_a_function_that_is_named_like_a_builtin_is_the_programs() -> None:
    tests = asserts_of_program("assert sum(10, 15) == 6\nassert abs(-1) == 1", "def sum(a, b):\n    return 6\n")
    assert tests.names == ("sum",)
    assert run_tests("def sum(a, b): return 6\n", tests).passed
    assert not run_tests("def sum(a, b): return 7\n", tests).passed


@given(PLAIN)
def test_plain_values_cross_unchanged(value: object) -> None:
    assert alike(unpack(pack(value)), value)


def alike(left: Any, right: Any) -> bool:
    """The same types and values all the way down; the items of a set come in any order."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return alike(list(left.items()), list(right.items()))
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(alike, left, right))
    return bool(left == right) if isinstance(left, (set, frozenset)) else repr(left) == repr(right)


@given(st.binary(max_size=40) | st.text("NTFifcsbltSZdrqx:0123456789abx", max_size=30).map(str.encode))
def test_bytes_of_any_kind_are_a_plain_value_or_refused(data: bytes) -> None:
    try:
        value = unpack(data)
    except NotPlain:
        return
    assert unpack(pack(value)) == value or value != value
