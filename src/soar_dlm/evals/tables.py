"""From result folders to the paper's tables: rows are methods, columns are benchmarks and lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Literal

from soar_dlm.doors import door
from soar_dlm.errors import SettingsError, UnknownName, shown
from soar_dlm.evals.comparison import Summary, against
from soar_dlm.evals.curves import NOTE, Area, areas
from soar_dlm.evals.manifest import GREEDY, RecordedMethod, length_order, recorded_methods
from soar_dlm.evals.paper import Figure, paper_figure
from soar_dlm.evals.results import Record, ResultFolder, Results, result_folders
from soar_dlm.strict_json import json_text, plain

Judge = Literal["correct", "exact"]
SURE = 0.05
BETTER, WORSE = "↑", "↓"


@dataclass(frozen=True)
class Row:
    """A method by its label, such as "SOAR", and the metric it reads."""

    label: str
    metric: str


@dataclass(frozen=True)
class Column:
    """A task and the length of its canvas, or the number of masks its blanks start with; "right": its answer's.

    ``decoding`` tells blocks and caches, where there are any.
    """

    task: str
    length: int | str
    decoding: str = ""

    @property
    def title(self) -> str:
        return f"{self.task} {self.length}{f', {self.decoding}' if self.decoding else ''}"


@dataclass(frozen=True)
class Cell:
    """What was measured, compared with greedy by the same metric and length in the same run, and the paper's figures.

    Where greedy was not run, ``compared`` is False, and the speed-up and p-value in ``measured`` mean nothing.
    """

    measured: Summary
    complete: bool
    compared: bool
    paper: Figure | None


@dataclass(frozen=True)
class Grid:
    """A table: cells by row and column, without those that were not run.

    ``areas`` has the AUP of each strategy, under the name of its curve.
    """

    model: str
    judge: Judge
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    cells: Mapping[tuple[Row, Column], Cell]
    areas: Mapping[tuple[Row, Column], Area] = field(default_factory=dict)

    def __repr__(self) -> str:
        columns = ", ".join(column.title for column in self.columns)
        return f"<Grid of {self.model}: {', '.join(label_of(row) for row in self.rows)} on {columns}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return html(self)


PAPER: dict[int, tuple[Judge, tuple[str, ...] | None]] = {
    1: ("correct", ("probability",)),
    2: ("correct", ("margin", "neg_entropy")),
    3: ("exact", None),
}
"""The tables of the paper: how answers are judged, and which metrics they show."""


@door
def read_table(*folders: str | Path, number: int | None = None) -> Grid:
    """The results in some folders, and in the folders inside them, as a table; ``number`` chooses one of the paper's.

    It shows itself in notebooks, and :func:`rendered` writes it in other formats.
    """
    if number is not None and number not in PAPER:
        raise SettingsError(f"The paper's tables are numbered 1, 2 or 3, not {shown(number)}.")
    if not folders or not all(isinstance(folder, (str, Path)) for folder in folders):
        raise SettingsError(f"read_table takes one or more paths of folders with results, not {shown(folders)}.")
    judge, metrics = ("correct", None) if number is None else PAPER[number]
    runs = [ResultFolder(folder).read() for folder in result_folders([Path(folder) for folder in folders])]
    if judge == "exact":
        runs = [run for run in runs if any(record.exact is not None for record in run.records)]
    made = grid(runs, judge, metrics) if runs else None
    if made is None or not made.cells:
        wanted = "to show" if number is None else f"for Table {number}"
        raise SettingsError(
            f"These results have nothing {wanted} yet: a table needs at least one chunk of problems that all methods "
            "have decoded."
        )
    return made


def grid(runs: Sequence[Results], judge: Judge = "correct", metrics: Sequence[str] | None = None) -> Grid:
    """All methods of some runs of one model, or only those that use one of the ``metrics``.

    Table 1 of the paper is about the probability, Table 2 about the other metrics, Table 3 about infilling by exact
    match.
    """
    models = sorted({run.settings["model"] for run in runs})
    if len(models) != 1:
        raise SettingsError(f"A table shows one model, but these results are of {', '.join(models) or 'none'}.")
    cells: dict[tuple[Row, Column], Cell] = {}
    found: dict[tuple[str, Column], dict[RecordedMethod, Summary]] = {}
    for run in runs:
        by_method: dict[str, list[Record]] = {}
        for record in run.whole_chunks():
            by_method.setdefault(record.method, []).append(_judged(record, judge))
        methods = recorded_methods(run.settings)
        for name, own in by_method.items():
            method = methods[name]
            row = Row(method.label, method.metric)
            column = Column(run.settings["task"], method.length, method.decoding)
            base = method.baseline_among(methods.values())
            if metrics is not None and row.metric not in metrics:
                continue
            if (row, column) in cells:
                raise SettingsError(
                    f"Two of these results are {row.label} by {row.metric} on {column.task} at {_at(column)}. "
                    "Name the folders that belong in one table."
                )
            measured = against(own, own if base is None else by_method[base.name])
            paper = paper_figure(models[0], column.task, column.length, row.label, row.metric)
            cells[row, column] = Cell(measured, run.complete, base is not None, paper)
            found.setdefault((row.metric, column), {})[method] = measured
    rows = tuple(dict.fromkeys(row for row, _ in cells))
    columns = tuple(
        sorted(
            dict.fromkeys(column for _, column in cells),
            key=lambda one: (one.task, length_order(one.length), one.decoding),
        )
    )
    under = {
        (Row(name, metric), column): area
        for (metric, column), own in found.items()
        for name, area in areas(own).items()
    }
    return Grid(models[0], judge, rows, columns, cells, under)


def _at(column: Column) -> str:
    return f"{column.length}{f' ({column.decoding})' if column.decoding else ''}"


def _judged(record: Record, judge: Judge) -> Record:
    return replace(record, correct=bool(record.exact)) if judge == "exact" else record


def sign(found: Summary) -> str:
    """Whether a method is significantly better or worse than greedy; nothing if neither."""
    if found.p_value >= SURE:
        return ""
    return BETTER if found.gained > found.lost else WORSE


def accuracy_text(cell: Cell) -> str:
    """Accuracy, the sign of a significant difference from greedy, and the paper's accuracy in brackets."""
    paper = f" [{cell.paper.accuracy:.1f}]" if cell.paper is not None else ""
    return f"{cell.measured.accuracy * 100:.1f}{sign(cell.measured)}{paper}"


