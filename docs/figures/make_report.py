"""Draw the explorer of the example report, half-way through a problem: python docs/figures/make_report.py

Run it from the root of the repository; it needs Chromium and Playwright.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.browser import opened_browser  # noqa: E402

from soar_dlm.evals.runs import read_runs  # noqa: E402
from soar_dlm.report import report_page  # noqa: E402

TASK, METHODS = "mini-code", ("Greedy at 44", "SOAR at 44")


def gained() -> int:
    """The first problem that only the second method solved."""
    (run,) = read_runs([ROOT / "docs" / "results" / "example" / TASK])
    first, second = (run.records[name] for name in METHODS)
    return next(own.index for other, own in zip(first, second, strict=True) if own.correct and not other.correct)


def main() -> None:
    page = report_page(read_runs([ROOT / "docs" / "results" / "example"]))
    link = "/".join(quote(str(part), safe="") for part in (TASK, *METHODS, gained(), 20))
    with tempfile.TemporaryDirectory() as folder, opened_browser() as browser:
        path = Path(folder) / "report.html"
        path.write_text(page, encoding="utf-8")
        shown = browser.new_context(viewport={"width": 1200, "height": 1000}).new_page()
        shown.goto(f"file://{path}#{link}")
        shown.wait_for_selector("html[data-ready]")
        shown.locator("#explorer").screenshot(path=str(Path(__file__).parent / "report.png"))


if __name__ == "__main__":
    main()
