"""Figure 6 of the paper: accuracy over average confidence, and over how little the order is left to right."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from soar_dlm.evals.measures import average_confidence, global_ar_ness
from soar_dlm.evals.runs import Run
from soar_dlm.plots.figure import Picture, Row
from soar_dlm.plots.labels import Points, named
from soar_dlm.plots.parts import related
from soar_dlm.plots.runs import NothingToDraw, about, against_greedy, traces_of
from soar_dlm.plots.style import Theme

FIRST = 5
"""k of Global AR-ness@k, as in the paper."""


def picture(run: Run) -> Picture:
    """One point per method."""
    if len(run.methods) < 2:
        raise NothingToDraw("A comparison of methods needs at least two.")
    rows = []
    for name, found in against_greedy(run).items():
        method = run.methods[name]
        traces = traces_of(run, method)
        sure = [one for trace in traces if (one := average_confidence(trace, run.mark)) is not None]
        order = [one for trace in traces if (one := global_ar_ness(trace, FIRST)) is not None]
        rows.append(
            {
                "method": method.label,
                "problems": found.problems,
                "accuracy": found.accuracy,
                "confidence": fmean(sure) if sure else None,
                "ar_ness": fmean(order) if order else None,
            }
        )
    told = ", ".join(
        f"{_with_accuracy(rows, name, sign):+.2f} with {what}"
        for name, sign, what in (("confidence", 1, "average confidence"), ("ar_ness", -1, "negative AR-ness"))
    )
    caption = (
        f"Accuracy over the mean average confidence of answers, and over negative Global AR-ness@{FIRST} (further "
        f"right: less left to right). Correlation over methods: {told}. {about(run)}"
    )
    return Picture(caption, rows, draw)


def _with_accuracy(rows: Sequence[Row], name: str, sign: int) -> float:
    """The correlation of a measure and accuracy."""
    known = [row for row in rows if row[name] is not None]
    return related([sign * row[name] for row in known], [row["accuracy"] for row in known])


def draw(figure: Any, rows: Sequence[Row], theme: Theme) -> None:
    left, right = figure.subplots(1, 2, sharey=True)
    plots = []
    for axes, name, sign in ((left, "confidence", 1), (right, "ar_ness", -1)):
        points = [(number, sign * row[name], row) for number, row in enumerate(rows) if row[name] is not None]
        for number, x, row in points:
            look = {"linestyle": "none", "markersize": 7, **theme.series(number)}
            axes.plot([x], [100 * row["accuracy"]], label=row["method"], **look)
        plots.append(Points(axes, [(x, 100 * row["accuracy"], row["method"]) for _, x, row in points]))
        axes.locator_params(axis="x", nbins=5)
        axes.margins(0.09)
    left.set(xlabel="average confidence", ylabel="accuracy, %")
    right.set(xlabel=f"negative Global AR-ness@{FIRST}")
    named(figure, plots, theme["ink"])
