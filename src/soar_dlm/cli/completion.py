"""Values that the shell completes. None of these may import PyTorch: the user is waiting for the Tab key."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def models(incomplete: str) -> list[str]:
    """Embedded names, well-known Hub ids, and folders."""
    from soar_dlm.models.embedded import EMBEDDED
    from soar_dlm.models.families import FAMILIES

    known = [*EMBEDDED, *(example for family in FAMILIES for example in family.examples)]
    return [*_starting(known, incomplete), *_folders(incomplete)]


def strategies(incomplete: str) -> list[str]:
    from soar_dlm.search.catalogue import STRATEGIES

    return _listed(STRATEGIES.names(), incomplete)


def metrics(incomplete: str) -> list[str]:
    from soar_dlm.search.metrics import METRICS

    return _starting(METRICS.names(), incomplete)


def tasks(incomplete: str) -> list[str]:
    from soar_dlm.tasks.catalogue import TASKS

    return _listed(TASKS.names(), incomplete)


def figures(incomplete: str) -> list[str]:
    from soar_dlm.plots import FIGURES

    return _starting([*FIGURES, "all"], incomplete)


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _listed(names: Iterable[str], incomplete: str) -> list[str]:
    """Names, also as the last of a list with commas between."""
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in _starting(names, last)]


def _folders(incomplete: str) -> list[str]:
    parent, _, start = incomplete.rpartition("/")
    place = Path(parent or ("/" if incomplete.startswith("/") else "."))
    try:
        found = sorted(one.name for one in place.iterdir() if one.is_dir() and one.name.startswith(start))
    except OSError:
        return []
    hidden = not start.startswith(".")
    return [
        f"{incomplete[: len(incomplete) - len(start)]}{name}/"
        for name in found
        if not (hidden and name.startswith("."))
    ]