def interval_text(cell: Cell) -> str:
    low, high = cell.measured.interval
    return f"({low * 100:.1f} to {high * 100:.1f})"


def whole_text(cell: Cell) -> str:
    return f"{accuracy_text(cell)} {interval_text(cell)}"


def speed_text(cell: Cell) -> str:
    paper = f" [x{cell.paper.speed_up:.2f}]" if cell.paper is not None else ""
    return f"{f'x{cell.measured.speed_up:.2f}' if cell.compared else '?'}{paper}"


def tokens_text(cell: Cell) -> str:
    return f"{cell.measured.tokens_per_forward:.2f}"


def area_text(area: Area) -> str:
    return f"{area.aup:.1f}"


def curve_rows(table: Grid) -> tuple[Row, ...]:
    """The names of the curves that have an AUP, in the order of the methods."""
    return tuple(dict.fromkeys(row for row, _ in table.areas))


def notes(table: Grid) -> list[str]:
    """What a reader needs to know: signs, number of problems, and what is missing."""
    found = table.cells.values()
    lines = ["95% intervals in parentheses."]
    if any(sign(cell.measured) for cell in found):
        lines.append(f"{BETTER} better, {WORSE} worse than greedy with p < {SURE} (McNemar's exact test).")
    if any(cell.compared for cell in found):
        lines.append("SpeedUp is greedy's wall time over the method's, in the same run.")
    lines += [NOTE] if table.areas else []
    if any(cell.paper is not None for cell in found):
        lines.append("The paper's figures are in brackets.")
    counts = {column.task: (cell.measured.problems, cell.complete) for (_, column), cell in table.cells.items()}
    sizes = [f"{task} {count:,}{'' if complete else ' so far'}" for task, (count, complete) in counts.items()]
    lines.append(f"Problems: {', '.join(sizes)}.")
    if table.judge == "exact":
        lines.append("An answer is right if it is exactly the text that was taken out.")
    if not all(cell.compared for cell in found):
        lines.append("?: there is no greedy run by the same metric and length to compare with.")
    return lines


def markdown(table: Grid) -> str:
    several = len({row.metric for row in table.rows}) > 1
    head = [*(["metric"] if several else []), "method", *(_cell(one.title) for one in table.columns)]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]

    def add(start: str, metric: str, cells: Iterable[str]) -> None:
        lines.append(f"| {' | '.join([*([_cell(metric)] if several else []), start, *cells])} |")

    for row in table.rows:
        found = [table.cells.get((row, column)) for column in table.columns]
        add(_cell(row.label), row.metric, (_or_blank(cell, whole_text) for cell in found))
        for title, text in details(row):
            add(f"*{title}*", "", (_or_blank(cell, text) for cell in found))
    for row in curve_rows(table):
        add(f"*AUP*, {_cell(row.label)}", row.metric, _areas_of(table, row))
    return "\n".join([*lines, "", *notes(table)]) + "\n"


