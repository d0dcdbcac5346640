"""How a checkpoint is best decoded, as it says itself: the section "soar_dlm" of generation_config.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soar_dlm import checks
from soar_dlm.doors import guarded
from soar_dlm.errors import CheckpointError, InputFileError, SettingsError
from soar_dlm.files import write_json
from soar_dlm.models.source import read_object
from soar_dlm.search.catalogue import make_strategy
from soar_dlm.search.metrics import get_metric
from soar_dlm.strict_json import json_text

if TYPE_CHECKING:
    from soar_dlm.search.strategy import Strategy

FILE, SECTION = "generation_config.json", "soar_dlm"


@guarded
@dataclass(frozen=True)
class DecodingDefaults:
    """What is used where a request says nothing.

    ``strategy`` is a name and ``settings`` are its settings, but for the threshold: that depends on the metric, so
    ``thresholds`` has one for each metric, which replaces the family's. ``options`` are options of a request; whether
    they exist is checked where requests are made. ``tuned`` has settings of strategies by their names, thresholds
    included: they apply where that strategy is asked for, or is the default, and nothing else is said.
    """

    strategy: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    tuned: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("settings", "thresholds", "options", "tuned"):
            checks.table(name, getattr(self, name))
        if "threshold" in self.settings:
            raise SettingsError(
                "settings must not contain a threshold: it depends on the metric. "
                'Write it as thresholds = {"probability": ...}.'
            )
        if self.strategy is not None:
            checks.instance("strategy", self.strategy, str, "the name of a strategy")
            make_strategy(self.strategy, **self.settings)
        elif self.settings:
            raise SettingsError("settings are given without a strategy; name the strategy they belong to.")
        for metric, threshold in self.thresholds.items():
            get_metric(metric).checked_threshold("threshold", threshold)
        for name, settings in self.tuned.items():
            checks.table(f"tuned[{name!r}]", settings)
            make_strategy(name, **settings)
        if self.strategy in self.tuned:
            self.make()

    def make(self, name: str | None = None, /, **given: Any) -> Strategy:
        """The strategy of this name, or the default one, with the settings ``given`` and what was tuned for the rest.

        A tuned threshold belongs to its metric: with another metric it does not apply.
        """
        chosen = (self.strategy or "soar") if name is None else checks.string("The name of a strategy", name)
        asked = {**(self.settings if name is None else {}), **given}
        tuned = dict(self.tuned.get(chosen, {}))
        metric = checks.string("metric", asked.get("metric", ""))
        if metric and metric != make_strategy(chosen, **tuned).metric:
            tuned.pop("threshold", None)
        return make_strategy(chosen, **{**tuned, **asked})


def read_defaults(content: Mapping[str, Any] | None, where: str) -> DecodingDefaults:
    """The defaults in the content of generation_config.json, none if there are none; ``where`` is shown in errors."""
    section = (content or {}).get(SECTION)
    if section is None:
        return DecodingDefaults()
    known = [entry.name for entry in fields(DecodingDefaults)]
    try:
        if not isinstance(section, Mapping):
            raise SettingsError(f"it must be an object with any of the keys {', '.join(known)}.")
        for key in section:
            checks.known_name("key called", key, known)
        return DecodingDefaults(**section)
    except SettingsError as error:
        raise CheckpointError(
            f'The decoding defaults of {where} (key "{SECTION}" in {FILE}) are wrong: {error} '
            "Correct them, or remove the key to decode with the paper's values."
        ) from error


def write_defaults(folder: str | Path, defaults: DecodingDefaults) -> None:
    """Put the defaults into a checkpoint's generation_config.json, which keeps everything else it says.

    Empty defaults remove the section. The file is replaced in one move.
    """
    path = Path(folder) / FILE
    content = read_object(path) if path.exists() else {}
    content.pop(SECTION, None)
    section = {key: value for key, value in asdict(defaults).items() if value}
    try:
        json_text(section)
    except InputFileError as error:
        raise SettingsError(f"Decoding defaults must be plain JSON values. {error}") from error
    write_json(path, content | ({SECTION: section} if section else {}), lenient=True)
