"""Figure 3 of the paper: accuracy and speed-up of all methods, and accuracy over tokens per forward with AUP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from soar_dlm.evals.aup import accuracy_under_parallelism
from soar_dlm.evals.manifest import GREEDY
from soar_dlm.evals.runs import Run
from soar_dlm.plots.figure import Picture, Row, panel
from soar_dlm.plots.labels import labelled
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
    """Every method with its interval; the arrows of the paper where both ends are there, others from greedy."""
    lengths = {method.length for method in run.methods.values()}
    if len(run.methods) < 2 or len(lengths) > 1:
        raise NothingToDraw("This figure compares two or more methods that start from the same length.")
    rows = [*_points(run), *_areas(run)]
    areas = "; ".join(f"{row['method']} {row['aup']:.1f}" for row in panel(rows, "aup"))
    caption = (
        "Accuracy with its 95% interval over the speed-up by wall time, and over tokens per forward. Solid arrows add "
        "parallel decoding, dashed ones position beam search; dotted ones lead from greedy. "
        f"AUP: {areas}. {about(run)}"
    )
    return Picture(caption, rows, draw, height=3.1)


def _points(run: Run) -> Iterator[Row]:
    for name, found in against_greedy(run).items():
        method = run.methods[name]
        yield {
            "panel": "methods",
            "method": method.label,
            "strategy": method.kind,
            **measured(found),
            "tokens_per_forward": found.tokens_per_forward,
            "forwards": found.forwards,
            "gained": found.gained,
            "lost": found.lost,
            "p": found.p_value,
        }


def _areas(run: Run) -> Iterator[Row]:
    """AUP of the settings of each strategy together."""
    found = against_greedy(run)
    best = 100 * max(one.accuracy for one in found.values())
    families: dict[str, list[str]] = {}
    for name, method in run.methods.items():
        families.setdefault(method.kind, []).append(name)
    for names in families.values():
        points = [(found[name].tokens_per_forward, 100 * found[name].accuracy) for name in names]
        label = run.methods[names[0]].label if len(names) == 1 else run.methods[names[0]].kind
        yield {"panel": "aup", "method": label, "settings": len(names), "aup": accuracy_under_parallelism(points, best)}


def draw(figure: Any, rows: Sequence[Row], theme: Theme) -> None:
    points = {row["method"]: row for row in panel(rows, "methods")}
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, name in ((left, "speed_up"), (right, "tokens_per_forward")):
        for number, row in enumerate(points.values()):
            rate = 100 * row["accuracy"]
            interval = [[rate - 100 * row["accuracy_low"]], [100 * row["accuracy_high"] - rate]]
            look = theme.series(number)
            axes.errorbar([row[name]], [rate], yerr=interval, elinewidth=0.8, alpha=0.35, color=look["color"])
            axes.plot([row[name]], [rate], linestyle="none", markersize=7, **look)
        labelled(axes, [(row[name], 100 * row["accuracy"], label) for label, row in points.items()], theme["ink"])
        axes.margins(0.14)
    for start, end, line in _arrows(points):
        ends = [(one["speed_up"], 100 * one["accuracy"]) for one in (points[start], points[end])]
        style = {"arrowstyle": "->", "linestyle": line, "color": theme["faint"], "shrinkA": 6, "shrinkB": 6, "lw": 1}
        left.annotate("", ends[1], ends[0], arrowprops=style)
    left.set(xlabel="speed-up against greedy", ylabel="accuracy, %")
    right.set(xlabel="tokens per forward")


def _arrows(points: Any) -> Iterator[tuple[str, str, str]]:
    reached = set()
    for start, end, line in ARROWS:
        if start in points and end in points:
            reached.add(end)
            yield start, end, line
    for name in points:
        if GREEDY in points and name not in reached and name != GREEDY:
            yield GREEDY, name, ":"
