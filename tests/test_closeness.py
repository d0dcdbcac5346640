from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from soar_dlm.engine.trace import BeamEntry, StepRecord, Trace
from tests.closeness import about

ENTRY = BeamEntry("search", 0, (3,), (7,), (0.25,), rank=0.25, left=1, sizes=(1,))


def trace(entry: BeamEntry) -> Trace:
    return Trace((StepRecord(1, 1, (entry,)),))


def test_rounding_is_no_difference() -> None:
    rounded = replace(ENTRY, confidence=(0.25000021,), rank=0.24999979)
    assert trace(rounded) == about(trace(ENTRY))
    assert trace(rounded) != trace(ENTRY)
    assert {"a": [0.1, 50.0, float("nan")]} == about({"a": [0.1 + 1e-7, 50.0001, float("nan")]})


@pytest.mark.parametrize(
    "changed", [{"tokens": (8,)}, {"positions": (3, 4)}, {"mode": "kept"}, {"left": True}, {"confidence": (0.2501,)}]
)
def test_everything_else_is_a_difference_and_its_place_is_named(changed: dict[str, Any]) -> None:
    expected = about(trace(ENTRY))
    assert trace(replace(ENTRY, **changed)) != expected
    assert f".steps[0].beam[0].{next(iter(changed))}" in repr(expected)


@pytest.mark.parametrize(("found", "expected"), [([1.0], [1.0, 2.0]), ({"a": 1.0}, {"b": 1.0}), (1, 1.0), ("a", "b")])
def test_other_shapes_and_types_are_differences(found: object, expected: object) -> None:
    assert found != about(expected)
