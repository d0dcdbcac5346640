"""Loading a model, with a line in the terminal that says what takes so long."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.text import Text

from soar_dlm import checks
from soar_dlm.cli.screen import screen

if TYPE_CHECKING:
    from soar_dlm.lm import LM


@contextmanager
def status(text: str) -> Iterator[None]:
    """Show ``text`` while something takes its time; in a terminal only."""
    console = screen()
    if not console.is_terminal:
        yield
        return
    with console.status(Text(text)):
        yield


def import_library() -> None:
    """Import PyTorch and what needs it."""
    if "soar_dlm.lm" not in sys.modules:
        with status("Loading PyTorch ..."):
            importlib.import_module("soar_dlm.lm")


def loaded(model: str, given: Mapping[str, Any]) -> LM:
    """The model with the options of the group ``LOADING`` that were given."""
    import_library()
    from soar_dlm.engine.settings import EngineSettings
    from soar_dlm.lm import load

    options = dict(given)
    own = {name: options.pop(name) for name in ("max_rows", "cache_budget") if name in options}
    if "cache_budget" in own:
        own["cache_budget"] = int(checks.real_number("cache_budget", own["cache_budget"], 0.0, 2.0**20) * 2**30)
    engine = EngineSettings(**own)
    with status(f"Loading {model} ..."):
        return load(model, engine=engine, **options)
