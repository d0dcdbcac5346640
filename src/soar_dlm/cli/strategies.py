"""``soar strategies``: the ways to decode."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from typing import Any

from soar_dlm.cli.listing import AsJson, Entry, print_listing
from soar_dlm.cli.loading import import_library


def strategies(as_json: AsJson = False) -> None:
    """List the strategies, each with its rule, its settings and their defaults.

    Choose one with --strategy, and change its settings with --beam, --threshold and so on, or with --set NAME=VALUE.
    """
    import_library()
    from soar_dlm.search.catalogue import STRATEGIES

    found = {name: STRATEGIES.get(name) for name in STRATEGIES.names()}
    print_listing("strategies", [_entry(name, factory, found) for name, factory in found.items()], as_json)


def _entry(name: str, factory: Any, others: Mapping[str, Any]) -> Entry:
    preset = factory.keywords if isinstance(factory, partial) else {}
    kind = factory.func if isinstance(factory, partial) else factory
    settings = {
        entry.name: preset.get(entry.name, None if entry.default is MISSING else entry.default)
        for entry in (fields(kind) if is_dataclass(kind) else ())
    }
    about = (inspect.getdoc(kind) or "").partition("\n")[0].replace("``", "")
    plain = next((other for other, made in others.items() if made is kind and made is not factory), None)
    if preset and plain is not None:
        about = f"The strategy {plain} with {', '.join(f'{key}={value}' for key, value in preset.items())}"
    return Entry(name, about, settings)
