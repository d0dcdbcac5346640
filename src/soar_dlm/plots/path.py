"""A figure of the paper's appendix: in which step each position was filled, by two methods side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from soar_dlm.engine.trace import Trace
from soar_dlm.evals.manifest import RecordedMethod
from soar_dlm.evals.runs import Run
from soar_dlm.playback import Playback
from soar_dlm.plots.figure import Picture, Row
from soar_dlm.plots.runs import about, baseline_of, first_of, traces_of
from soar_dlm.plots.style import Theme

LOOKS = {"search": ("green", "o"), "parallel": ("grey", "s"), "branch": ("red", "^")}


def picture(run: Run) -> Picture:
    """A problem by greedy and by SOAR: the first that only SOAR solved, or else the first."""
    method = first_of(run, "Soar", "Deliberate", "AdaptiveParallel", "PositionBeam")
    base = baseline_of(run, method)
    number = _chosen(run, method, base)
    rows = [{"method": one.label, **row} for one in (base, method) for row in _filled(traces_of(run, one)[number])]
    caption = (
        f"In which step each position of the answer was filled, and by which mode: problem {number} (counted from 0). "
        f"{about(run, base, method)}"
    )
    return Picture(caption, rows, draw)


def _chosen(run: Run, method: RecordedMethod, base: RecordedMethod) -> int:
    pairs = zip(run.records[method.name], run.records[base.name], strict=True)
    return next((own.index for own, other in pairs if own.correct and not other.correct), 0)


def _filled(trace: Trace) -> Iterator[Row]:
    """The positions of the answer's canvas, counted from its first, that were filled in a step."""
    playback, places = Playback(trace), trace.places()
    canvas = playback.canvas(places[-1]) if places else {}
    for position, cell in enumerate(canvas.values()):
        if cell.step is not None:
            yield {"position": position, "step": cell.step, "mode": cell.mode, "confidence": cell.confidence}


def draw(figure: Any, rows: Sequence[Row], theme: Theme) -> None:
    names = list(dict.fromkeys(row["method"] for row in rows))
    panels = figure.subplots(1, len(names), sharey=True, sharex=True, squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        own = [row for row in rows if row["method"] == name]
        for mode, (colour, marker) in LOOKS.items():
            points = [row for row in own if row["mode"] == mode]
            axes.plot(
                [row["step"] for row in points],
                [row["position"] for row in points],
                linestyle="none",
                marker=marker,
                markersize=4,
                color=theme[colour],
                label=mode if any(row["mode"] == mode for row in rows) else None,
            )
        axes.set(xlabel="step", title=f"{name}: {max(row['step'] for row in own)} steps")
    panels[0].set(ylabel="position in the canvas")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
