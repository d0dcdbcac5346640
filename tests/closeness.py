"""Comparing what models computed: everything but floats must be equal, floats may differ by rounding.

The last bits of a float depend on the processor's kernels, the number of threads, the shape of the batch and the
alignment of memory, so two runs of the same computation need not agree on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

ROUNDING = 1e-5
"""Absolute, and relative for sums above 1: far above what rounding in float32 does, far below what a mistake does."""


class about:  # noqa: N801 - reads as pytest.approx does
    """``found == about(expected)`` for results, traces, records and whatever else dataclasses and containers hold.

    Goes into dataclasses, mappings, lists and tuples; types, lengths, tokens and texts must be equal, floats equal up
    to ``ROUNDING``. Its representation names the places where the last comparison failed.
    """

    def __init__(self, expected: object) -> None:
        self.expected = expected
        self.differences: list[str] = []

    def __eq__(self, found: object) -> bool:
        self.differences = list(_differences(found, self.expected, ""))
        return not self.differences

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if not self.differences:
            return f"about({self.expected!r})"
        return f"something else at {len(self.differences)} places: {'; '.join(self.differences[:5])}"


def _differences(found: Any, expected: Any, place: str) -> Iterator[str]:
    if type(found) is not type(expected):
        yield f"{place} is a {type(found).__name__}, not a {type(expected).__name__}"
    elif isinstance(expected, float):
        if found != pytest.approx(expected, rel=ROUNDING, abs=ROUNDING, nan_ok=True):
            yield f"{place} is {found!r}, not about {expected!r}"
    elif is_dataclass(expected):
        for entry in fields(expected):
            pair = getattr(found, entry.name), getattr(expected, entry.name)
            yield from _differences(*pair, f"{place}.{entry.name}")
    elif isinstance(expected, Mapping) and found.keys() == expected.keys():
        for key in expected:
            yield from _differences(found[key], expected[key], f"{place}[{key!r}]")
    elif isinstance(expected, list | tuple) and len(found) == len(expected):
        for number, pair in enumerate(zip(found, expected, strict=True)):
            yield from _differences(*pair, f"{place}[{number}]")
    elif found != expected:
        yield f"{place} is {found!r}, not {expected!r}"
