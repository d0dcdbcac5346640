"""``soar strategies``: the ways to decode."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from typing import Any

from soar_dlm.cli.listing import AsJson, Entry, print_listing
from soar_dlm.cli.loading import import_library


def strategies(as_json: AsJson = False) -> None:
    """List the strategies, with their settings and defaults.

    Choose one with --strategy, and change its settings with --beam, --threshold and so on, or with --set NAME=VALUE.
    """
    import_library()
    from soar_dlm.search.catalogue import STRATEGIES

    print_listing("strategies", [_entry(name, STRATEGIES.get(name)) for name in STRATEGIES.names()], as_json)


def _entry(name: str, factory: Any) -> Entry:
    preset = factory.keywords if isinstance(factory, partial) else {}
    kind = factory.func if isinstance(factory, partial) else factory
    settings = {
        entry.name: preset.get(entry.name, None if entry.default is MISSING else entry.default)
        for entry in (fields(kind) if is_dataclass(kind) else ())
    }
    about = (inspect.getdoc(kind) or "").partition("\n")[0].replace("``", "")
    return Entry(name, about, settings)
