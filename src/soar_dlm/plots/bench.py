"""Tokens per second, and the speed-up, over what a benchmark varied."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from soar_dlm.bench.race import Measured
from soar_dlm.bench.report import Report
from soar_dlm.errors import SettingsError
from soar_dlm.plots.figure import Picture, Row
from soar_dlm.plots.style import HEIGHT, Theme

AXES = {
    "prompt": "length of the prompt",
    "canvas": "length of the canvas",
    "requests": "requests decoded together",
    "beam": "beam size K",
}
"""What can be varied, in words."""


def bench_picture(report: Report) -> Picture:
    """A curve for each entrant, with the least and the greatest of its rounds."""
    if report.over is None:
        raise SettingsError(
            "A figure shows curves over something that varies; add --over, such as --over prompt=128,512."
        )
    caption = _caption(
        report.over,
        report.against if len({one.name for one in report.lanes}) > 1 else None,
        len(report.lanes[0].seconds),
        f"{report.settings['model']}: {report.about.partition(', ')[2]}. {report.machine}.",
    )
    return Picture(caption, [_row(report, one) for one in report.lanes], draw, height=HEIGHT)


def _caption(over: str, against: str | None, rounds: int, about: str) -> str:
    """What is drawn; ``against`` is None where there is nothing to compare with."""
    compared = "" if against is None else f", and the speed-up against {against} in the same round"
    taken = f"medians of {rounds} rounds, with the least and the greatest" if rounds > 1 else "one round"
    return f"Tokens per second over the {AXES[over]}{compared}: {taken}. {about}"


def _row(report: Report, one: Measured) -> Row:
    return {
        "panel": report.over,
        "method": one.name,
        "value": one.lane.value,
        **_ends("tokens_per_second", [one.tokens / seconds for seconds in one.seconds]),
        **_ends("speed_up", report.speed_ups(one)),
        "tokens_per_forward": one.tokens_per_forward,
        "forwards": one.forwards,
        "peak_bytes": one.peak,
    }


def _ends(name: str, values: Sequence[float]) -> dict[str, float]:
    return {name: median(values), f"{name}_low": min(values), f"{name}_high": max(values)}


def draw(figure: Any, rows: Sequence[Row], theme: Theme) -> None:
    """Values are spaced evenly. One entrant alone has no speed-up to show."""
    values = sorted({row["value"] for row in rows})
    methods = list(dict.fromkeys(row["method"] for row in rows))
    names = ("tokens_per_second", "speed_up") if len(methods) > 1 else ("tokens_per_second",)
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        for number, method in enumerate(methods):
            own = sorted((row for row in rows if row["method"] == method), key=lambda row: row["value"])
            places = [values.index(row["value"]) for row in own]
            middles, lows, highs = ([row[f"{name}{end}"] for row in own] for end in ("", "_low", "_high"))
            below = [middle - low for middle, low in zip(middles, lows, strict=True)]
            above = [high - middle for middle, high in zip(middles, highs, strict=True)]
            look = theme.series(number)
            axes.errorbar(places, middles, yerr=[below, above], capsize=2.5, elinewidth=1, label=method, **look)
        axes.set_xticks(range(len(values)), [str(value) for value in values])
        axes.set(xlabel=AXES[rows[0]["panel"]], ylabel=name.replace("_", " ").replace("speed up", "speed-up"))
        axes.set_ylim(bottom=0)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
