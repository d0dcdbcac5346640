"""Where the labels of points go, so that none covers another, a point, or the edge of the plot, and all are plain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import hypot
from typing import Any

SIZE = 7.5
"""Of labels, in points."""
CLEAR = 1.4
"""How many times as far as its own point any other is from a label."""
DOT = 11.0
"""Points across a marker, with the corners of a diamond, that labels keep clear of."""
WIDER = 1.06
"""How much wider than on the screen's grid, by which it is measured, a text may be in an SVG."""
THIN = 4.0
"""Pixels that a label keeps clear of around the middle of a line."""

Line = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels, from its lower left corner."""

    left: float
    bottom: float
    width: float
    height: float

    def overlaps(self, other: Box) -> bool:
        return (
            self.left < other.left + other.width
            and other.left < self.left + self.width
            and self.bottom < other.bottom + other.height
            and other.bottom < self.bottom + self.height
        )

    def distance(self, point: tuple[float, float]) -> float:
        """From a point outside to the nearest one of the box."""
        x, y = point
        across = max(self.left - x, x - self.left - self.width, 0)
        return hypot(across, max(self.bottom - y, y - self.bottom - self.height, 0))

    def within(self, other: Box) -> bool:
        return (
            other.left <= self.left
            and other.bottom <= self.bottom
            and self.left + self.width <= other.left + other.width
            and self.bottom + self.height <= other.bottom + other.height
        )


def placed(
    anchors: Sequence[tuple[float, float]], sizes: Sequence[tuple[float, float]], area: Box, dots: Sequence[Box] = ()
) -> list[Box | None]:
    """Where labels go: each as near to its anchor as it can without leaving the area or covering a label or a dot.

    A label is clearly nearer to its own anchor than to any other, so that a reader knows what it belongs to. Earlier
    labels choose first. One that finds no place is left out (None).
    """
    taken = list(dots)
    found: list[Box | None] = []
    for number, (anchor, size) in enumerate(zip(anchors, sizes, strict=True)):
        others = [*anchors[:number], *anchors[number + 1 :]]
        box = next(
            (
                one
                for one in _places(anchor, size)
                if one.within(area)
                and not any(map(one.overlaps, taken))
                and all(one.distance(other) > CLEAR * one.distance(anchor) for other in others)
            ),
            None,
        )
        found.append(box)
        if box is not None:
            taken.append(box)
    return found


def _places(anchor: tuple[float, float], size: tuple[float, float]) -> Iterator[Box]:
    """Boxes around an anchor, the nearest first: above, below, to the left, to the right, and between."""
    (x, y), (width, height) = anchor, size
    for distance in (5.0, 9.0, 14.0, 20.0, 28.0, 38.0, 50.0, 64.0):
        for across, up in ((-0.5, 1), (0, 1), (-1, 1), (0, 0), (-1, 0), (0, -1), (-1, -1), (-0.5, -1)):
            side = {-1: -distance, -0.5: 0.0, 0: distance}[across]
            rise = {1: distance, 0: -height / 2, -1: -distance - height}[up]
            yield Box(x + across * width + side, y + rise, width, height)


def _square(middle: Sequence[float], side: float) -> Box:
    return Box(middle[0] - side / 2, middle[1] - side / 2, side, side)


def _along(start: Sequence[float], end: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Points on a line, so dense that no label fits between them."""
    count = max(int(hypot(end[0] - start[0], end[1] - start[1]) / THIN), 1)
    for place in range(count + 1):
        share = place / count
        yield start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])


@dataclass(frozen=True)
class Points:
    """The points of a plot, each x, y and its label, and lines that labels keep clear of."""

    axes: Any
    points: Sequence[tuple[float, float, str]]
    lines: Sequence[Line] = ()


def named(figure: Any, plots: Sequence[Points], colour: str) -> None:
    """Write labels beside the points of all plots; if one finds no room there, a legend of the first names them all."""
    found = [labelled(one.axes, one.points, colour, lines=one.lines) for one in plots]
    if all(len(texts) == len(one.points) for texts, one in zip(found, plots, strict=True)):
        return
    for text in chain(*found):
        text.remove()
    figure.legend(*plots[0].axes.get_legend_handles_labels(), loc="outside upper center", ncols=4)


def labelled(
    axes: Any, points: Sequence[tuple[float, float, str]], colour: str, *, lines: Sequence[Line] = ()
) -> list[Any]:
    """Write a label beside each point (x, y, label), clear of all points and of these ``lines``; the labels.

    One that finds no room is left out. The axes must have their final limits and place, so the figure is laid out
    first.
    """
    figure = axes.figure
    axes.autoscale_view()
    figure.draw_without_rendering()
    area, dot = axes.get_window_extent(), DOT * figure.dpi / 72
    pixels = [tuple(axes.transData.transform(point[:2])) for point in points]
    texts = [axes.annotate(label, (x, y), fontsize=SIZE, color=colour, parse_math=False) for x, y, label in points]
    extents = [text.get_window_extent() for text in texts]
    found = placed(
        pixels,
        [(WIDER * one.width, one.height) for one in extents],
        Box(area.x0, area.y0, area.width, area.height),
        [_square(at, dot) for at in pixels]
        + [_square(at, THIN) for line in lines for at in _along(*axes.transData.transform(line))],
    )
    written = []
    for text, box, pixel in zip(texts, found, pixels, strict=True):
        if box is None:
            text.remove()
        else:
            offset = ((box.left - pixel[0]) * 72 / figure.dpi, (box.bottom - pixel[1]) * 72 / figure.dpi)
            text.set(position=offset, va="bottom", ha="left")
            text.set_anncoords("offset points")
            written.append(text)
    return written
