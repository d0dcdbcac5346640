"""A task as a picture: accuracy over forwards and over seconds, with the front of what nothing else beats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.arena.compact import TaskResult
from benchmarks.arena.entrants import BASELINE, DELIBERATE, SOAR_2, parts_of
from benchmarks.arena.files import replacing
from soar_dlm.errors import MissingExtra
from soar_dlm.plots.labels import Box, placed

INK, GRID, FRONT = "#1f2933", "#d9dfe5", "#1f2933"
COLOURS = ("#5b6b7b", "#2f6fde", "#2e9d63", "#8452c9", "#d9822b", "#b5651d", "#c79a00", "#0f8b8d")
MARKERS = ("o", "s")
BOLD = "#c2385a"
"""The colour of Deliberate, which this library adds."""
LABEL, FAINT = 7.5, 0.4
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)


@dataclass(frozen=True)
class Point:
    """A method by its cost and its accuracy in percent."""

    name: str
    cost: float
    accuracy: float


def front(points: Sequence[Point]) -> list[Point]:
    """The points that no other beats: none costs as little and is more accurate, or is as accurate and costs less."""
    found: list[Point] = []
    for point in sorted(points, key=lambda one: (one.cost, -one.accuracy)):
        if not found or point.accuracy > found[-1].accuracy:
            found.append(point)
    return found


def points_of(result: TaskResult) -> tuple[list[Point], list[Point]]:
    """All methods by forwards per problem, and those that ran on greedy's machine by seconds per problem."""
    names = [name for own in result.finished.values() for name in own]
    found = {name: result.against(name, BASELINE) for name in names}
    return (
        [Point(name, one.forwards, 100 * one.accuracy) for name, one in found.items()],
        [
            Point(name, one.seconds / one.problems, 100 * one.accuracy)
            for name, one in found.items()
            if result.timed_with_greedy(name)
        ],
    )


def check_drawable() -> None:
    """Refuse before a long run what would fail after it."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtra("matplotlib", "plots", "Drawing the arena") from error


def draw(result: TaskResult, path: Path) -> None:
    """Two plots on a white card, so that they can be read on a page of any colour; the same results draw the same file.

    The front is a line; its methods, greedy (n=1) and the most accurate setting of SOAR are labelled. What is beaten is
    faint.
    """
    check_drawable()
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": result.task, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK}):
        figure = Figure(figsize=(10, 5.2), facecolor="white", layout="constrained")
        canvas = FigureCanvasAgg(figure)
        figure.suptitle(f"{result.task}: {result.baseline.done:,} problems, {result.settings['model']}", fontsize=11)
        styles = _styles(list(result.finished))
        plots = list(zip(figure.subplots(1, 2), points_of(result), strict=True))
        for axes, points in plots:
            _draw_points(axes, points, styles)
        left, right = (axes for axes, _ in plots)
        left.set(xlabel="forwards per problem", ylabel="accuracy, %")
        right.set(xlabel=f"seconds per problem ({result.baseline.origin.machine['cpu']})")
        lines, names = left.get_legend_handles_labels()
        figure.legend(lines, names, loc="outside lower center", ncols=8, frameon=False, fontsize=LABEL)
        canvas.draw()  # labels are placed by the pixels of a finished layout
        figure.set_layout_engine("none")
        for axes, points in plots:
            _draw_labels(axes, points, styles, canvas.get_renderer())
        with replacing(path) as fresh:
            figure.savefig(fresh, format="svg", metadata={"Date": None})


def _styles(strategies: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A colour and a marker for each strategy."""
    found: dict[str, dict[str, Any]] = {}
    for number, strategy in enumerate(strategies):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number // len(COLOURS) % len(MARKERS)]
        found[strategy] = {"color": colour, "marker": marker, "markersize": 5}
    if DELIBERATE in found:
        found[DELIBERATE] = {"color": BOLD, "marker": "D", "markersize": 6}
    return found


def _draw_points(axes: Any, points: Sequence[Point], styles: Mapping[str, Mapping[str, Any]]) -> None:
    best = front(points)
    stairs = [(point.cost, point.accuracy) for point in best]
    axes.plot(*zip(*stairs, strict=True), color=FRONT, linewidth=1, zorder=1, drawstyle="steps-post")
    for strategy, style in styles.items():
        axes.plot([], [], linestyle="", label=strategy, **style)
        for point in points:
            if parts_of(point.name)[0] == strategy:
                seen = {"alpha": 1.0, "zorder": 3} if point in best else {"alpha": FAINT, "zorder": 2}
                axes.plot(point.cost, point.accuracy, **style, **seen)
    axes.set_xscale("log")
    axes.margins(x=0.12, y=0.12)
    low, high = axes.get_xlim()
    ticks = [tick for tick in TICKS if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=GRID, linewidth=0.6)


def labelled(points: Sequence[Point]) -> list[Point]:
    """The front, greedy, and the most accurate setting of SOAR: each once, the most accurate first."""
    soar = [point for point in points if parts_of(point.name)[0] == SOAR_2]
    known = [point for point in points if point.name == BASELINE]
    known += sorted(soar, key=lambda one: (-one.accuracy, one.cost))[:1]
    return sorted({*front(points), *known}, key=lambda one: (-one.accuracy, one.cost))


def _stairs(corners: Sequence[tuple[float, float]]) -> Iterator[Box]:
    """The line through the front as boxes: from each corner across to below the next, then up to it."""
    for (x, y), (right, top) in pairwise(corners):
        yield Box(x, y - 1, right - x, 2)
        yield Box(right - 1, y, 2, top - y)


def _draw_labels(axes: Any, points: Sequence[Point], styles: Mapping[str, Mapping[str, Any]], renderer: Any) -> None:
    """The name of the strategy in its colour, beside the dot; no label covers another, a dot or the front."""
    chosen = labelled(points)
    texts = []
    for one in chosen:
        strategy = parts_of(one.name)[0]
        place = (one.cost, one.accuracy)
        texts.append(axes.annotate(strategy, place, fontsize=LABEL, color=styles[strategy]["color"]))
    sizes = [(box.width, box.height) for box in (text.get_window_extent(renderer) for text in texts)]
    pixels = [tuple(axes.transData.transform((one.cost, one.accuracy))) for one in points]
    dots = [Box(x - 4, y - 4, 8, 8) for x, y in pixels]
    anchors = [pixels[points.index(one)] for one in chosen]
    frame = axes.get_window_extent(renderer)
    line = _stairs([pixels[points.index(one)] for one in front(points)])
    boxes = placed(anchors, sizes, Box(frame.x0, frame.y0, frame.width, frame.height), [*dots, *line])
    for text, box in zip(texts, boxes, strict=True):
        if box is None:
            text.remove()
        else:
            text.set_position(axes.transData.inverted().transform((box.left, box.bottom)))
            text.set_verticalalignment("bottom")
