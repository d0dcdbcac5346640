"""Draws what ``--watch`` shows: two terminals, each on a dark and on a light background and without colours.

python docs/figures/make_terminal.py
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.segment import Segment, Segments
from rich.terminal_theme import TerminalTheme
from rich.text import Text

import soar_dlm as soar
from soar_dlm.cli.canvas import Drawing, Palette, Window
from soar_dlm.cli.figures import Figures
from soar_dlm.cli.watch import as_share, frame, pieces_of
from soar_dlm.search.metrics import get_metric

HERE = Path(__file__).parent

_COLOURS = [(12, 12, 12), (197, 15, 31), (19, 161, 14), (193, 156, 0), (0, 55, 218), (136, 23, 152), (58, 150, 221)]
THEMES = {
    "dark": TerminalTheme((24, 24, 24), (220, 220, 220), [*_COLOURS, (204, 204, 204)]),
    "light": TerminalTheme((255, 255, 255), (40, 40, 40), [*_COLOURS, (204, 204, 204)]),
}

STORY = "Eva wins 10 stickers. Eva finds 18 more stickers. Eva sells 3 stickers. How many stickers does Eva have now?"
FUNCTION = '''\
def solve(xs):
    """Keep the even numbers and return their sum."""
{blank:32}
    return total
'''

SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">
<style>
{styles}
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; }}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect width="{terminal_width}" height="{terminal_height}" /></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g></g></svg>
"""


@dataclass(frozen=True)
class Scene:
    """A command, the events it makes, the step to draw, and the text around the blanks."""

    command: str
    lm: soar.LM
    events: Iterator[soar.Event]
    step: int
    around: Sequence[str] = ("", "")


def story() -> Scene:
    lm = soar.load("mini-llada")
    events = lm.stream(STORY + "\n", "soar", max_new_tokens=56)
    return Scene(f'soar generate -m mini-llada -n 56 --watch "{STORY}"', lm, events, 7)


def function() -> Scene:
    lm = soar.load("mini-dreamon")
    template = soar.Template.parse(FUNCTION)
    events = lm.stream_infill(template, "greedy")
    return Scene("soar infill -m mini-dreamon -s greedy --watch solve.py", lm, events, 24, template.pieces)


def draw(scene: Scene, width: int, height: int) -> None:
    """The same frame in the three looks."""
    events = []
    for event in scene.events:
        events.append(event)
        if event.step == scene.step:
            break
    for look in ("dark", "light", "no-color"):
        console = Console(
            file=io.StringIO(),
            record=True,
            width=width,
            height=height,
            force_terminal=True,
            color_system="truecolor",
            no_color=look == "no-color",
        )
        palette, metric = Palette(console), get_metric(scene.lm.strategy().metric)
        drawing = Drawing(palette, pieces_of(scene.lm), scene.lm.end_token_ids, as_share(metric), scene.around)
        window, figures = Window(), Figures()
        for event in events:
            shown = frame(drawing, event, window, palette, console, figures.line(event))
        lines = [
            *console.render_lines(Text(f"$ {scene.command}"), pad=False),
            *console.render_lines(shown, pad=False),
        ]
        empty = [[Segment("")]] * (height - len(lines))
        for line in [*lines, *empty]:
            console.print(Segments([*line, Segment.line()]), end="")
        svg = console.export_svg(
            title="", theme=THEMES["dark" if look == "no-color" else look], code_format=SVG, unique_id="t"
        )
        (HERE / f"watch-{width}x{height}-{look}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    draw(story(), 80, 24)
    draw(function(), 120, 40)
