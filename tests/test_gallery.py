"""The gallery: its figures are what the committed results give, and its tables are those of the figures.

``python -m tests.test_gallery`` prints the lines of the tables, for docs/figures.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from soar_dlm.evals.runs import read_runs
from soar_dlm.plots import FIGURES
from soar_dlm.plots.catalogue import pictures
from soar_dlm.plots.figure import Picture, panel, read_csv
from soar_dlm.plots.parts import related
from tests.closeness import about

DOCS = Path(__file__).parents[1] / "docs"
DRAWN = DOCS / "figures"
RESULTS = [DOCS / "results" / "figures", DOCS / "results" / "eval" / "sweep", DOCS / "results" / "eval" / "table3"]
"""What ``make figures`` draws from."""
TASKS = ("mini-gsm", "mini-code", "mini-sudoku", "mini-infill")

Rows = list[dict[str, Any]]


def rows_of(name: str) -> Rows:
    return read_csv((DRAWN / f"{name}.csv").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def committed() -> dict[str, Rows]:
    """The data of the figures that soar plot made; others in the folder are named otherwise."""
    return {path.stem: rows_of(path.stem) for path in DRAWN.glob("*.csv") if path.stem.split("-")[0] in FIGURES}


@pytest.mark.no_cover  # thousands of traces are read, which takes three times as long when it is traced itself
def test_every_figure_is_what_the_committed_results_give(committed: dict[str, Rows]) -> None:
    found = pictures(FIGURES, read_runs(RESULTS))
    made = {name: read_csv(one.csv) for name, one in found.items() if isinstance(one, Picture)}
    assert committed.keys() == made.keys()
    for name, rows in made.items():
        assert rows == about(committed[name]), name


def test_every_figure_is_there_for_every_task_that_can_have_it(committed: dict[str, Rows]) -> None:
    everywhere = {f"{kind}-{task}" for kind in FIGURES if kind != "lengths" for task in TASKS}
    assert committed.keys() == everywhere | {"lengths-mini-infill"}


def test_the_gallery_has_every_figure_and_its_data(committed: dict[str, Rows]) -> None:
    page = (DOCS / "figures.md").read_text(encoding="utf-8")
    for name in committed:
        assert (DRAWN / f"{name}.svg").is_file()
        assert f"](figures/{name}.svg)" in page
        assert f"](figures/{name}.csv)" in page


def confidence(task: str) -> str:
    rows = rows_of(f"confidence-{task}")
    (trend,) = panel(rows, "trend")
    bins = panel(rows, "bins")
    ends = (f"{bins[place]['right']} of {bins[place]['problems']}" for place in (0, -1))
    return f"{trend['correlation']:.2f} | {' | '.join(ends)}"


def pareto(task: str) -> str:
    rows = rows_of(f"pareto-{task}")
    found = {row["method"]: row for row in panel(rows, "methods")}
    best = max(panel(rows, "aup"), key=lambda row: row["aup"])
    shown = [f"{found[name]['accuracy']:.1%} at {found[name]['speed_up']:.2f}" for name in ("Adaptive Parallel", "PBS")]
    soar = found["SOAR"]
    shown += [
        f"{soar['accuracy']:.1%} at {soar['speed_up']:.2f}, +{soar['gained']}/-{soar['lost']}, p = {soar['p']:.2f}"
    ]
    return f"{found['Greedy']['accuracy']:.1%} | {' | '.join(shown)} | {best['method']}, {best['aup']:.0f}"


def threshold(task: str) -> str:
    rows = rows_of(f"threshold-{task}")
    greedy, *points = panel(rows, "sweep")
    tokens = panel(rows, "tokens")
    unsure = np.interp(0.95, [row["confidence"] for row in tokens], [row["share"] for row in tokens])
    found = sorted((row for row in points if row["beam"] == 2), key=lambda row: row["threshold"])
    ends = (f"{row['accuracy']:.1%} at {row['speed_up']:.2f}" for row in (found[0], found[-1]))
    return f"{1 - unsure:.0%} | {greedy['accuracy']:.1%} | {' | '.join(ends)}"


def beam(task: str) -> str:
    rows = panel(rows_of(f"beam-{task}"), "sweep")
    most = max(row["threshold"] for row in rows if row["threshold"] is not None)
    found = sorted((row for row in rows if row["threshold"] == most), key=lambda row: row["beam"])
    return " | ".join(f"{row['accuracy']:.1%} at {row['forwards']:.1f}" for row in found)


def order(task: str) -> str:
    told = []
    for name, sign in (("confidence", 1), ("ar_ness", -1)):
        for left_out in ("", "Deliberate"):
            rows = [row for row in rows_of(f"order-{task}") if row["method"] != left_out]
            told.append(f"{related([sign * row[name] for row in rows], [row['accuracy'] for row in rows]):+.2f}")
    return " | ".join(told)


def modes(task: str) -> str:
    rows = rows_of(f"modes-{task}")
    shares = [row["parallel_share"] for row in panel(rows, "bins") if row["parallel_share"] is not None]
    (trend,) = panel(rows, "trend")
    return f"{shares[0]:.0%} | {shares[-1]:.0%} | {100 * trend['slope']:+.2f}"


def path(task: str) -> str:
    steps: dict[str, int] = {}
    for row in rows_of(f"path-{task}"):
        steps[row["method"]] = max(row["step"], steps.get(row["method"], 0))
    return " | ".join(map(str, steps.values()))


def facts() -> Iterator[str]:
    """The lines of the gallery's tables."""
    for tell in (confidence, pareto, threshold, beam, order, modes, path):
        for task in TASKS:
            yield f"| {task} | {tell(task)} |"
    rows = rows_of("lengths-mini-infill")
    for method in ("Greedy", "SOAR"):
        rates = [f"{row['exact_rate']:.1%}" for row in rows if row["method"] == method]
        yield f"| {method} | {' | '.join(rates)} |"


def test_the_tables_of_the_gallery_are_those_of_its_figures() -> None:
    lines = (DOCS / "figures.md").read_text(encoding="utf-8").splitlines()
    told = [line for line in lines if line.startswith(("| mini-", "| Greedy |", "| SOAR |"))]
    assert told == list(facts())


if __name__ == "__main__":
    print("\n".join(facts()))
