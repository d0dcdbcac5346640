"""The example notebook runs, and shows what is committed with it."""

from __future__ import annotations

import re

import pytest

from tests.notebooks import executed, read, texts

NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")


def parts(text: str) -> tuple[list[str], list[float]]:
    """The words around the decimal fractions, and these."""
    return NUMBER.split(text), [float(number) for number in NUMBER.findall(text)]


def test_it_shows_what_is_committed() -> None:
    for shown, committed in zip(texts(executed()), texts(read()), strict=True):
        (words, numbers), (same_words, same_numbers) = parts(shown), parts(committed)
        assert words == same_words
        assert numbers == pytest.approx(same_numbers, abs=2e-3)


def test_every_picture_is_committed() -> None:
    pages = [
        output.data["text/html"]
        for cell in read().cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "text/html" in output.get("data", {})
    ]
    assert len(pages) >= 5
    assert all("soar-dlm" in page for page in pages)
