"""Table 3 of the paper as a picture: exact match over the length that a blank starts with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from soar_dlm.evals.manifest import length_order
from soar_dlm.evals.runs import Run
from soar_dlm.evals.statistics import wilson_interval
from soar_dlm.plots.figure import Picture, Row
from soar_dlm.plots.parts import bars
from soar_dlm.plots.runs import NothingToDraw, about
from soar_dlm.plots.style import Theme


def picture(run: Run) -> Picture:
    """A line per method, over the lengths in masks; "right" is the length of the text that was taken out."""
    lengths = {method.length for method in run.methods.values()}
    if len(lengths) < 2 or any(record.exact is None for own in run.records.values() for record in own):
        raise NothingToDraw("This figure needs blanks that start from several lengths: soar eval -t ... -n 8,16,32,64.")
    rows = []
    for name, method in run.methods.items():
        own = run.records[name]
        exact = sum(bool(record.exact) for record in own)
        low, high = wilson_interval(exact, len(own))
        rows.append(
            {
                "method": method.label,
                "length": method.length,
                "problems": len(own),
                "exact": exact,
                "exact_rate": exact / len(own),
                "exact_low": low,
                "exact_high": high,
                "solved_rate": sum(record.correct for record in own) / len(own),
            }
        )
    caption = f"Exact match with its 95% interval over the number of masks that a blank starts with. {about(run)}"
    return Picture(caption, rows, draw)


def draw(figure: Any, rows: Sequence[Row], theme: Theme) -> None:
    axes = figure.subplots()
    lengths = sorted({row["length"] for row in rows}, key=length_order)
    names = list(dict.fromkeys(row["method"] for row in rows))
    for number, name in enumerate(names):
        own = sorted((row for row in rows if row["method"] == name), key=lambda row: lengths.index(row["length"]))
        shift = (number - (len(names) - 1) / 2) * 0.06
        places = [lengths.index(row["length"]) + shift for row in own]
        bars(axes, places, own, ("exact_rate", "exact_low", "exact_high"), label=name, **theme.series(number))
    axes.set_xticks(range(len(lengths)), [str(one) for one in lengths])
    axes.set(xlabel="masks that the blank starts with", ylabel="exact match, %")
    figure.legend(loc="outside upper center", ncols=5)
