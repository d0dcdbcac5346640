"""Figure 3 of the paper: accuracy and speed-up of all methods, and accuracy over tokens per forward with AUP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from soar_dlm.evals.curves import areas, curves
from soar_dlm.evals.manifest import GREEDY
from soar_dlm.evals.runs import Run
from soar_dlm.plots.figure import Picture, Row, panel
from soar_dlm.plots.labels import Line, Points, named
from soar_dlm.plots.parts import measured
from soar_dlm.plots.runs import NothingToDraw, about, against_greedy
from soar_dlm.plots.style import Theme

ARROWS = (
    (GREEDY, "Adaptive Parallel", "-"),
    ("PBS", "SOAR", "-"),
    ("PBS", "PBS parallel", "-"),
    (GREEDY, "PBS", "--"),
    ("Adaptive Parallel", "SOAR", "--"),
)
"""From, to, and the line: solid adds parallel decoding, dashed adds position beam search, as in the paper."""


def picture(run: Run) -> Picture:
    """Every method with its interval; the arrows of the paper where both ends are there, others from greedy.

    The settings of a sweep are a line for each beam; a legend names them.
    """
    lengths = {method.length for method in run.methods.values()}
    if len(run.methods) < 2 or len(lengths) > 1:
        raise NothingToDraw("This figure compares two or more methods that start from the same length.")
    rows = [*_points(run), *_areas(run)]
    told = "; ".join(f"{row['method']} {row['aup']:.1f}" for row in panel(rows, "aup"))
    arrows = "Solid arrows add parallel decoding, dashed ones position beam search; dotted ones lead from greedy. "
    caption = (
        "Accuracy with its 95% interval over the speed-up by wall time, and over tokens per forward. "
        f"{arrows if list(_arrows(_series(rows))) else ''}AUP: {told}. {about(run)}"
    )
    return Picture(caption, rows, draw, height=3.1)


def _points(run: Run) -> Iterator[Row]:
    curve = {method.name: name for name, own in curves(run.methods.values()).items() for method in own}
    for name, found in against_greedy(run).items():
        method = run.methods[name]
        yield {
            "panel": "methods",
            "method": method.label,
            "strategy": curve[name],
            **measured(found),
            "tokens_per_forward": found.tokens_per_forward,
            "forwards": found.forwards,
            "gained": found.gained,
            "lost": found.lost,
            "p": found.p_value,
        }


def _areas(run: Run) -> Iterator[Row]:
    """AUP of the settings of each strategy together."""
    found = areas({run.methods[name]: one for name, one in against_greedy(run).items()})
    for name, one in found.items():
        yield {"panel": "aup", "method": name, "settings": one.settings, "aup": one.aup}


def draw(figure: Any, rows: Sequence[Row], theme: Theme) -> None:
    series, panels = _series(rows), figure.subplots(1, 2, sharey=True)
    plots: list[Points] = []
    swept = any(len(own) > 1 for own in series.values())
    panels[0].set(xlabel="speed-up against greedy", ylabel="accuracy, %")
    panels[1].set(xlabel="tokens per forward")
    for axes, name in zip(panels, ("speed_up", "tokens_per_forward"), strict=True):
        lines: list[Line] = []
        for number, (label, own) in enumerate(series.items()):
            places, rates = [row[name] for row in own], [100 * row["accuracy"] for row in own]
            low, high = ([100 * row[end] for row in own] for end in ("accuracy_low", "accuracy_high"))
            look = theme.series(number)
            axes.vlines(places, low, high, linewidth=0.8, alpha=0.35, color=look["color"])
            shape = {"linewidth": 1, "markersize": 4.5} if swept else {"linestyle": "none", "markersize": 7}
            axes.plot(places, rates, label=label, **shape, **look)
        axes.margins(0.14)
        if axes is panels[0]:
            for *ends, line in _arrows(series):
                start, end = ((row[name], 100 * row["accuracy"]) for row in ends)
                lines.append((start, end))
                look = {"arrowstyle": "->", "linestyle": line, "color": theme["faint"], "lw": 1}
                axes.annotate("", end, start, arrowprops={**look, "shrinkA": 6, "shrinkB": 6})
        if not swept:
            points = [(own[0][name], 100 * own[0]["accuracy"], label) for label, own in series.items()]
            plots.append(Points(axes, points, lines))
    if not swept:
        named(figure, plots, theme["ink"])
    else:
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=5)


def _series(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The methods of each strategy, from slow to fast."""
    found: dict[str, list[Row]] = {}
    for row in sorted(panel(rows, "methods"), key=lambda row: row["forwards"], reverse=True):
        found.setdefault(row["strategy"], []).append(row)
    order = dict.fromkeys(row["strategy"] for row in panel(rows, "methods"))
    return {strategy: found[strategy] for strategy in order}


def _arrows(series: Mapping[str, Sequence[Row]]) -> Iterator[tuple[Row, Row, str]]:
    """From, to, and the line, between strategies with a single setting."""
    points = {name: own[0] for name, own in series.items() if len(own) == 1}
    reached = {GREEDY}
    for start, end, line in ARROWS:
        if start in points and end in points:
            reached.add(end)
            yield points[start], points[end], line
    for name, row in points.items():
        if GREEDY in points and name not in reached:
            yield points[GREEDY], row, ":"
