"""A trace as columns of whole numbers: what deflates to a few hundred bytes, and all that the page cannot derive."""

from __future__ import annotations

from typing import Any

from soar_dlm.engine.packing import MODES
from soar_dlm.engine.trace import Trace

SCALE = 10_000
"""What confidences, ranks and verdicts are multiplied by to be whole numbers: four decimals are kept."""


def columns(trace: Trace) -> list[Any]:
    """The steps of a trace; ``report.js`` turns them back into what :meth:`Trace.to_json` has.

    1. For each step: its forwards, the place of its best entry, how many entries it has.
    2. For each entry: its mode, the steps since its parent, its origin, whether masks are left, its rank, how many
       positions it changed.
    3. For each position: itself, its token, its confidence.
    4. What few traces have: sizes for each position, then dives and verdicts for each entry. A column is 0 if it says
       nothing: all sizes 1, all dives 0, no verdict.
    """
    entries = [(entry, record.step) for record in trace for entry in record.beam]
    sizes = [size for entry, _ in entries for size in entry.sizes]
    dives = [entry.dive for entry, _ in entries]
    verdicts = [None if entry.verdict is None else _whole(entry.verdict) for entry, _ in entries]
    return [
        [record.forwards for record in trace],
        [record.best for record in trace],
        [len(record.beam) for record in trace],
        [MODES.index(entry.mode) for entry, _ in entries],
        [step - entry.after for entry, step in entries],
        [entry.origin for entry, _ in entries],
        [int(entry.left > 0) for entry, _ in entries],
        [_whole(entry.rank) for entry, _ in entries],
        [len(entry.positions) for entry, _ in entries],
        [at for entry, _ in entries for at in entry.positions],
        [token for entry, _ in entries for token in entry.tokens],
        [_whole(sure) for entry, _ in entries for sure in entry.confidence],
        sizes if any(size != 1 for size in sizes) else 0,
        dives if any(dives) else 0,
        verdicts if any(verdict is not None for verdict in verdicts) else 0,
    ]


def _whole(value: float) -> int:
    return round(value * SCALE)
