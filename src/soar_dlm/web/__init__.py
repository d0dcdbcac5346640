"""How a decoding looks in a browser: scripts and styles that a report has inside it and the server sends."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files

STYLES = ("base.css", "trace.css")
SCRIPTS = (
    "dom.js",
    "playback.js",
    "sentences.js",
    "canvas.js",
    "lanes.js",
    "legend.js",
    "player.js",
    "view.js",
)
"""The modules, each after those it imports."""

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./[\w.]+";\n', re.MULTILINE)


def asset(name: str) -> str:
    """The text of a script or a style."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def joined(modules: Sequence[str]) -> str:
    """Modules as one that imports nothing, for a page that stands alone; their names must differ."""
    return "\n" + "\n".join(_IMPORT.sub("", module) for module in modules)
