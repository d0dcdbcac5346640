"""How large is a report of 1,000 problems by five methods with traces, and how long does a browser take to open it?

    python -m benchmarks.report_size                   the gallery's results, and a run of 1,000 by five
    python -m benchmarks.report_size --folders results  these results only, and no page is written

Decodes 1,000 problems of mini-sudoku with traces into ``build/report`` (some 15 minutes on a core; it resumes), makes
the report of that run and of ``docs/results/figures``, and opens each in Chromium several times, in a new window each
time. Opening ends when the first problem is drawn. Fails if a report is not below 10 MB; writes
``docs/results/report.md``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from tests.browser import opened_browser

from benchmarks.pages import RESULTS, conditions, table, write
from soar_dlm.evals.runs import Run, read_runs
from soar_dlm.report import figures_of, report_page

LARGE = Path("build/report")
DECODE = "eval -m mini-llada -t mini-sudoku -s greedy,adaptive,pbs-parallel,soar,deliberate --limit 1000 --traces"
MOST = 10e6
"""Bytes that a report stays below."""
OPENINGS = 5
DRAWN = "html[data-ready] .canvas .cell"


@dataclass(frozen=True)
class Measured:
    """A report: what is in it, its size, and seconds to make it and, for each time, to open it."""

    runs: Sequence[Run]
    made: float
    size: int
    packed: int
    opened: Sequence[float]

    @property
    def row(self) -> list[str]:
        tasks = ", ".join(dict.fromkeys(run.task for run in self.runs if run.traced))
        problems, methods = (sum(run.problems for run in self.runs), max(len(run.methods) for run in self.runs))
        traces = sum(len(run.traces) for run in self.runs)
        return [
            f"{problems:,} x {methods} ({tasks})",
            f"{traces:,}",
            f"{self.size / 1e6:.2f}",
            f"{self.packed / 1e6:.2f}",
            f"{self.made:.1f}",
            f"{median(self.opened):.2f} ({min(self.opened):.2f} to {max(self.opened):.2f})",
        ]


HEAD = ["problems x methods", "traces", "MB", "MB, zipped", "seconds to make", "seconds to open"]


def measured(folders: Sequence[Path]) -> Measured:
    started = perf_counter()
    runs = read_runs(folders)
    page = report_page(runs, figures_of(runs)).encode()
    made = perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        path.write_bytes(page)
        opened = [_seconds_to_open(path) for _ in range(OPENINGS)]
    return Measured(runs, made, len(page), len(zlib.compress(page)), opened)


def _seconds_to_open(path: Path) -> float:
    """From the request for the page to its first problem, in a browser that has just started."""
    with opened_browser() as browser:
        page = browser.new_page()
        started = perf_counter()
        page.goto(f"file://{path}")
        page.wait_for_selector(DRAWN)
        return perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folders", type=Path, nargs="+", help="measure the report of these results alone")
    given = parser.parse_args()
    if given.folders:
        found = [measured(given.folders)]
    else:
        subprocess.run([sys.executable, "-m", "soar_dlm", *DECODE.split(), "-o", str(LARGE)], check=True)
        found = [measured([LARGE]), measured([RESULTS / "figures" / "eval"])]
    text = table(HEAD, [one.row for one in found])
    print(text)
    if not given.folders:
        write(
            RESULTS / "report.md",
            "The size of a report",
            "Size and time to open",
            f"`python -m benchmarks.report_size`. {conditions()}\n\n{text}\n\n"
            "Each report is one file with tables, figures and every step of every decoding. It is open when the first "
            f"problem is drawn. The times are the median, the least and the most of {OPENINGS} openings from a disk, "
            "each in a Chromium that had just started. The first report is of a run made for this page; the second is "
            "of the results of [the gallery](../figures.md).",
        )
    if any(one.size >= MOST for one in found):
        sys.exit(f"A report is not below {MOST / 1e6:.0f} MB.")


if __name__ == "__main__":
    main()
