"""What strategies there are, in words."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from typing import Any, NamedTuple

from soar_dlm.search.catalogue import STRATEGIES


class About(NamedTuple):
    """A strategy by its name: the rule it follows, its settings and their defaults, and the class it is."""

    name: str
    rule: str
    settings: dict[str, Any]
    kind: Any


def all_strategies() -> list[About]:
    """Every strategy that is registered."""
    found = {name: STRATEGIES.get(name) for name in STRATEGIES.names()}
    return [_about(name, factory, found) for name, factory in found.items()]


def _about(name: str, factory: Any, others: dict[str, Any]) -> About:
    preset = factory.keywords if isinstance(factory, partial) else {}
    kind = factory.func if isinstance(factory, partial) else factory
    settings = {
        entry.name: preset.get(entry.name, None if entry.default is MISSING else entry.default)
        for entry in (fields(kind) if is_dataclass(kind) else ())
    }
    rule = (inspect.getdoc(kind) or "").partition("\n")[0].replace("``", "")
    plain = next((other for other, made in others.items() if made is kind and made is not factory), None)
    if preset and plain is not None:
        rule = f"The strategy {plain} with {', '.join(f'{key}={value}' for key, value in preset.items())}"
    return About(name, rule, settings, kind)
