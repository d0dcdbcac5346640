"""Figures 4 and 5 of the paper: accuracy and speed-up over the threshold, and over the beam."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from soar_dlm.evals.manifest import GREEDY
from soar_dlm.evals.measures import confidences
from soar_dlm.evals.runs import Run
from soar_dlm.plots.figure import Picture, Row, panel
from soar_dlm.plots.parts import bars, measured
from soar_dlm.plots.runs import NothingToDraw, about, against_greedy, greedy_of, traces_of
from soar_dlm.plots.style import HEIGHT, Theme

SEARCHED = "Soar"
THRESHOLD, BEAM = "threshold", "beam"
SIGNS = {THRESHOLD: "tau", BEAM: "K"}
WORDS = {THRESHOLD: "the threshold", BEAM: "the beam size K"}
POINTS = 101
"""Of the cumulative distribution."""
SHIFT = 0.07
"""How far apart the intervals of two lines are, so that they can be told apart; the values are 1 apart."""


def threshold_picture(runs: Sequence[Run]) -> Picture:
    """Accuracy and speed-up over tau, and how sure greedy was of its tokens where a run has traces."""
    run = _swept(runs, THRESHOLD)
    rows, caption, found = _measured(run), _caption(run, THRESHOLD), _greedy_tokens(runs)
    if found is not None:
        traced, sure = found
        rows += _distribution(sure)
        above = float(np.mean(np.array(sure) > 0.95))
        where = "" if traced.mark is None else " before the answer"
        caption = (
            f"Left: cumulative distribution of the confidence of greedy's {len(sure):,} tokens{where} "
            f"({traced.problems:,} problems); {above:.0%} are above 0.95. Right: {caption[0].lower()}{caption[1:]}"
        )
    return Picture(caption, rows, draw_threshold)


def beam_picture(runs: Sequence[Run]) -> Picture:
    """Accuracy and speed-up over K."""
    run = _swept(runs, BEAM)
    return Picture(_caption(run, BEAM), _measured(run), draw_beam)


def sweep_picture(run: Run) -> Picture:
    """Accuracy and speed-up of one sweep: a row of panels for each setting that varies, over tau if neither does."""
    rows = _measured(run)
    over = _varying(rows)
    return Picture(_caption(run, *over), rows, draw_sweep, height=HEIGHT * len(over))


def _caption(run: Run, *over: str) -> str:
    settings = " and over ".join(WORDS[setting] for setting in over)
    return f"Accuracy with its 95% interval, and speed-up against greedy, over {settings}. {about(run)}"


def _swept(runs: Sequence[Run], setting: str) -> Run:
    """The first run that has SOAR with several values of a setting."""
    for run in runs:
        if len({getattr(method, setting) for method in run.methods.values() if method.kind == SEARCHED}) > 1:
            return run
    raise NothingToDraw("There is no sweep of SOAR over this setting; make one with soar sweep.")


def _measured(run: Run) -> list[Row]:
    found = against_greedy(run)
    return [
        {
            "panel": "sweep",
            "threshold": method.threshold,
            "beam": method.beam,
            **measured(found[name]),
            "forwards": found[name].forwards,
        }
        for name, method in run.methods.items()
        if method.kind == SEARCHED or method.label == GREEDY
    ]


def _greedy_tokens(runs: Sequence[Run]) -> tuple[Run, list[float]] | None:
    """The first run that has traces of greedy, and how sure that was of its tokens."""
    for run in runs:
        greedy = greedy_of(run)
        if run.traced and greedy is not None and (sure := confidences(traces_of(run, greedy), run.mark)):
            return run, sure
    return None


def _distribution(sure: Sequence[float]) -> list[Row]:
    """How many tokens have at most each confidence: enough points for the curve, ends included."""
    shares = np.linspace(0, 1, POINTS)
    values = np.quantile(np.array(sure), shares)
    return [
        {"panel": "tokens", "confidence": float(value), "share": float(share)}
        for value, share in zip(values, shares, strict=True)
    ]


def draw_threshold(figure: Any, rows: Sequence[Row], theme: Theme) -> None:
    tokens = panel(rows, "tokens")
    panels = figure.subplots(1, 3 if tokens else 2)
    if tokens:
        axes = panels[0]
        axes.plot([row["confidence"] for row in tokens], [100 * row["share"] for row in tokens], color=theme["blue"])
        axes.set(xlabel="confidence of a token", ylabel="tokens at or below, %", ylim=(0, 100))
    _draw_over(THRESHOLD, figure, panels[-2:], rows, theme)


def draw_beam(figure: Any, rows: Sequence[Row], theme: Theme) -> None:
    _draw_over(BEAM, figure, figure.subplots(1, 2), rows, theme)


def draw_sweep(figure: Any, rows: Sequence[Row], theme: Theme) -> None:
    over = _varying(rows)
    for part, setting in zip(figure.subfigures(len(over), 1, squeeze=False)[:, 0], over, strict=True):
        _draw_over(setting, part, part.subplots(1, 2), rows, theme)


def _points(rows: Sequence[Row]) -> list[Row]:
    return [row for row in panel(rows, "sweep") if row["threshold"] is not None]


def _varying(rows: Sequence[Row]) -> list[str]:
    """The settings that a figure of a sweep is over."""
    points = _points(rows)
    return [setting for setting in SIGNS if len({row[setting] for row in points}) > 1] or [THRESHOLD]


def _draw_over(setting: str, figure: Any, panels: Any, rows: Sequence[Row], theme: Theme) -> None:
    """Accuracy and speed-up over one setting, a line for each value of the other; values are spaced evenly."""
    points, apart = _points(rows), BEAM if setting == THRESHOLD else THRESHOLD
    greedy = next((row for row in panel(rows, "sweep") if row["threshold"] is None), None)
    values = sorted({row[setting] for row in points})
    left, right = panels
    lines = sorted({row[apart] for row in points})
    for number, value in enumerate(lines):
        own = sorted((row for row in points if row[apart] == value), key=lambda row: row[setting])
        places = [values.index(row[setting]) for row in own]
        aside = SHIFT * (number - (len(lines) - 1) / 2)
        bars(left, [place + aside for place in places], own, **theme.series(number))
        right.plot(
            places, [row["speed_up"] for row in own], label=f"{SIGNS[apart]} = {value:g}", **theme.series(number)
        )
    if greedy is not None:
        left.axhline(100 * greedy["accuracy"], color=theme["faint"], linestyle=":", linewidth=1.2)
        right.axhline(1, color=theme["faint"], linestyle=":", linewidth=1.2, label="greedy")
    left.set(xlabel=SIGNS[setting], ylabel="accuracy, %")
    right.set(xlabel=SIGNS[setting], ylabel="speed-up against greedy")
    for axes in panels:
        axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
        axes.tick_params(axis="x", labelrotation=0 if len(values) < 5 else 30)
    figure.legend(*right.get_legend_handles_labels(), loc="outside upper center", ncols=5)
