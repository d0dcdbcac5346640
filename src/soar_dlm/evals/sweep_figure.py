"""A sweep as a picture: accuracy and speed-up over thresholds (the paper's Figure 4) and beams (Figure 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from soar_dlm import files
from soar_dlm.errors import MissingExtra, SettingsError
from soar_dlm.evals.comparison import Summary
from soar_dlm.evals.sweeps import Setting

FORMATS = (".svg", ".png", ".pdf")
COLOURS = ("#2f6fde", "#2e9d63", "#d9822b", "#8452c9", "#c2385a", "#5b6b7b")


def check_drawable(path: Path) -> None:
    """Refuse a path that cannot be drawn to, before the sweep starts."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtra("matplotlib", "plots", "Drawing a sweep") from error
    if path.suffix.lower() not in FORMATS:
        raise SettingsError(f"The name of a figure ends in {', '.join(FORMATS)}, unlike {path.name!r}.")
    if not path.parent.is_dir():
        raise SettingsError(f"There is no folder {str(path.parent)!r} for the figure.")


def draw_sweep(measured: Mapping[Setting, Summary], title: str, path: Path) -> None:
    """Accuracy with its interval, and speed-up: a row of two plots for each setting that varies.

    Over thresholds there is a line for each beam, over beams one for each threshold. Values are spaced evenly, because
    thresholds near 1 would overlap.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    thresholds = sorted({point.threshold for point in measured})
    beams = sorted({point.beam for point in measured})
    rows: list[tuple[str, Callable[[Setting], float], Callable[[Setting], str]]] = []
    if len(thresholds) > 1 or len(beams) == 1:
        rows.append(("threshold", lambda point: point.threshold, lambda point: f"K = {point.beam}"))
    if len(beams) > 1:
        rows.append(("beam size", lambda point: point.beam, lambda point: f"tau = {point.threshold:g}"))
    figure = Figure(figsize=(9, 3.1 * len(rows)), layout="constrained")
    figure.suptitle(title, fontsize=11, parse_math=False)
    for (name, over, line), (left, right) in zip(rows, figure.subplots(len(rows), 2, squeeze=False), strict=True):
        values = sorted({over(point) for point in measured})
        lines: dict[str, list[Setting]] = {}
        for point in sorted(measured, key=over):
            lines.setdefault(line(point), []).append(point)
        for number, (label, points) in enumerate(sorted(lines.items())):
            places = [values.index(over(point)) for point in points]
            _draw_line(
                left, right, places, [measured[point] for point in points], label, COLOURS[number % len(COLOURS)]
            )
        left.set(xlabel=name, ylabel="accuracy, %")
        right.set(xlabel=name, ylabel="speed-up against greedy")
        for axes in (left, right):
            axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(alpha=0.25)
        right.legend(frameon=False, fontsize=8)
    with rc_context({"svg.hashsalt": title}):  # the same sweep draws the same file
        kind = path.suffix.lower().removeprefix(".")
        with files.replacing(path) as fresh:
            figure.savefig(fresh, format=kind, metadata={"Date": None} if kind == "svg" else None)


def _draw_line(left: Any, right: Any, places: Sequence[int], found: Sequence[Summary], label: str, colour: str) -> None:
    accuracy = [100 * one.accuracy for one in found]
    below = [100 * (one.accuracy - one.interval[0]) for one in found]
    above = [100 * (one.interval[1] - one.accuracy) for one in found]
    left.errorbar(places, accuracy, yerr=[below, above], color=colour, marker="o", markersize=4, capsize=3, label=label)
    right.plot(places, [one.speed_up for one in found], color=colour, marker="o", markersize=4, label=label)
