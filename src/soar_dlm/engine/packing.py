"""The steps of a trace in few bytes, for thousands of traces in one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from soar_dlm.errors import InputFileError
from soar_dlm.search.candidate import Mode

FORMAT = 1
DIGITS = 6
"""How many decimals of confidences, ranks and verdicts are kept."""

MODES: tuple[str, ...] = get_args(Mode)
_DEFAULTS: tuple[Any, ...] = (0, 0, None)
"""Sizes, dive and verdict of an entry that leaves them out."""


def packed_steps(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Steps as :meth:`Trace.to_json` has them, as lists without names.

    A step is [forwards, best, entry, ...]. An entry is [mode, steps since its parent, origin, positions, tokens,
    confidence, rank, left, sizes, dive, verdict]; a mode is its place in :data:`MODES`, sizes are 0 if all of them are
    1, and values at the end that are 0 or null are left out.
    """
    return {"format": FORMAT, "steps": [_packed_step(step) for step in steps]}


def unpacked(packed: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The steps that :func:`packed_steps` packed."""
    if packed["format"] != FORMAT:
        raise InputFileError(f"its format is {packed['format']!r}, and this version reads {FORMAT}; upgrade soar-dlm")
    for number, (forwards, best, *beam) in enumerate(packed["steps"], start=1):
        entries = [_entry(values, number) for values in beam]
        yield {"step": number, "forwards": forwards, "beam": entries, "best": best}


def _packed_step(step: Mapping[str, Any]) -> list[Any]:
    return [step["forwards"], step["best"], *(_packed_entry(entry, step["step"]) for entry in step["beam"])]


def _packed_entry(entry: Mapping[str, Any], step: int) -> list[Any]:
    verdict = entry["verdict"]
    rest = [
        0 if all(size == 1 for size in entry["sizes"]) else entry["sizes"],
        entry["dive"],
        verdict if verdict is None else round(verdict, DIGITS),
    ]
    while rest and rest[-1] == _DEFAULTS[len(rest) - 1]:
        rest.pop()
    return [
        MODES.index(entry["mode"]),
        step - entry["after"],
        entry["origin"],
        entry["positions"],
        entry["tokens"],
        [round(one, DIGITS) for one in entry["confidence"]],
        round(entry["rank"], DIGITS),
        entry["left"],
        *rest,
    ]


def _entry(values: Sequence[Any], step: int) -> dict[str, Any]:
    mode, back, origin, positions, tokens, confidence, rank, left, *rest = values
    sizes, dive, verdict = [*rest, *_DEFAULTS[len(rest) :]]
    return {
        "mode": MODES[mode],
        "after": step - back,
        "origin": origin,
        "positions": positions,
        "tokens": tokens,
        "confidence": confidence,
        "rank": rank,
        "left": left,
        "sizes": [1] * len(positions) if sizes == 0 else sizes,
        "dive": dive,
        "verdict": verdict,
    }
