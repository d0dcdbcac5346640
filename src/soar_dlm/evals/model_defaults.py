"""Putting the setting that a sweep found into the checkpoint's own decoding defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soar_dlm import files
from soar_dlm.errors import InputFileError, SettingsError
from soar_dlm.evals.comparison import weights_fingerprint
from soar_dlm.evals.sweeps import Setting

if TYPE_CHECKING:
    from soar_dlm.models.defaults import DecodingDefaults

STRATEGY = "soar"


def save_to_model(folder: Path, point: Setting, metric: str, weights: str | None) -> DecodingDefaults:
    """Write a point of a sweep into ``folder``; ``weights`` is the fingerprint of the model that was swept."""
    return _saved(folder, weights, lambda defaults: with_setting(defaults, point, metric))


def save_tuned(
    folder: Path, strategy: str, settings: Mapping[str, Any], weights: str | None, as_default: bool = False
) -> DecodingDefaults:
    """Write what a sweep found for a strategy into ``folder``; it stays apart from SOAR's threshold."""
    return _saved(folder, weights, lambda defaults: with_tuned(defaults, strategy, settings, as_default))


def _saved(
    folder: Path, weights: str | None, change: Callable[[DecodingDefaults], DecodingDefaults]
) -> DecodingDefaults:
    from soar_dlm.models.defaults import FILE, read_defaults, write_defaults
    from soar_dlm.models.source import read_object

    with files.explained("read", folder):
        if not (folder / "config.json").exists():
            raise InputFileError(f"{folder} is not the folder of a checkpoint: it has no config.json.")
    if weights is not None and weights != weights_fingerprint(str(folder)):
        raise SettingsError(f"The weights in {folder} are not those of the sweep. Sweep that model, or name another.")
    with files.locked(folder):
        content = read_object(folder / FILE) if (folder / FILE).exists() else None
        found = change(read_defaults(content, str(folder)))
        write_defaults(folder, found)
    return found


def with_setting(defaults: DecodingDefaults, point: Setting, metric: str) -> DecodingDefaults:
    """The defaults with the point's threshold for the metric; thresholds for other metrics stay.

    The strategy becomes SOAR with the point's beam. If it is already SOAR by another metric, it stays as it is, and
    only the threshold is new. What ``tuned`` says of SOAR would hide it, and goes.
    """
    tuned = {name: settings for name, settings in defaults.tuned.items() if name != STRATEGY}
    found = replace(defaults, thresholds={**defaults.thresholds, metric: point.threshold}, tuned=tuned)
    is_soar = defaults.strategy == STRATEGY
    if is_soar and defaults.settings.get("metric", "probability") != metric:
        return found
    before = defaults.settings if is_soar else {} if metric == "probability" else {"metric": metric}
    return replace(found, strategy=STRATEGY, settings={**before, "beam": point.beam})


def with_tuned(
    defaults: DecodingDefaults, strategy: str, settings: Mapping[str, Any], as_default: bool
) -> DecodingDefaults:
    """The defaults with these settings wherever the strategy is named; ``as_default`` makes it the default as well.

    If it is the default already, what its own settings say of the same things goes.
    """
    found = replace(defaults, tuned={**defaults.tuned, strategy: dict(settings)})
    if defaults.strategy == strategy:
        others = {name: value for name, value in defaults.settings.items() if name not in settings}
        return replace(found, settings=others)
    return replace(found, strategy=strategy, settings={}) if as_default else found
