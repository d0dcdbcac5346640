"""Figure 1 of the paper: accuracy over the average confidence of an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, linear_regression
from typing import Any

from soar_dlm.evals.manifest import RecordedMethod
from soar_dlm.evals.measures import average_confidence
from soar_dlm.evals.runs import Run
from soar_dlm.evals.statistics import wilson_interval
from soar_dlm.plots.figure import Picture, Row, panel
from soar_dlm.plots.parts import bars, related, trend
from soar_dlm.plots.runs import NothingToDraw, about, greedy_of, traces_of
from soar_dlm.plots.style import Theme

BINS = 6


def picture(run: Run) -> Picture:
    """Problems in 6 bins of equal width by the average confidence of greedy's answers, and the trend of all of them.

    Without greedy, those of the first method.
    """
    method = greedy_of(run) or next(iter(run.methods.values()))
    points = _points(run, method)
    rows = [*_bins(points), _trend(points)]
    caption = (
        f"Accuracy over average confidence: {BINS} bins of equal width, with 95% intervals and the number of problems "
        f"in each; the line is the trend of all problems (correlation {rows[-1]['correlation']:.2f}). "
        f"{about(run, method)}"
    )
    return Picture(caption, rows, draw)


def _points(run: Run, method: RecordedMethod) -> list[tuple[float, bool]]:
    """The average confidence of each answer that has any, and whether it is right."""
    traced = zip(traces_of(run, method), run.records[method.name], strict=True)
    found = [(average_confidence(trace, run.mark), record.correct) for trace, record in traced]
    points = [(sure, right) for sure, right in found if sure is not None]
    if len({sure for sure, _ in points}) < 2:
        raise NothingToDraw("All answers have the same average confidence, so there is nothing to compare.")
    return points


def _bins(points: Sequence[tuple[float, bool]]) -> Iterator[Row]:
    low, high = min(points)[0], max(points)[0]
    width = (high - low) / BINS
    for number in range(BINS):
        own = [one for one in points if min(int((one[0] - low) / width), BINS - 1) == number]
        right = sum(correct for _, correct in own)
        interval = wilson_interval(right, len(own))
        yield {
            "panel": "bins",
            "low": low + number * width,
            "high": low + (number + 1) * width,
            "problems": len(own),
            "right": right,
            "confidence": fmean(sure for sure, _ in own) if own else None,
            "accuracy": right / len(own) if own else None,
            "accuracy_low": interval[0] if own else None,
            "accuracy_high": interval[1] if own else None,
        }


def _trend(points: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    sure, right = [one for one, _ in points], [float(correct) for _, correct in points]
    slope, intercept = linear_regression(sure, right)
    return {"panel": "trend", "slope": slope, "intercept": intercept, "correlation": related(sure, right)}


def draw(figure: Any, rows: Sequence[Row], theme: Theme) -> None:
    axes = figure.subplots()
    bins = [row for row in panel(rows, "bins") if row["problems"]]
    places = [(row["low"] + row["high"]) / 2 for row in bins]
    width = 0.86 * (bins[0]["high"] - bins[0]["low"])
    accuracy = [100 * row["accuracy"] for row in bins]
    axes.bar(places, accuracy, width, color=theme["sky"], alpha=0.55, edgecolor=theme["blue"], linewidth=0.8)
    bars(axes, places, bins, color=theme["ink"], linestyle="none", marker="none")
    top = axes.get_xaxis_transform()
    for place, row in zip(places, bins, strict=True):
        axes.text(place, 1.02, f"n = {row['problems']:,}", transform=top, ha="center", fontsize=7.5)
    (line,) = panel(rows, "trend")
    trend(axes, line, [bins[0]["low"], bins[-1]["high"]], theme, linewidth=2)
    axes.set(xlabel="average confidence of an answer", ylabel="accuracy, %", ylim=(0, 104))
