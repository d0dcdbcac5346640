"""A figure as a value: rows of data, how to draw them, and what to say below."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import Any

from soar_dlm import files
from soar_dlm.errors import SettingsError
from soar_dlm.plots.style import FORMATS, HEIGHT, Theme, check_drawable, saved, sheet

Row = Mapping[str, Any]
TEXTS = ("panel", "method", "strategy", "mode", "token")
"""Columns whose cells are text, whatever they look like."""
Draw = Callable[[Any, Sequence[Row], Theme], None]


@dataclass(frozen=True)
class Picture:
    """Everything a figure shows is in its ``rows``; ``draw`` gets them back as its CSV has them."""

    caption: str
    rows: Sequence[Row]
    draw: Draw
    height: float = HEIGHT

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
        """The figure as a file of this kind, one of :data:`FORMATS`."""
        return self._saved(kind, theme, self.caption)

    def inline(self) -> str:
        """The figure as a light SVG without its caption, for a page that writes that itself."""
        return self._saved("svg", Theme(), caption="", follow=False).decode()

    def _saved(self, kind: str, theme: Theme, caption: str, follow: bool = True) -> bytes:
        with sheet(self.height, caption, theme) as figure:
            self.draw(figure, read_csv(self.csv), theme)
            return saved(figure, kind, theme, follow)

    def write(self, path: Path, theme: Theme) -> None:
        """Draw into a file of the kind that its name ends in."""
        content = self.drawn(_ending(path), theme)
        with files.replacing(path) as fresh:
            fresh.write_bytes(content)

    def write_csv(self, path: Path) -> None:
        files.write_text(path, self.csv)


def check_path(path: Path) -> None:
    """Refuse a path that no figure can be drawn into, before the work for it starts."""
    check_drawable()
    if _ending(path) not in FORMATS:
        endings = ", ".join(f".{kind}" for kind in FORMATS)
        raise SettingsError(f"The name of a figure ends in {endings}, unlike {path.name!r}.")
    with files.explained("write", path):
        has_folder = path.parent.is_dir()
    if not has_folder:
        raise SettingsError(f"There is no folder {str(path.parent)!r} for the figure.")


def _ending(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


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
