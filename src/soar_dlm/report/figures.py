"""The figures of a report: every one that its results have the data for."""

from __future__ import annotations

from collections.abc import Sequence

from soar_dlm.evals.runs import Run
from soar_dlm.plots import FIGURES
from soar_dlm.plots.catalogue import pictures
from soar_dlm.plots.figure import Picture
from soar_dlm.plots.runs import NothingToDraw
from soar_dlm.plots.style import drawable
from soar_dlm.report.drawings import Drawing


def figures_of(runs: Sequence[Run]) -> list[Drawing]:
    """All figures that can be drawn from the runs; none without matplotlib."""
    if not drawable():
        return []
    try:
        found = pictures(FIGURES, runs)
    except NothingToDraw:
        return []
    return [Drawing(name, one.caption, one.inline()) for name, one in found.items() if isinstance(one, Picture)]
