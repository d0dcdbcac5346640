"""Figure 2 of the paper, from a real trace: how a beam forks while unsure, and collapses when it is sure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from soar_dlm.engine.trace import Trace
from soar_dlm.evals.runs import Run
from soar_dlm.playback import Cell, Playback
from soar_dlm.plots.figure import Picture, Row, panel
from soar_dlm.plots.runs import NothingToDraw, about, first_of, traces_of
from soar_dlm.plots.style import Theme
from soar_dlm.search.question import Place

STEPS, SHOWN = 4, 14
"""How many steps are shown, and how many tokens of the canvas."""
ROW, GAP = 0.36, 0.6
"""Inches of a line of cells, and the lines that stay empty between steps."""

TOKEN, SMALL, LONGEST = 7, 6.5, 8
"""Points of a token and of what is said of a candidate; most characters in a cell."""

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
                "that step, green ones in parallel. Where the best candidate comes from parallel mode, the beam "
                f"shrinks to one. {about(run, method)}"
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
    start = _window(list(canvases.values()), first)
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
        for offset, cell in enumerate(list(canvas.values())[start : start + SHOWN]):
            piece = "" if cell.token is None else playback.scene.pieces.get(cell.token, "")
            yield {
                "panel": "cells",
                "step": place.step,
                "lane": place.first,
                "offset": offset,
                "token": "end" if cell.token in playback.scene.ends else piece.strip() or ("\u21b5" if piece else ""),
                "mode": _mode(cell, place.step),
            }


def _window(canvases: Sequence[Any], first: int) -> int:
    """Where the cells begin that change most in these steps."""
    changed = [
        sum(cell.step is not None and cell.step > first for cell in cells)
        for cells in zip(*(canvas.values() for canvas in canvases), strict=False)
    ]
    starts = range(max(len(changed) - SHOWN, 0) + 1)
    return max(starts, key=lambda start: (sum(changed[start : start + SHOWN]), -start))


def _mode(cell: Cell, step: int) -> str:
    """What a cell looks like: masked, committed before, or by which mode in this step."""
    if cell.token is None:
        return "masked"
    return str(cell.mode) if cell.step == step else "before"


def draw(figure: Any, rows: Sequence[Row], theme: Theme) -> None:
    candidates, cells = panel(rows, "candidates"), panel(rows, "cells")
    steps = sorted({row["step"] for row in candidates})
    axes = figure.subplots()
    axes.set_axis_off()

    widths = [sum(row["step"] == step for row in candidates) for step in steps]

    def middle(step: int, lane: int) -> float:
        """How high the cells of a candidate are; later steps are below."""
        before = steps.index(step)
        return -float(sum(widths[:before]) + GAP * before + lane)

    for row in cells:
        _draw_cell(axes, row, middle(row["step"], row["lane"]), theme)
    for row in candidates:
        y = middle(row["step"], row["lane"])
        what = f"step {row['step']}, {row['mode']}\nrank {row['rank']:.3f}"
        axes.text(-0.25, y, what, ha="right", va="center", fontsize=SMALL, color=theme["faint"], linespacing=1.1)
        if row["step"] > steps[0]:
            _draw_arrow(axes, middle(row["step"] - 1, row["origin"]), y, row, theme)
    axes.set(xlim=(-2.9, SHOWN + 1.6), ylim=(middle(steps[-1], widths[-1] - 1) - 0.5, 0.5))


def _draw_cell(axes: Any, row: Row, y: float, theme: Theme) -> None:
    from matplotlib.patches import Rectangle

    corner, paper = (row["offset"] + 0.03, y - 0.36), PAPERS.get(row["mode"], "paper")
    axes.add_patch(Rectangle(corner, 0.94, 0.72, facecolor=theme[paper], linewidth=0, alpha=TINT.get(paper, 1.0)))
    axes.add_patch(Rectangle(corner, 0.94, 0.72, facecolor="none", edgecolor=theme["faint"], linewidth=0.5))
    text = "" if row["token"] is None else str(row["token"])[:LONGEST]
    size = TOKEN - 0.4 * max(len(text) - 5, 0)
    axes.text(row["offset"] + 0.5, y, text, ha="center", va="center_baseline", fontsize=size, parse_math=False)


def _draw_arrow(axes: Any, above: float, y: float, row: Row, theme: Theme) -> None:
    """From the parent down to the candidate, right of the cells."""
    colour = theme["green" if row["mode"] == "parallel" else "blue"]
    look = {"arrowstyle": "->", "color": colour, "lw": 1.3, "connectionstyle": f"arc3,rad={-0.3 - 0.12 * row['lane']}"}
    axes.annotate("", (SHOWN + 0.15, y), (SHOWN + 0.15, above), arrowprops=look)
