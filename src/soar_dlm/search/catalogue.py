"""Strategies by name, for commands and configuration files; other packages add theirs by entry point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from soar_dlm import checks
from soar_dlm.doors import door
from soar_dlm.errors import SettingsError, shown
from soar_dlm.registry import Registry

if TYPE_CHECKING:
    from soar_dlm.search.strategy import Strategy

STRATEGIES: Registry[Callable[..., Strategy]] = Registry(
    "strategy",
    "soar_dlm.strategies",
    {
        "greedy": "soar_dlm.search.greedy:Greedy",
        "adaptive": "soar_dlm.search.adaptive_parallel:AdaptiveParallel",
        "pbs": "soar_dlm.search.position_beam:PositionBeam",
        "pbs-parallel": "soar_dlm.search.variants:pbs_parallel",
        "soar": "soar_dlm.search.soar:Soar",
        "soar-llada": "soar_dlm.search.variants:soar_llada",
        "soar-dream": "soar_dlm.search.variants:soar_dream",
        "deliberate": "soar_dlm.search.deliberate:Deliberate",
        "factor": "soar_dlm.search.factor:Factor",
        "frechet": "soar_dlm.search.frechet:Frechet",
        "entropy-bound": "soar_dlm.search.entropy_bound:EntropyBound",
        "klass": "soar_dlm.search.klass:Klass",
        "lopa": "soar_dlm.search.lopa:Lopa",
        "freedave": "soar_dlm.search.freedave:FreeDave",
        "core": "soar_dlm.search.core:Core",
    },
)


@door
def make_strategy(name: str, /, **settings: Any) -> Strategy:
    """The strategy registered as ``name`` with these settings; a setting it does not have is refused."""
    from soar_dlm.search.strategy import Strategy

    factory = STRATEGIES.get(name)
    kind = factory.func if isinstance(factory, partial) else factory
    known = [field.name for field in fields(kind)] if is_dataclass(kind) else []
    for setting in settings:
        checks.known_name(f"setting of strategy {name!r} called", setting, known)
    for setting, value in settings.items():
        if isinstance(getattr(kind, setting, None), bool):  # the word "False" counts as true
            checks.true_or_false(setting, value)
    strategy = factory(**settings)
    if not isinstance(strategy, Strategy):
        raise SettingsError(f"Strategy {name!r} is not a soar_dlm.Strategy; ask its author to subclass it.")
    return strategy


@door
def as_strategy(strategy: Strategy | str | Mapping[str, Any] | None, what: str = "strategy") -> Strategy:
    """A strategy given as an object, by name, as a table, or left out (SOAR as in the paper).

    The table has the name as "strategy" and settings beside it, as files and JSON can express it.
    """
    from soar_dlm.search.strategy import Strategy

    if strategy is None:
        return make_strategy("soar")
    if isinstance(strategy, str):
        return make_strategy(strategy)
    if isinstance(strategy, Mapping):
        settings = {**checks.table(what, strategy)}
        if "strategy" not in settings:
            raise SettingsError(f'{what} must name its strategy, as in {{"strategy": "soar", "beam": 2}}.')
        return make_strategy(settings.pop("strategy"), **settings)
    if not isinstance(strategy, Strategy):
        raise SettingsError(f"{what} must be a name or a soar_dlm.Strategy such as Soar(), not {shown(strategy)}.")
    return strategy


@door
def as_table(strategy: Strategy) -> dict[str, Any]:
    """The table that :func:`as_strategy` makes this strategy from: its name, and the settings that are not defaults."""
    kind: Any = type(strategy)
    name = next((name for name in STRATEGIES.names() if STRATEGIES.get(name) is kind), None)
    if name is None:
        raise SettingsError(f"{kind.__name__} is not registered under a name, so it cannot be written down.")
    settings = {field.name: getattr(strategy, field.name) for field in fields(kind)}
    defaults = {field.name: field.default for field in fields(kind)}
    return {"strategy": name} | {key: value for key, value in settings.items() if value != defaults[key]}
