"""Parts that several figures have: columns of their data, correlations, rates with intervals, trends."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import correlation
from typing import Any

from soar_dlm.evals.comparison import Summary
from soar_dlm.plots.figure import Row
from soar_dlm.plots.style import Theme

RATE = ("accuracy", "accuracy_low", "accuracy_high")
"""Columns of a rate from 0 to 1 and the ends of its interval."""


def measured(found: Summary) -> Row:
    """What was measured of a method, as columns."""
    return {
        "problems": found.problems,
        **dict(zip(RATE, (found.accuracy, *found.interval), strict=True)),
        "speed_up": found.speed_up,
    }


def related(first: Sequence[float], second: Sequence[float]) -> float:
    """The correlation of two columns; 0 if one of them does not vary."""
    return correlation(first, second) if min(len(set(first)), len(set(second))) > 1 else 0.0


def bars(axes: Any, places: Sequence[float], rows: Sequence[Row], columns: Sequence[str] = RATE, **look: Any) -> None:
    """Rates in percent with their intervals."""
    rates, lows, highs = ([100 * row[name] for row in rows] for name in columns)
    below = [rate - low for rate, low in zip(rates, lows, strict=True)]
    above = [high - rate for rate, high in zip(rates, highs, strict=True)]
    axes.errorbar(places, rates, yerr=[below, above], capsize=2.5, elinewidth=1, **look)


def trend(axes: Any, row: Row, ends: Sequence[float], theme: Theme, **look: Any) -> None:
    """The line with the slope and the intercept of a row, from one end to the other, in percent from 0 to 100."""
    line = [100 * min(max(row["intercept"] + row["slope"] * x, 0), 1) for x in ends]
    axes.plot(ends, line, color=theme["red"], **look)
