"""How figures look: legible in print, to colour-blind readers, and on light and dark pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from textwrap import fill
from typing import TYPE_CHECKING, Any

from soar_dlm.errors import MissingExtra, UnknownName

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("svg", "png", "pdf")
LIGHT, DARK = "light", "dark"

_COLOURS: dict[str, tuple[str, str]] = {
    "ink": ("#1f2328", "#e6edf3"),
    "faint": ("#6a737d", "#9aa4af"),
    "grid": ("#dfe3e8", "#30363d"),
    "paper": ("#ffffff", "#0d1117"),
    "blue": ("#0072b2", "#58a6dd"),
    "orange": ("#d98a00", "#f0b040"),
    "green": ("#00845f", "#3fc79a"),
    "red": ("#c8500a", "#ff8b4d"),
    "purple": ("#a8558a", "#e08fc0"),
    "sky": ("#3f9fd8", "#8ccbf2"),
    "grey": ("#8b949e", "#768390"),
}
"""Name -> colour on light paper, and on dark. The hues are Okabe and Ito's, which colour-blind readers tell apart."""

SERIES = ("blue", "orange", "green", "red", "purple", "sky", "grey")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""Series differ in their marker, too, for print in black and white."""

LINE = 124
"""Characters in a line of a caption."""
WIDTH, HEIGHT = 7.2, 2.9
"""Inches across a figure, and how high it usually is without its caption."""
EDGE = 0.012
"""The share of a figure's width that stays empty at its edges."""
_CAPTION = 7.5
"""The size of a caption's letters, in points."""


@dataclass(frozen=True)
class Theme:
    """Colours by name; see :data:`SERIES`."""

    name: str = LIGHT

    def __post_init__(self) -> None:
        if self.name not in (LIGHT, DARK):
            raise UnknownName("theme", self.name, (LIGHT, DARK))

    def __getitem__(self, colour: str) -> str:
        return _COLOURS[colour][self.name == DARK]

    def series(self, number: int) -> dict[str, Any]:
        """The colour and the marker of a series."""
        return {"color": self[SERIES[number % len(SERIES)]], "marker": MARKERS[number % len(MARKERS)]}

    @property
    def settings(self) -> dict[str, Any]:
        """What matplotlib calls all this."""
        ink, grid = self["ink"], self["grid"]
        return {
            "axes.axisbelow": True,
            "axes.edgecolor": self["faint"],
            "axes.facecolor": "none",
            "axes.grid": True,
            "axes.labelcolor": ink,
            "axes.labelsize": 9,
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlecolor": ink,
            "axes.titlesize": 9.5,
            "axes.unicode_minus": True,
            "figure.facecolor": self["paper"],
            "font.family": "DejaVu Sans",
            "font.size": 8.5,
            "grid.color": grid,
            "grid.linewidth": 0.7,
            "hatch.color": self["paper"],
            "legend.fontsize": 8,
            "legend.frameon": False,
            "lines.linewidth": 1.6,
            "lines.markersize": 5,
            "savefig.dpi": 200,
            "svg.fonttype": "path",
            "text.color": ink,
            "xtick.color": self["faint"],
            "xtick.labelcolor": ink,
            "ytick.color": self["faint"],
            "ytick.labelcolor": ink,
        }


def drawable() -> bool:
    """Whether there is matplotlib."""
    return find_spec("matplotlib") is not None


def check_drawable() -> None:
    """Refuse to draw without matplotlib."""
    if not drawable():
        raise MissingExtra("matplotlib", "plots", "Drawing figures")


@contextmanager
def sheet(height: float, caption: str, theme: Theme) -> Iterator[Figure]:
    """A figure with its caption, if any, below; axes drawn in it keep clear of the caption."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with rc_context(theme.settings):
        text = fill(caption, LINE)
        below = ((text.count("\n") + 1) * _CAPTION * 1.35 + 8) / 72 if text else 0.0
        inside = (EDGE, below / (height + below), 1 - 2 * EDGE, height / (height + below) - EDGE)
        figure = Figure(figsize=(WIDTH, height + below), layout=ConstrainedLayoutEngine(rect=inside))
        figure.text(
            EDGE,
            4 / 72 / (height + below),
            text,
            fontsize=_CAPTION,
            color=theme["faint"],
            va="bottom",
            ha="left",
            linespacing=1.35,
            parse_math=False,
        )
        yield figure


def saved(figure: Figure, kind: str, theme: Theme, follow: bool = True) -> bytes:
    """The figure as a file of this kind; the same figure gives the same bytes.

    With ``follow``, an SVG on the light theme turns dark where the reader's system asks for it.
    """
    from matplotlib import rc_context

    metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[kind]
    content = BytesIO()
    with rc_context({**theme.settings, "svg.hashsalt": "soar-dlm"}):
        figure.savefig(content, format=kind, metadata=metadata)
    made = content.getvalue()
    follows = follow and kind == "svg" and theme.name == LIGHT
    return adaptive(made.decode()).encode() if follows else made


def adaptive(svg: str) -> str:
    """An SVG of the light theme whose colours follow the reader's; viewers that know no variables show it light."""
    names = {light: name for name, (light, _) in _COLOURS.items()}

    def replaced(found: re.Match[str]) -> str:
        name = names.get(found["colour"].lower())
        return found[0] if name is None else f"{found[0]}; {found['what']}: var(--{name})"

    def hatched(found: re.Match[str]) -> str:
        """The paper of a hatch has its colour in an attribute, and no style."""
        name = names.get(found["colour"].lower())
        return found[0] if name is None else f'{found[0]} style="fill: var(--{name})"'

    coloured = re.sub(r"(?P<what>fill|stroke): (?P<colour>#[0-9a-fA-F]{6})", replaced, svg)
    coloured = re.sub(r'fill="(?P<colour>#[0-9a-fA-F]{6})"', hatched, coloured)
    light, dark = ("".join(f"--{name}:{pair[place]};" for name, pair in _COLOURS.items()) for place in (0, 1))
    rules = f"<style>svg{{{light}}}@media (prefers-color-scheme: dark){{svg{{{dark}}}}}</style>"
    return re.sub(r"(<svg\b[^>]*>)", rf"\1{rules}", coloured, count=1)
