"""A figure of the paper's appendix: the share of search and parallel mode as decoding progresses."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import linear_regression
from typing import Any

from soar_dlm.evals.measures import mode_shares
from soar_dlm.evals.runs import Run
from soar_dlm.plots.figure import Picture, Row, panel
from soar_dlm.plots.parts import trend
from soar_dlm.plots.runs import NothingToDraw, about, first_of, traces_of
from soar_dlm.plots.style import Theme

BINS = 20


def picture(run: Run) -> Picture:
    """Tokens committed by SOAR in 20 stretches of decoding, by mode, with the trend."""
    method = first_of(run, "Soar", "AdaptiveParallel", "Deliberate")
    shares = mode_shares(traces_of(run, method), BINS, run.mark)
    rows: list[Row] = [
        {
            "panel": "bins",
            "low": one.low,
            "high": one.high,
            "search": one.search,
            "parallel": one.parallel,
            "parallel_share": one.parallel_share,
        }
        for one in shares
    ]
    known = [(100 * (one.low + one.high) / 2, one.parallel_share) for one in shares if one.parallel_share is not None]
    if len(known) < 2:
        raise NothingToDraw("Modes over progress need answers that took at least two steps.")
    slope, intercept = linear_regression(*zip(*known, strict=True))
    rows.append({"panel": "trend", "slope": slope, "intercept": intercept})
    caption = (
        f"Tokens committed by each mode over the progress of decoding, in {BINS} bins, and the trend of the parallel "
        f"share, {100 * slope:+.2f} points per percent of progress. {about(run, method)}"
    )
    return Picture(caption, rows, draw)


def draw(figure: Any, rows: Sequence[Row], theme: Theme) -> None:
    axes = figure.subplots()
    bins = [row for row in panel(rows, "bins") if row["search"] + row["parallel"]]
    places = [50 * (row["low"] + row["high"]) for row in bins]
    parallel = [100 * row["parallel_share"] for row in bins]
    look = {"width": 100 / BINS * 0.88, "linewidth": 0}
    axes.bar(places, parallel, color=theme["grey"], label="parallel", **look)
    axes.bar(
        places,
        [100 - one for one in parallel],
        bottom=parallel,
        color=theme["green"],
        label="search",
        hatch="///",
        **look,
    )
    (line,) = panel(rows, "trend")
    trend(axes, line, [0, 100], theme, linewidth=2.2, label="trend")
    axes.set(xlabel="progress of decoding, % of steps", ylabel="share of tokens, %", xlim=(0, 100), ylim=(0, 100))
    figure.legend(loc="outside upper center", ncols=3)
