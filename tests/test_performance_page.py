"""The tables of docs/performance.md and of the README are those that were measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.performance import PAGES, RATIOS, WIDER, filled, ratios


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_the_tables_that_were_measured(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<!-- table" in text
    assert filled(text) == text


def test_every_ratio_was_measured() -> None:
    rows = ratios().splitlines()[2:]
    assert len(rows) == len(RATIOS) + len(WIDER)
    assert all(float(cell) > 0 for row in rows for cell in row.strip("| ").split("|")[1:])
