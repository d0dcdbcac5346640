"""Draw the server's page at work: python docs/figures/make_page.py

Run it from the root of the repository; it needs Chromium and Playwright.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from playwright.sync_api import expect  # noqa: E402
from tests.browser import opened_browser  # noqa: E402
from tests.serving import served  # noqa: E402

import soar_dlm as soar  # noqa: E402

WIDE, PHONE = {"width": 1180, "height": 800}, {"width": 360, "height": 800}
STICKERS = "Eva wins 10 stickers. Eva finds 18 more stickers. Eva sells 3. How many stickers does Eva have now?"
SUDOKU = "Sudoku\n1 . . . . 5\n. 5 . 4 . .\n. . . . . .\n. . 3 . . 2\n3 . . . 1 4\n. 6 . . . .\nSolution"
CODE = (
    'def process(values):\n    """Take the mean rounded down or 0 if empty and multiply it by itself."""\n'
    "{blank:4}\n    return y ** 2\n"
)


def shot(
    browser: Any, url: str, name: str, link: dict[str, str], step: int, hover: int | None = None, **how: Any
) -> None:
    """The page after a step, with the pointer on one of its tokens if ``hover`` says which."""
    page = browser.new_context(**{"viewport": WIDE, **how}).new_page()
    page.goto(f"{url}/#{urlencode({**link, 'run': 1})}")
    expect(page.locator("#status")).to_contain_text("Done", timeout=120_000)
    page.locator("#slider").fill(str(step))
    page.locator("#slider").blur()
    if hover is not None:
        page.locator(".canvas .cell.token").nth(hover).hover()
    page.screenshot(path=str(Path(__file__).parent / f"page-{name}.png"), full_page=True)
    page.context.close()


def main() -> None:
    beam = {"text": STICKERS, "a": "soar", "a.beam": "4", "max_tokens": "56"}
    compared = {"text": SUDOKU, "a": "deliberate", "b": "greedy", "max_tokens": "44"}
    blanks = {"text": CODE, "a": "soar"}
    with opened_browser() as browser:
        with served(soar.load("mini-llada", device="cpu")) as server:
            shot(browser, server.url, "light", beam, 7, 13)
            shot(browser, server.url, "dark", beam, 7, 13, color_scheme="dark")
            shot(browser, server.url, "compare", compared, 34)
            shot(browser, server.url, "phone", beam, 7, viewport=PHONE)
        with served(soar.load("mini-dreamon", device="cpu")) as server:
            shot(browser, server.url, "infill", blanks, 8)


if __name__ == "__main__":
    main()
