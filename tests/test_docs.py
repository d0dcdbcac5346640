"""The examples of the documentation do what the text around them says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from soar_dlm.presets import read_preset
from soar_dlm.search.catalogue import STRATEGIES, make_strategy
from soar_dlm.search.greedy import Greedy
from tests.crafted import CraftedLM, decode_one, neighbourly_lm

DOCS = Path(__file__).parents[1] / "docs"


def blocks(page: str, section: str, language: str) -> list[str]:
    """The examples of a section."""
    text = (DOCS / page).read_text(encoding="utf-8").partition(f"\n## {section}\n")[2]
    return re.findall(rf"```{language}\n(.*?)```", re.split(r"\n## ", text)[0], re.DOTALL)


def defined(page: str, section: str) -> dict[str, Any]:
    """All that the Python examples of a section define."""
    found: dict[str, Any] = {"__name__": "example"}
    for code in blocks(page, section, "python"):
        exec(compile(code, page, "exec", dont_inherit=True), found)
    return found


@pytest.fixture(scope="module")
def own() -> dict[str, Any]:
    return defined("strategies.md", "Write your own")


def model(seed: int) -> CraftedLM:
    return neighbourly_lm(seed, 8, pull=1.5)


def test_the_rule_fills_from_the_left(own: dict[str, Any]) -> None:
    path = decode_one(model(0), [1, 2], 6, own["LeftToRight"](at_once=2)).trace.path()
    assert [entry.positions for entry in path] == [(2, 3), (4, 5), (6, 7)]


def test_the_search_takes_tokens_back_and_finds_texts_that_greedy_does_not(own: dict[str, Any]) -> None:
    different = 0
    for seed in range(12):
        greedy = decode_one(model(seed), [1, 2], 6, Greedy())
        found = decode_one(model(seed), [1, 2], 6, own["SecondLook"](looks=2))
        assert found.details == {"looks": 2}
        assert [entry.mode for entry in found.trace.path()] == [*["search"] * 6, *["reopened", "search"] * 2]
        assert found.forwards == 6 + 2 * (6 + 1)
        different += found.tokens != greedy.tokens
    assert different


@pytest.mark.parametrize(("page", "section"), [("strategies.md", "Deliberate"), ("command.md", "Presets")])
def test_the_presets_can_be_read(page: str, section: str, tmp_path: Path) -> None:
    (content,) = blocks(page, section, "toml")
    (tmp_path / "p.toml").write_text(content)
    preset = read_preset(tmp_path / "p.toml")
    assert preset.make() != make_strategy(preset.strategy)


def test_every_strategy_is_explained() -> None:
    text = (DOCS / "strategies.md").read_text(encoding="utf-8")
    for name in STRATEGIES.names():
        assert f"`{name}`" in text
