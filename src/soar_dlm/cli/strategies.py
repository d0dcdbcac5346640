"""``soar strategies``: the ways to decode."""

from __future__ import annotations

from soar_dlm.cli.listing import AsJson, Entry, print_listing
from soar_dlm.cli.loading import import_library


def strategies(as_json: AsJson = False) -> None:
    """List the strategies, each with its rule, its settings and their defaults.

    Choose one with --strategy, and change its settings with --beam, --threshold and so on, or with --set NAME=VALUE.
    """
    import_library()
    from soar_dlm.search.about import all_strategies

    print_listing("strategies", [Entry(one.name, one.rule, one.settings) for one in all_strategies()], as_json)
