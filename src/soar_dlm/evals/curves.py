"""The curves of a run, accuracy over tokens per forward, and the area under each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from soar_dlm.evals.aup import accuracy_under_parallelism
from soar_dlm.evals.comparison import Summary
from soar_dlm.evals.manifest import GREEDY, RecordedMethod


@dataclass(frozen=True)
class Area:
    """The AUP of a curve with this many ``settings``; ``from_greedy``: greedy's point is its slow end."""

    aup: float
    settings: int
    from_greedy: bool = False


NOTE = (
    "AUP (accuracy under parallelism) is the weighted area under accuracy over tokens per forward, all settings of a "
    "strategy together; a single setting that is faster than greedy starts at greedy's point."
)


def areas(measured: Mapping[RecordedMethod, Summary]) -> dict[str, Area]:
    """The AUP of each strategy of a run, by a name that also tells the beam where a strategy has several.

    The methods share task, length and metric.

    1. A curve has all settings of a strategy with one beam.
    2. A single setting that is faster than greedy starts at greedy's point, as methods on the leaderboard start at one
       token per forward: alone it would count in full, however much accuracy it gave up for its speed.
    3. The best accuracy is that of any of the methods.
    """
    points = {
        method: (one.tokens_per_forward, 100 * one.accuracy)
        for method, one in measured.items()
        if one.tokens_per_forward > 0
    }
    best = max((accuracy for _, accuracy in points.values()), default=0.0)
    slow = next((point for method, point in points.items() if method.label == GREEDY), None)
    found: dict[str, Area] = {}
    for name, curve in curves(points).items():
        own = [points[method] for method in curve]
        starts = len(own) == 1 and slow is not None and slow[0] < own[0][0]
        whole = [slow, *own] if starts and slow is not None else own
        found[name] = Area(accuracy_under_parallelism(whole, best), len(own), starts)
    return found


def curves(methods: Iterable[RecordedMethod]) -> dict[str, list[RecordedMethod]]:
    """The settings of each strategy, by its name, and by its beam where it has several."""
    known = list(methods)
    beams: dict[str, set[int | None]] = {}
    for method in known:
        beams.setdefault(method.strategy_name, set()).add(method.beam)
    found: dict[str, list[RecordedMethod]] = {}
    for method in known:
        name = method.strategy_name
        found.setdefault(name if len(beams[name]) == 1 else f"{name}, K = {method.beam}", []).append(method)
    return found
