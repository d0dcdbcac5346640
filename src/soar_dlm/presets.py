"""A strategy and its settings in a file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soar_dlm import files
from soar_dlm.errors import InputFileError, SettingsError
from soar_dlm.search.catalogue import as_table, make_strategy
from soar_dlm.search.strategy import Strategy


@dataclass(frozen=True)
class Preset:
    """A ``strategy`` by name with ``settings``; ``about`` says what they are for and where they come from."""

    strategy: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""

    def __post_init__(self) -> None:
        self.make()

    def make(self, **changes: Any) -> Strategy:
        """The strategy, with some settings changed."""
        return make_strategy(self.strategy, **{**self.settings, **changes})


def read_preset(path: str | Path) -> Preset:
    """The preset in a TOML file: ``strategy = "soar"`` and a table of ``settings``."""
    content = files.read_toml(Path(path), "the preset")
    strategy, settings, about = content.get("strategy"), content.get("settings", {}), content.get("about", "")
    unknown = sorted(content.keys() - {"strategy", "settings", "about"})
    if not isinstance(strategy, str) or not isinstance(settings, dict) or not isinstance(about, str) or unknown:
        raise InputFileError(
            f"{str(path)!r} is not a preset: it must have a strategy, may have settings and about, and nothing else."
        )
    try:
        return Preset(strategy, settings, about)
    except SettingsError as error:
        raise InputFileError(f"The preset {str(path)!r} is wrong: {error}") from error


def write_preset(path: str | Path, preset: Preset) -> None:
    """Replace a preset file in one move."""
    head = {"about": preset.about, "strategy": preset.strategy}
    lines = [*_assignments(head), "", "[settings]", *_assignments(preset.settings)]
    files.write_text(Path(path), "\n".join(lines) + "\n")


def _assignments(values: Mapping[str, Any]) -> list[str]:
    """One assignment per value; TOML has no null, so None is left out, which reads the same."""
    return [f"{_key(name)} = {_value(value)}" for name, value in values.items() if value is not None]


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _value(value: Any) -> str:
    """Strings, finite numbers and booleans are the same in JSON and TOML; a strategy is the table that names it."""
    if isinstance(value, Strategy):
        value = as_table(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(_assignments(value)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    if not isinstance(value, (str, int, float)):
        raise SettingsError(f"A preset has strings, numbers, switches, lists and tables as settings, not {value!r}.")
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # which TOML allows only as an escape


def named_or_preset(name: str | None, preset: str | Path | None, **settings: Any) -> Strategy | None:
    """The strategy by name or from a preset file, whose settings ``settings`` override; None if neither is given."""
    if preset is None:
        return None if name is None else make_strategy(name, **settings)
    if name is not None:
        raise SettingsError("A preset names its strategy; give one or the other.")
    return read_preset(preset).make(**settings)
