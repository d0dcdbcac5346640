from __future__ import annotations

from pathlib import Path

import pytest

from soar_dlm.errors import InputFileError, SettingsError, SoarError, UnknownName
from soar_dlm.presets import Preset, named_or_preset, read_preset, write_preset
from soar_dlm.search.deliberate import Deliberate
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.soar import Soar


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
    assert preset.make() == Deliberate(threshold=0.98, accept=-5.123e-05, tries=4)


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
        ("[settings]\nbeam = 2", InputFileError, "must have strategy"),
        ('strategy = "soar"\nbeam = 2', InputFileError, "not a preset"),
        ('strategy = "sore"', UnknownName, "soar"),
        ('strategy = "soar"\n[settings]\nbeam = 0', SettingsError, "beam"),
        ('strategy = "soar"\n[settings]\nwidth = 2', UnknownName, "width"),
    ],
)
def test_a_broken_preset_is_refused(tmp_path: Path, content: str, error: type[SoarError], told: str) -> None:
    (tmp_path / "p.toml").write_text(content)
    with pytest.raises(error, match=told):
        read_preset(tmp_path / "p.toml")


def test_a_missing_preset_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="Cannot read the preset"):
        read_preset(tmp_path / "none.toml")
