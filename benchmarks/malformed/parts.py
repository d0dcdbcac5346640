"""The parts of a run, and what makes a case of each."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.malformed import calls, commands, files
from benchmarks.malformed.chooser import Chooser
from benchmarks.malformed.room import Case, Room

MAKERS: dict[str, Callable[[Chooser, Room], Case]] = {
    "api": calls.api,
    "templates": calls.templates,
    "loading": files.loading,
    "command": commands.commands,
    "processes": commands.processes,
    "lines": files.lines,
    "presets": files.presets,
    "recipes": files.recipes,
    "results": files.results,
}
