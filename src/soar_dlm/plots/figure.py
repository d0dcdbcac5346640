"""A figure as a value: rows of data, how to draw them, and what to say below."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from math import isfinite
from typing import TYPE_CHECKING, Any

from soar_dlm.plots.style import WIDTH, Theme, saved, sheet

if TYPE_CHECKING:
    pass

Row = Mapping[str, Any]
TEXTS = ("panel", "method", "strategy", "mode", "token")
"""Columns whose cells are text, whatever they look like."""
Draw = Callable[[Any, Sequence[Row], Theme], None]


@dataclass(frozen=True)
class Picture:
    """Everything a figure shows is in its ``rows``; ``draw`` gets them back as its CSV has them."""

    name: str
    caption: str
    rows: Sequence[Row]
    draw: Draw
    height: float = 2.9
    width: float = WIDTH

    @property
    def csv(self) -> str:
        """The rows as CSV, numbers to six significant digits, all columns of all rows."""
        columns = list(dict.fromkeys(name for row in self.rows for name in row))
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        for row in self.rows:
            writer.writerow([_cell(row.get(name)) for name in columns])
        return text.getvalue()

    def drawn(self, kind: str, theme: Theme) -> bytes:
        """The figure as a file of this kind: svg, png or pdf."""
        with sheet(self.height, self.caption, theme, self.width) as figure:
            self.draw(figure, read_csv(self.csv), theme)
            return saved(figure, kind, theme)

    def inline(self) -> str:
        """The figure as a light SVG without its caption, for a page that writes that itself."""
        with sheet(self.height, "", Theme(), self.width) as figure:
            self.draw(figure, read_csv(self.csv), Theme())
            return saved(figure, "svg", Theme(), follow=False).decode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}" if isfinite(value) else ""
    return str(value)


def read_csv(text: str) -> list[dict[str, Any]]:
    """The rows of a CSV; what reads as a number is one unless its column is :data:`TEXTS`, an empty cell is None."""
    return [{name: _value(name, cell) for name, cell in row.items()} for row in csv.DictReader(StringIO(text))]


def _value(name: str, cell: str) -> Any:
    if cell == "":
        return None
    for kind in () if name in TEXTS else (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def panel(rows: Sequence[Row], name: str) -> list[Row]:
    """The rows of one panel."""
    return [row for row in rows if row["panel"] == name]