def latex(table: Grid) -> str:
    """A tabular with booktabs rules, preceded by comments that explain it."""
    lines = [
        *(f"% {note}" for note in [_cell(table.model), *notes(table)]),
        rf"\begin{{tabular}}{{l{'c' * len(table.columns)}}}",
        r"\toprule",
        " & ".join(["", *(_escaped(one.title) for one in table.columns)]) + r" \\",
        r"\midrule",
    ]
    for row in table.rows:
        found = [table.cells.get((row, column)) for column in table.columns]
        label = label_of(row)
        cells = [_or_blank(cell, lambda one: _escaped(whole_text(one))) for cell in found]
        lines.append(" & ".join([_escaped(label), *cells]) + r" \\")
        for title, text in details(row):
            shown = (_or_blank(cell, text).replace("x", r"$\times$") for cell in found)
            lines.append(" & ".join([rf"\textit{{{title}}}", *shown]) + r" \\")
    if table.areas:
        lines.append(r"\midrule")
    for row in curve_rows(table):
        lines.append(" & ".join([rf"\textit{{AUP}}, {_escaped(label_of(row))}", *_areas_of(table, row)]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


_SMALL = 'style="font-size:85%;opacity:.75"'
_LEFT, _RIGHT = (f'style="text-align:{side};vertical-align:top"' for side in ("left", "right"))


def html(table: Grid) -> str:
    """A table without colours of its own, for light pages and dark ones; styles are inline, as some drop sheets."""
    head = "".join(f"<th {_RIGHT}>{escape(one.title)}</th>" for one in table.columns)
    body = []
    for row in table.rows:
        found = (table.cells.get((row, column)) for column in table.columns)
        cells = "".join(f"<td {_RIGHT}>{_or_blank(cell, _html_cell(row))}</td>" for cell in found)
        body.append(f"<tr><th {_LEFT}>{escape(label_of(row))}</th>{cells}</tr>")
    for row in curve_rows(table):
        cells = "".join(f"<td {_RIGHT}>{text}</td>" for text in _areas_of(table, row))
        body.append(f"<tr><th {_LEFT}><span {_SMALL}>AUP</span> {escape(label_of(row))}</th>{cells}</tr>")
    return (
        f'<table class="soar-dlm"><caption>{escape(table.model)}</caption><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table><div {_SMALL}>{escape(' '.join(notes(table)))}</div>\n"
    )


def _html_cell(row: Row) -> Callable[[Cell], str]:
    def text(cell: Cell) -> str:
        measured = f"{escape(accuracy_text(cell))}<br><span {_SMALL}>{interval_text(cell)}</span>"
        more = (f"<br><span {_SMALL}>{title}</span> {escape(told(cell))}" for title, told in details(row))
        return measured + "".join(more)

    return text


def as_json(table: Grid) -> str:
    """Every cell with its row and column, and the AUP of every curve; what could not be measured is null."""
    cells = [
        {
            **asdict(row),
            **asdict(column),
            **cell.measured.as_dict(),
            "complete": cell.complete,
            "compared": cell.compared,
            "paper": asdict(cell.paper) if cell.paper is not None else None,
        }
        for (row, column), cell in table.cells.items()
    ]
    under = [{**asdict(row), **asdict(column), **asdict(area)} for (row, column), area in table.areas.items()]
    return json_text(plain({"model": table.model, "judge": table.judge, "cells": cells, "aup": under}))


LATEX: dict[str, str | int | None] = {sign: f"\\{sign}" for sign in "_%&#${}"}
LATEX |= {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
LATEX |= {BETTER: r"$\uparrow$", WORSE: r"$\downarrow$"}
FORMATS: dict[str, Callable[[Grid], str]] = {"markdown": markdown, "latex": latex, "html": html, "json": as_json}


def rendered(table: Grid, style: str) -> str:
    """The table as text in one of :data:`FORMATS`."""
    if style not in FORMATS:
        raise UnknownName("format", style, [*FORMATS, "terminal"])
    return FORMATS[style](table)


def details(row: Row) -> list[tuple[str, Callable[[Cell], str]]]:
    """What is told of a method below its accuracy: titles, and the text of a cell."""
    tokens = ("Tokens/forward", tokens_text)
    return [tokens] if row.label == GREEDY else [("SpeedUp", speed_text), tokens]


def _areas_of(table: Grid, row: Row) -> list[str]:
    """The AUP of a curve in each column, empty where there is none."""
    found = (table.areas.get((row, column)) for column in table.columns)
    return ["" if area is None else area_text(area) for area in found]


def label_of(row: Row) -> str:
    """A method's name, with its metric unless that is the usual one."""
    return row.label if row.metric == "probability" else f"{row.label} ({row.metric})"


def _or_blank(cell: Cell | None, text: Callable[[Cell], str]) -> str:
    return "" if cell is None else text(cell)


def _escaped(text: str) -> str:
    return text.translate(str.maketrans(LATEX))


def _cell(text: str) -> str:
    """Text that stays in its cell and on its line."""
    return " ".join(text.split()).replace("|", "\\|")
