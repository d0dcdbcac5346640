"""Figures 4 and 5 of the paper: accuracy and speed-up over the threshold, and over the beam."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from soar_dlm.evals.manifest import GREEDY, RecordedMethod
from soar_dlm.evals.measures import confidences
from soar_dlm.evals.runs import Run
from soar_dlm.plots.figure import Picture, Row, panel
from soar_dlm.plots.runs import NothingToDraw, about, against_greedy, first_of, traces_of
from soar_dlm.plots.style import Theme, bars

SEARCHED = "Soar"
POINTS = 101
"""Of the cumulative distribution."""


def threshold_picture(runs: Sequence[Run]) -> Picture:
    """Accuracy and speed-up over tau, and how sure greedy was of its tokens where a run has traces."""
    run = _swept(runs, lambda method: method.threshold)
    rows, traced = _measured(run), _traced(runs)
    caption = f"Accuracy with its 95% interval, and speed-up against greedy, over the threshold. {about(run)}"
    if traced is not None:
        sure = confidences(traces_of(traced, first_of(traced, "Greedy")), traced.mark)
        rows += _distribution(sure)
        above = float(np.mean(np.array(sure) > 0.95))
        caption = (
            f"Left: cumulative distribution of the confidence of greedy's {len(sure):,} tokens before the answer "
            f"({traced.problems:,} problems); {above:.0%} are above 0.95. Right: {caption[0].lower()}{caption[1:]}"
        )
    return Picture(f"threshold-{run.task}", caption, rows, draw_thresholds)


def beam_picture(runs: Sequence[Run]) -> Picture:
    """Accuracy and speed-up over K."""
    run = _swept(runs, lambda method: method.beam)
    caption = f"Accuracy with its 95% interval, and speed-up against greedy, over the beam size K. {about(run)}"
    return Picture(f"beam-{run.task}", caption, _measured(run), draw_beams)


def _swept(runs: Sequence[Run], over: Callable[[RecordedMethod], Any]) -> Run:
    """The first run that has SOAR with several values of a setting."""
    for run in runs:
        if len({over(method) for method in run.methods.values() if method.kind == SEARCHED}) > 1:
            return run
    raise NothingToDraw("There is no sweep of SOAR over this setting; make one with soar sweep.")


def _traced(runs: Sequence[Run]) -> Run | None:
    return next((run for run in runs if run.traced and any(one.label == GREEDY for one in run.methods.values())), None)


def _measured(run: Run) -> list[Row]:
    found = against_greedy(run)
    return [
        {
            "panel": "sweep",
            "threshold": method.threshold,
            "beam": method.beam,
            "problems": found[name].problems,
            "accuracy": found[name].accuracy,
            "accuracy_low": found[name].interval[0],
            "accuracy_high": found[name].interval[1],
            "speed_up": found[name].speed_up,
            "forwards": found[name].forwards,
        }
        for name, method in run.methods.items()
        if method.kind in (SEARCHED, "Greedy")
    ]


def _distribution(sure: Sequence[float]) -> list[Row]:
    """How many tokens have at most each confidence: enough points for the curve, ends included."""
    shares = np.linspace(0, 1, POINTS)
    values = np.quantile(np.array(sure), shares) if len(sure) else shares * np.nan
    return [
        {"panel": "tokens", "confidence": float(value), "share": float(share)}
        for value, share in zip(values, shares, strict=True)
    ]


def draw_thresholds(figure: Any, rows: Sequence[Row], theme: Theme) -> None:
    tokens = panel(rows, "tokens")
    panels = figure.subplots(1, 3 if tokens else 2)
    if tokens:
        axes = panels[0]
        axes.plot([row["confidence"] for row in tokens], [100 * row["share"] for row in tokens], color=theme["blue"])
        axes.set(xlabel="confidence of a token", ylabel="tokens at or below, %", ylim=(0, 100))
    _draw_over(figure, panels[-2:], rows, theme, ("threshold", "tau"), ("beam", "K"))


def draw_beams(figure: Any, rows: Sequence[Row], theme: Theme) -> None:
    _draw_over(figure, figure.subplots(1, 2), rows, theme, ("beam", "K"), ("threshold", "tau"))


def _draw_over(
    figure: Any, panels: Any, rows: Sequence[Row], theme: Theme, over: tuple[str, str], apart: tuple[str, str]
) -> None:
    """Accuracy and speed-up over one setting, a line for each value of the other; values are spaced evenly."""
    points = [row for row in panel(rows, "sweep") if row["threshold"] is not None]
    greedy = next((row for row in panel(rows, "sweep") if row["threshold"] is None), None)
    values = sorted({row[over[0]] for row in points})
    left, right = panels
    for number, value in enumerate(sorted({row[apart[0]] for row in points})):
        own = sorted((row for row in points if row[apart[0]] == value), key=lambda row: row[over[0]])
        places = [values.index(row[over[0]]) for row in own]
        rates = ([100 * row[name] for row in own] for name in ("accuracy", "accuracy_low", "accuracy_high"))
        bars(left, places, *rates, **theme.series(number))
        right.plot(places, [row["speed_up"] for row in own], label=f"{apart[1]} = {value:g}", **theme.series(number))
    if greedy is not None:
        left.axhline(100 * greedy["accuracy"], color=theme["faint"], linestyle=":", linewidth=1.2)
        right.axhline(1, color=theme["faint"], linestyle=":", linewidth=1.2, label="greedy")
    left.set(xlabel=over[1], ylabel="accuracy, %")
    right.set(xlabel=over[1], ylabel="speed-up against greedy")
    for axes in panels:
        axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
        axes.tick_params(axis="x", labelrotation=0 if len(values) < 5 else 30)
    figure.legend(*right.get_legend_handles_labels(), loc="outside upper center", ncols=5)
