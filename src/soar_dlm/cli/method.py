"""The strategy that a user chose: by name, from a preset file, or the model's own with some settings changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from soar_dlm.errors import InputFileError, SettingsError
from soar_dlm.strict_json import read_json

if TYPE_CHECKING:
    from soar_dlm.lm import LM
    from soar_dlm.search.strategy import Strategy

_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Method:
    """The options of the group ``METHOD``.

    What can be checked without a model is checked at once, so that a typing mistake does not wait for the weights.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._own = {name: value for name, value in given.items() if name not in ("strategy", "preset", "settings")}
        self._pairs: dict[str, str] = dict(pair(text) for text in given.get("settings", ()))
        self._name: str | None = given.get("strategy")
        self._chosen: Strategy | None = None
        if "preset" in given:
            from soar_dlm.presets import read_preset

            if self._name is not None:
                raise SettingsError("A preset names its strategy; give one or the other.")
            preset = read_preset(given["preset"])
            self._chosen = preset.make(**self._settings(preset.strategy))
        elif self._name is not None:
            from soar_dlm.search.catalogue import make_strategy

            make_strategy(self._name, **self._settings(self._name))

    def strategy(self, lm: LM) -> Strategy:
        """The strategy for this model."""
        if self._chosen is not None:
            return self._chosen
        return lm.strategy(self._name, **self._settings(self._name or lm.defaults.strategy or "soar"))

    @property
    def described(self) -> dict[str, Any]:
        """What was chosen, in plain values."""
        if self._chosen is not None:
            return {"strategy": repr(self._chosen)}
        return {"strategy": self._name, **self._own, **self._pairs}

    def _settings(self, name: str) -> dict[str, Any]:
        """The settings for the strategy of this name, each value read as its default asks for."""
        from soar_dlm.search.catalogue import STRATEGIES

        factory = STRATEGIES.get(name)
        kind = factory.func if isinstance(factory, partial) else factory
        extra = {key: setting_value(key, text, getattr(kind, key, None)) for key, text in self._pairs.items()}
        return {**self._own, **extra}


def several(names: Sequence[str], given: Mapping[str, Any]) -> dict[str, Method]:
    """The strategies of these names; a setting applies to those that have it, and at least one must."""
    from soar_dlm.evals.protocol import accepted

    own = {name: value for name, value in given.items() if name != "settings"}
    pairs = {pair(text)[0]: text for text in given.get("settings", ())}
    for setting in (*own, *pairs):
        if not any(accepted(name, {setting: None}) for name in names):
            raise SettingsError(f"None of the strategies {', '.join(names)} has a setting {setting!r}.")
    return {
        name: Method({"strategy": name, "settings": accepted(name, pairs).values(), **accepted(name, own)})
        for name in names
    }


def setting_value(name: str, text: str, default: Any) -> Any:
    """The value of ``--set NAME=TEXT``: true or false if the default is, else a JSON value if it is one, else text."""
    if isinstance(default, bool):
        if text.lower() not in _WORDS:
            raise SettingsError(f"{name} is on or off: write --set {name}=true or --set {name}=false, not {text!r}.")
        return _WORDS[text.lower()]
    try:
        return read_json(text)
    except InputFileError:
        return text


def pair(text: str) -> tuple[str, str]:
    """Name and value of ``--set NAME=VALUE``."""
    name, equals, value = text.partition("=")
    if not equals:
        raise SettingsError(f"--set takes NAME=VALUE, not {text!r}.")
    return name.strip(), value.strip()
