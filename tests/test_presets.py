from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from soar_dlm.errors import InputFileError, SettingsError, SoarError
from soar_dlm.files import read_toml
from soar_dlm.presets import Preset, named_or_preset, read_preset, write_preset
from soar_dlm.search.catalogue import STRATEGIES, as_strategy, as_table, make_strategy
from soar_dlm.search.deliberate import Deliberate
from soar_dlm.search.entropy_bound import EntropyBound
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.soar import Soar
from soar_dlm.search.strategy import Strategy


def test_a_preset_survives_its_file(tmp_path: Path) -> None:
    preset = Preset("soar", {"beam": 4, "threshold": 0.9, "metric": "margin"}, "m on t\nin two lines")
    write_preset(tmp_path / "p.toml", preset)
    found = read_preset(tmp_path / "p.toml")
    assert found == preset
    assert found.make() == Soar(beam=4, threshold=0.9, metric="margin")
    assert found.make(beam=2) == Soar(beam=2, threshold=0.9, metric="margin")


def test_a_preset_can_hold_a_list(tmp_path: Path) -> None:
    preset = Preset("deliberate", {"threshold": 0.98, "accept": -5.123e-05, "tries": 4, "drafts": ["open", "plain"]})
    write_preset(tmp_path / "p.toml", preset)
    assert read_preset(tmp_path / "p.toml") == preset
    assert preset.make() == Deliberate(threshold=0.98, accept=-5.123e-05, tries=4, drafts=["open", "plain"])


@pytest.mark.parametrize(
    "draft", [{"strategy": "soar", "beam": 3, "threshold": None}, "soar", Soar(beam=3), EntropyBound(gamma=0.5), None]
)
def test_lists_and_drafters_survive_their_file(tmp_path: Path, draft: Any) -> None:
    preset = Preset("deliberate", {"drafts": ("plain", "open"), "draft": draft, "skip": None, "accept": -1e-7})
    write_preset(tmp_path / "p.toml", preset)
    assert read_preset(tmp_path / "p.toml").make() == preset.make()


def test_signs_and_numbers_that_json_and_toml_write_differently_survive_their_file(tmp_path: Path) -> None:
    """They used to give files that nobody could read."""
    preset = Preset("greedy", about='a\x7f\t\\"\u2028\x00 \U0001f600')
    write_preset(tmp_path / "p.toml", preset)
    assert read_preset(tmp_path / "p.toml") == preset
    settings = {"low": float("-inf"), "high": float("inf")}
    theirs: Any = SimpleNamespace(strategy="theirs", settings=settings, about="")  # ours take finite numbers only
    write_preset(tmp_path / "theirs.toml", theirs)
    assert read_toml(tmp_path / "theirs.toml", "it")["settings"] == settings


def test_what_toml_has_no_words_for_is_refused(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Mine(Strategy):
        defer_end: bool = False

    with pytest.raises(SettingsError, match="Mine is not registered"):
        write_preset(tmp_path / "p.toml", Preset("deliberate", {"draft": Mine()}))


@pytest.mark.parametrize("name", STRATEGIES.names())
def test_a_strategy_is_the_table_that_names_it(name: str) -> None:
    assert as_strategy(as_table(make_strategy(name))) == make_strategy(name)


def test_a_strategy_by_name_or_from_a_file(tmp_path: Path) -> None:
    write_preset(tmp_path / "p.toml", Preset("greedy", {"tokens_per_step": 2}))
    assert named_or_preset("soar", None, beam=3) == Soar(beam=3)
    assert named_or_preset(None, None, beam=3) is None
    assert named_or_preset("greedy", None) == Greedy()
    assert named_or_preset(None, tmp_path / "p.toml") == Greedy(tokens_per_step=2)
    with pytest.raises(SettingsError, match="one or the other"):
        named_or_preset("greedy", tmp_path / "p.toml")


@pytest.mark.parametrize(
    ("content", "error", "told"),
    [
        ("strategy =", InputFileError, "not a TOML file"),
        ("[settings]\nbeam = 2", InputFileError, "must have a strategy"),
        ('strategy = "soar"\nbeam = 2', InputFileError, "not a preset"),
        ('strategy = "soar"\nabout = 5', InputFileError, "not a preset"),
        ('strategy = "sore"', InputFileError, r"p\.toml' is wrong: .*soar"),
        ('strategy = "soar"\n[settings]\nbeam = 0', InputFileError, r"p\.toml' is wrong: beam"),
        ('strategy = "soar"\n[settings]\nwidth = 2', InputFileError, r"p\.toml' is wrong: .*width"),
    ],
)
def test_a_broken_preset_is_refused(tmp_path: Path, content: str, error: type[SoarError], told: str) -> None:
    (tmp_path / "p.toml").write_text(content)
    with pytest.raises(error, match=told):
        read_preset(tmp_path / "p.toml")


def test_a_missing_preset_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="Cannot read the preset"):
        read_preset(tmp_path / "none.toml")
