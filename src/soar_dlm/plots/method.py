"""Figure 2 of the paper, from a real trace: how a beam forks while unsure, and collapses when it is sure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from soar_dlm.engine.trace import Trace
from soar_dlm.evals.runs import Run
from soar_dlm.playback import Cell, Playback
from soar_dlm.plots.figure import Picture, Row, panel
from soar_dlm.plots.runs import NothingToDraw, about, first_of, traces_of
from soar_dlm.plots.style import EDGE, WIDTH, Theme
from soar_dlm.search.question import Place

STEPS, SHOWN = 4, 14
"""How many steps are shown, and how many positions of the canvas."""
SKIP = 0.5
"""The gap where positions are left out, in cells."""
ROW, GAP = 0.36, 0.6
"""Inches of a line of cells, and the lines that stay empty between steps."""

TOKEN, SMALL, LEAST = 7.0, 6.5, 5.0
"""Points of a token, of what is said of a candidate, and of a token that would not fit into its cell otherwise."""
BEFORE, AFTER, FULL = 2.9, 1.6, 0.84
"""Room left and right of the cells, in cells; the share of a cell that its text may take up."""
CUT = "\u2026"

TINT = {"sky": 0.6, "green": 0.5}
"""How strong the colours are, so that text on them can be read."""
PAPERS = {"masked": "grid", "before": "paper", "search": "sky", "parallel": "green"}


def picture(run: Run) -> Picture:
    """The first steps of a decoding by SOAR in which the beam forks and then collapses to one."""
    method = first_of(run, "Soar")
    for number, trace in enumerate(traces_of(run, method)):
        first = _first(trace)
        if first is not None:
            rows = list(_rows(trace, first))
            caption = (
                f"Steps {first} to {first + STEPS - 1} of problem {number} (counted from 0). Each line of cells is a "
                "candidate in the beam, with its rank: grey cells are masked, blue ones were committed by search in "
                "that step, green ones in parallel; dots stand for positions left out. Where the best candidate comes "
                f"from parallel mode, the beam shrinks to one. {about(run, method)}"
            )
            height = ROW * (len(panel(rows, "candidates")) + GAP * (STEPS - 1)) + 0.2
            return Picture(caption, rows, draw, height)
    raise NothingToDraw("No trace of SOAR has a beam that forks and collapses within a few steps.")


def _first(trace: Trace) -> int | None:
    """The step before the first in which a beam of several came to be and, within ``STEPS``, was one again."""
    widths = [1, *(len(record.beam) for record in trace)]
    for step in range(1, len(widths) - STEPS + 1):
        window = widths[step : step + STEPS]
        if max(window[1:-1]) > 1 and window[0] == window[-1] == 1:
            return step
    return None


def _rows(trace: Trace, first: int) -> Iterator[Row]:
    playback = Playback(trace)
    canvases = {
        Place(step, lane): playback.canvas(Place(step, lane))
        for step in range(first, first + STEPS)
        for lane in range(len(trace.steps[step - 1].beam))
    }
    shown = _shown([list(canvas.values()) for canvas in canvases.values()], first)
    for place, canvas in canvases.items():
        entry = trace.at(place)
        yield {
            "panel": "candidates",
            "step": place.step,
            "lane": place.first,
            "origin": entry.origin,
            "mode": entry.mode,
            "rank": entry.rank,
            "left": entry.left,
        }
        for position, cell in enumerate(canvas.values()):
            if position not in shown:
                continue
            piece = "" if cell.token is None else playback.scene.pieces.get(cell.token, "")
            yield {
                "panel": "cells",
                "step": place.step,
                "lane": place.first,
                "position": position,
                "token": "end" if cell.token in playback.scene.ends else piece.strip() or ("\u21b5" if piece else ""),
                "mode": _mode(cell, place.step),
            }


def _shown(canvases: Sequence[Sequence[Cell]], first: int) -> set[int]:
    """The positions to show, counted from the first of the canvas.

    Those that search filled come first, then the others filled after the first step, those filled in it, and their
    neighbours.
    """
    urgency: dict[int, int] = {}
    for canvas in canvases:
        for position, cell in enumerate(canvas):
            if cell.step is not None and cell.step >= first:
                own = 0 if cell.mode != "parallel" else 1 if cell.step > first else 2
                urgency[position] = min(own, urgency.get(position, own))
    length, shown = max(map(len, canvases)), set(sorted(urgency, key=lambda one: (urgency[one], one))[:SHOWN])
    while len(shown) < min(SHOWN, length):
        shown.add(min(set(range(length)) - shown, key=lambda one: (min(abs(one - other) for other in shown), one)))
    return shown


def _mode(cell: Cell, step: int) -> str:
    """What a cell looks like: masked, committed before, or by which mode in this step."""
    if cell.token is None:
        return "masked"
    return str(cell.mode) if cell.step == step else "before"


def draw(figure: Any, rows: Sequence[Row], theme: Theme) -> None:
    candidates, cells = panel(rows, "candidates"), panel(rows, "cells")
    steps = sorted({row["step"] for row in candidates})
    left = _left_edges(sorted({row["position"] for row in cells}))
    right = max(left.values()) + 1
    axes = figure.subplots()
    axes.set_axis_off()

    widths = [sum(row["step"] == step for row in candidates) for step in steps]

    def middle(step: int, lane: int) -> float:
        """How high the cells of a candidate are; later steps are below."""
        before = steps.index(step)
        return -float(sum(widths[:before]) + GAP * before + lane)

    room = FULL * WIDTH * (1 - 2 * EDGE) * 72 / (right + BEFORE + AFTER)
    for row in cells:
        _draw_cell(axes, row, left[row["position"]], middle(row["step"], row["lane"]), room, theme)
    for row in candidates:
        y = middle(row["step"], row["lane"])
        what = f"step {row['step']}, {row['mode']}\nrank {row['rank']:.3f}"
        axes.text(-0.25, y, what, ha="right", va="center", fontsize=SMALL, color=theme["faint"], linespacing=1.1)
        for position, x in left.items():
            if x and position - 1 not in left:
                axes.text(x - SKIP / 2, y, "\u22ef", ha="center", va="center", fontsize=TOKEN, color=theme["faint"])
        if row["step"] > steps[0]:
            _draw_arrow(axes, right + 0.15, middle(row["step"] - 1, row["origin"]), y, row, theme)
    axes.set(xlim=(-BEFORE, right + AFTER), ylim=(middle(steps[-1], widths[-1] - 1) - 0.5, 0.5))


def _left_edges(positions: Sequence[int]) -> dict[int, float]:
    """Where the cell of each position begins: neighbours touch, and others have a gap between them."""
    found: dict[int, float] = {}
    for position in positions:
        found[position] = max(found.values(), default=-1.0) + 1 + SKIP * (bool(found) and position - 1 not in found)
    return found


def fitted(text: str, room: float) -> tuple[str, float]:
    """A text and its size in points such that it is no wider than the room; what is too long even so is cut short."""
    from matplotlib.textpath import TextPath

    def width(shown: str) -> float:
        return float(TextPath((0, 0), shown, size=1, usetex=False).get_extents().width) if shown.strip() else 0.0

    shown = text
    while len(shown) > 1 and LEAST * width(shown) > room:
        shown = f"{shown.rstrip(CUT)[:-1]}{CUT}"
    return shown, min(TOKEN, room / width(shown)) if width(shown) else TOKEN


def _draw_cell(axes: Any, row: Row, x: float, y: float, room: float, theme: Theme) -> None:
    from matplotlib.patches import Rectangle

    corner, paper = (x + 0.03, y - 0.36), PAPERS.get(row["mode"], "paper")
    axes.add_patch(Rectangle(corner, 0.94, 0.72, facecolor=theme[paper], linewidth=0, alpha=TINT.get(paper, 1.0)))
    axes.add_patch(Rectangle(corner, 0.94, 0.72, facecolor="none", edgecolor=theme["faint"], linewidth=0.5))
    text, size = fitted("" if row["token"] is None else str(row["token"]), room)
    axes.text(x + 0.5, y, text, ha="center", va="center_baseline", fontsize=size, parse_math=False)


def _draw_arrow(axes: Any, x: float, above: float, y: float, row: Row, theme: Theme) -> None:
    """From the parent down to the candidate, right of the cells."""
    colour = theme["green" if row["mode"] == "parallel" else "blue"]
    look = {"arrowstyle": "->", "color": colour, "lw": 1.3, "connectionstyle": f"arc3,rad={-0.3 - 0.12 * row['lane']}"}
    axes.annotate("", (x, y), (x, above), arrowprops=look)
