"""How the paper measures: which methods, with which settings, on canvases that are decoded in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from soar_dlm import checks
from soar_dlm.errors import SettingsError, UnknownName
from soar_dlm.evals.comparison import Method
from soar_dlm.models.defaults import DecodingDefaults
from soar_dlm.options import Options, make_options
from soar_dlm.presets import Preset, read_preset
from soar_dlm.search.catalogue import STRATEGIES
from soar_dlm.tasks.task import Task

LABELS = {
    "greedy": "Greedy",
    "adaptive": "Adaptive Parallel",
    "pbs": "PBS",
    "pbs-parallel": "PBS parallel",
    "soar": "SOAR",
    "deliberate": "Deliberate",
    "factor": "Factor",
    "frechet": "Fréchet",
    "entropy-bound": "Entropy bound",
    "klass": "KLASS",
    "lopa": "LoPA",
    "freedave": "FreeDave",
    "core": "CORE",
}
"""What strategies are called in tables and figures: as in the paper they come from."""

PROTOCOLS: dict[str, dict[str, Any]] = {
    "paper": {"early_exit": False, "truncate_prompt": True},
    "library": {"truncate_prompt": True},
}
"""Decoding options by name: ``paper`` decodes the full canvas, ``library`` stops where the text ends."""

BENCHMARKS = {"humaneval_infilling": "humaneval-infilling-single"}
"""Other names of tasks."""


def task_names(names: Sequence[str]) -> list[str]:
    return [BENCHMARKS.get(name, name) for name in names]


def named_presets(paths: Sequence[Path]) -> dict[str, Preset]:
    """The presets in some files, by the names of the files without their endings."""
    found: dict[str, Preset] = {}
    for path in paths:
        if path.stem in found:
            raise SettingsError(
                f"Two presets are called {path.stem!r}; in tables they need different names. Rename one."
            )
        found[path.stem] = read_preset(path)
    return found


def methods(
    strategies: Sequence[str],
    lengths: Sequence[int],
    task: Task,
    protocol: str = "paper",
    presets: Mapping[str, Preset] | None = None,
    defaults: DecodingDefaults | None = None,
    decoding: Mapping[str, Any] | None = None,
    **settings: Any,
) -> dict[str, Method]:
    """Every strategy at every length, and every preset under its name.

    A setting applies to the strategies that have it; at least one must. What is left open is as it was tuned for the
    checkpoint, whose ``defaults`` these are. A threshold that is still open becomes the model's default: the
    checkpoint's own, or the paper's where the checkpoint has none. All are decoded with the same options: those of the
    ``protocol``, and ``decoding``.
    """
    for length in lengths:
        checks.whole_number("length", length, 1)
    options = decoding_options(task, protocol, decoding)
    for setting in settings:
        if not any(setting in accepted(name, settings) for name in strategies):
            raise SettingsError(f"None of the strategies {', '.join(strategies)} has a setting {setting!r}.")
    known = defaults or DecodingDefaults()
    chosen = {LABELS.get(name, name): known.make(name, **accepted(name, settings)) for name in strategies}
    taken = {name.casefold() for name in (*STRATEGIES.names(), *LABELS.values(), *strategies)}
    for name, preset in (presets or {}).items():
        if name.casefold() in taken:
            raise SettingsError(f"A preset cannot be called {name!r}: a method has that name. Rename its file.")
        chosen[name] = preset.make()
    if not chosen:
        raise SettingsError("Name at least one strategy or preset to measure.")
    return {
        f"{label} at {length}": Method(strategy, length, options, label)
        for length in lengths or [task.canvas]
        for label, strategy in chosen.items()
    }


def decoding_options(task: Task, protocol: str, own: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """The decoding options of a protocol for a task, and a user's ``own``, such as blocks and a cache."""
    if protocol not in PROTOCOLS:
        raise UnknownName("protocol", protocol, PROTOCOLS)
    make_options(Options, own or {})  # a mistake does not wait for the weights
    return {**({} if task.infills else PROTOCOLS[protocol]), **(own or {})}  # a blank has no end token to stop at


def accepted(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a strategy has."""
    factory = STRATEGIES.get(name)
    kind = getattr(factory, "func", factory)
    known = {entry.name for entry in fields(kind)} if is_dataclass(kind) else set()
    return {key: value for key, value in settings.items() if key in known}
