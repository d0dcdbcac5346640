"""Where the decisions of a case come from: hypothesis, which looks for corners, or a seeded random generator."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from hypothesis import strategies as st

T = TypeVar("T")


class Broken:
    """An object whose every question ends in an error."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __len__(self) -> int:
        raise RuntimeError("no len")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no eq")

    def __hash__(self) -> int:
        raise RuntimeError("no hash")


def deep(levels: int = 5000) -> list[Any]:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


STRANGE: tuple[Callable[[], Any], ...] = tuple(
    (lambda value=value: value)
    for value in (
        *(None, True, False, 0, 1, -1, 2, 7, 263, 264, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30, -(10**30)),
        *(10**5000, 0.0, -0.0, 0.5, 1.0, 1.5, -0.1, 1e-46, 5e-324, 1e-30, 1e30, 1e308, float("nan"), float("inf")),
        *(float("-inf"), 3 + 4j, "", "x", "soar", "probability", "llada", "open", "0", "nan", "\ud800", "\0", "[/x]"),
        *("a" * 100_000, "{blank}", "{blank:999999999}", "é\u2028\r\n", b"", b"bytes", bytearray(b"x"), "../x", "/"),
        *([], [[]], [None], [0], ["x"], [2**64], [-1], [True], [1.5], [[1], [2, 3]], (), {}, {"a": 1}, {1: 2}, set()),
        *({"role": "user", "content": "x"}, [{"role": "user", "content": "x"}], [{"role": 1, "content": []}]),
        *({"strategy": "soar"}, {"strategy": []}, {"strategy": "soar", 5: 1}, {"strategy": "greedy", "name": 1}),
        *(np.int64(2), np.float32(0.5), np.float64("nan"), np.bool_(True), np.array(3), np.array([1, 2]), np.uint64(5)),
        *(np.array(["a"]), np.array([1.5]), np.zeros((2, 2)), torch.tensor(1), torch.tensor([1, 2]), torch.float16),
        *(range(3), range(10**12), object(), object, len, Exception("x"), Broken(), deep()),
    )
) + (lambda: iter([]), lambda: iter([1]), lambda: (one for one in ["a", 5]))

JSON_STRANGE: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 264, 2**31, 2**64, 10**9, 10**12, 10**30, 0.5, -0.5, 1.5, 1e-46, 1e308),
    *("", "x", "llada", "Dream", "bert", "../x", "evil.bin", "\ud800", "NaN", "a" * 10_000, "[/x]", "auto", "float32"),
    *([], [0], ["x"], [None], [[]], {}, {"a": 1}, {"": None}, {"x": {"y": []}}),
)


class Chooser(Protocol):
    """Decides what a case is made of."""

    def pick(self, options: Sequence[T]) -> T: ...
    def value(self) -> Any: ...
    def number(self, low: int, high: int) -> int: ...


class Seeded:
    """Decisions of a seeded generator, values from the list of strange ones."""

    def __init__(self, seed: str) -> None:
        self._rng = random.Random(seed)

    def pick(self, options: Sequence[T]) -> T:
        return self._rng.choice(options)

    def value(self) -> Any:
        return self.pick(STRANGE)()

    def number(self, low: int, high: int) -> int:
        return self._rng.randint(low, high)


def _strange(place: int) -> Any:
    return STRANGE[place]()


_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=20)
    | st.integers(0, len(STRANGE) - 1).map(_strange)
)
ANYTHING = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


class Drawn:
    """Decisions of hypothesis."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def pick(self, options: Sequence[T]) -> T:
        return options[self.number(0, len(options) - 1)]  # sampled_from would ask for the repr of every option

    def value(self) -> Any:
        return self._data.draw(ANYTHING)

    def number(self, low: int, high: int) -> int:
        return int(self._data.draw(st.integers(low, high)))
