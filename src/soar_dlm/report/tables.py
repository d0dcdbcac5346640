"""The tables of a report as markup: for each run and length a row for each method, compared with greedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite

from soar_dlm.evals.manifest import GREEDY
from soar_dlm.evals.reports import p_text
from soar_dlm.evals.runs import Run
from soar_dlm.evals.tables import BETTER, SURE, WORSE, Cell, Column, Grid, Row, grid, sign

NOTES = (
    "Accuracy is shown with its 95% interval (Wilson). Forwards, evaluations of one candidate, are the mean per "
    "problem. Speed-up is greedy's wall time over the method's for the same problems, decoded in turns. Gained and "
    "lost count the problems that only the method or only greedy solved; p is McNemar's exact test of the two. "
    f"{BETTER} and {WORSE} mark what is better or worse than greedy with p < {SURE}."
)
MINUS, TIMES, NOTHING = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}", "\N{EN DASH}"
WIDTH, HEIGHT = 120, 14
"""The drawing of an interval, from 0% to 100%."""


def text(value: object) -> str:
    """A value as text of the page: never as markup, and always as UTF-8."""
    return escape(str(value).encode("utf-8", "replace").decode("utf-8"))


def counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class Shown:
    """A column of a table: its title, and the markup of a cell.

    ``exact``: answers are judged by exact match. ``paired``: the column says nothing of greedy itself.
    """

    title: str
    markup: Callable[[Cell], str]
    exact: bool = False
    paired: bool = False


def tables(runs: Sequence[Run]) -> str:
    return "\n".join(markup for run in runs for markup in _of_run(run, len({one.model for one in runs}) > 1))


def _of_run(run: Run, several_models: bool) -> Iterator[str]:
    made, settings = grid([run.results]), run.results.settings
    exact = None
    if any(record.exact is not None for record in run.results.records):
        exact = grid([run.results], "exact")
    title = f"{run.name}, {run.model}" if several_models else run.name
    if not made.cells:
        yield (
            f"<section class='task'><h3>{text(title)}</h3><p class='missing'>No problems have been decoded by all "
            "methods yet.</p></section>"
        )
    for column in made.columns:
        count = next(cell.measured.problems for (_, own), cell in made.cells.items() if own == column)
        of = "" if run.results.complete else f" of {settings['problems']:,}, so far"
        length = "blanks as long as the answer" if column.length == "right" else f"length {column.length}"
        length += f", {column.decoding}" if column.decoding else ""
        small = f"<small>{counted(count, 'problem')}{of} · {text(length)}</small>"
        yield (
            f"<section class='task'><h3>{text(title)} {small}</h3>"
            f"{_table(made, exact, column, f'{title}, {length}')}</section>"
        )


def _table(made: Grid, exact: Grid | None, column: Column, caption: str) -> str:
    shown = _shown(exact is not None, any(cell.paper for (_, own), cell in made.cells.items() if own == column))
    head = "".join(f"<th scope='col'>{one.title}</th>" for one in (Shown("Method", str), *shown))
    rows = [row for row in made.rows if (row, column) in made.cells]
    several = any(row.metric != "probability" for row in rows)
    lines = "".join(_line(row, column, made, exact, shown, several) for row in rows)
    return (
        f"<table><caption class='unseen'>{text(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{lines}</tbody></table>"
    )


def _line(
    row: Row, column: Column, made: Grid, exact: Grid | None, shown: Sequence[Shown], several_metrics: bool
) -> str:
    label = f"{row.label} ({row.metric})" if several_metrics else row.label
    found = ""
    for one in shown:
        cell = (exact if one.exact and exact is not None else made).cells[row, column]
        unpaired = one.paired and (row.label == GREEDY or not cell.compared)
        found += f"<td data-title='{text(one.title)}'>{NOTHING if unpaired else one.markup(cell)}</td>"
    kind = " class='baseline'" if row.label == GREEDY else ""
    return f"<tr{kind}><th scope='row'>{text(label)}</th>{found}</tr>"


def _shown(exact: bool, paper: bool) -> list[Shown]:
    columns = [Shown("Accuracy", _accuracy), Shown("95% interval", _interval)]
    columns += [Shown("Exact match", lambda cell: f"{cell.measured.accuracy:.1%}", exact=True)] if exact else []
    columns += [Shown("Paper", _paper)] if paper else []
    return columns + [
        Shown("Forwards", lambda cell: f"{cell.measured.forwards:.1f}"),
        Shown("Tokens/forward", lambda cell: f"{cell.measured.tokens_per_forward:.2f}"),
        Shown("Speed-up", _speed_up, paired=True),
        Shown("Gained", lambda cell: f"+{cell.measured.gained}", paired=True),
        Shown("Lost", lambda cell: f"{MINUS}{cell.measured.lost}", paired=True),
        Shown("p", _p_value, paired=True),
    ]


def _accuracy(cell: Cell) -> str:
    return f"{sign(cell.measured)} <strong>{cell.measured.accuracy:.1%}</strong>"


def _interval(cell: Cell) -> str:
    low, high = cell.measured.interval
    middle = HEIGHT / 2
    whisker = f"<line x1='{low * WIDTH:.1f}' x2='{high * WIDTH:.1f}' y1='{middle}' y2='{middle}'/>"
    point = f"<circle cx='{cell.measured.accuracy * WIDTH:.1f}' cy='{middle}' r='3.2'/>"
    drawn = f"<svg class='whisker' viewBox='-4 0 {WIDTH + 8} {HEIGHT}' aria-hidden='true'>"
    axis = f"<path d='M0 {middle}H{WIDTH}'/>"
    return f"{drawn}{axis}{whisker}{point}</svg> <span>{low:.1%} to {high:.1%}</span>"


def _paper(cell: Cell) -> str:
    return "" if cell.paper is None else f"{cell.paper.accuracy:.1f}%"


def _speed_up(cell: Cell) -> str:
    speed = cell.measured.speed_up
    return f"{TIMES}{speed:.2f}" if isfinite(speed) else NOTHING


def _p_value(cell: Cell) -> str:
    return text(p_text(cell.measured))
