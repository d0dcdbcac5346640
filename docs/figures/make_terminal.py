"""Draws what ``--watch`` shows: three terminals, each on a dark and on a light background and without colours.

python docs/figures/make_terminal.py
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, Group
from rich.segment import Segment, Segments
from rich.terminal_theme import TerminalTheme
from rich.text import Text

import soar_dlm as soar
from soar_dlm.cli import compare
from soar_dlm.cli.canvas import Palette
from soar_dlm.cli.watch import Pane, drawing_of, frame

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
    """A command, the events that each of its strategies makes, the step to draw, and the text around the blanks."""

    command: str
    lm: soar.LM
    events: dict[str, Iterator[soar.Event]]
    step: int
    around: Sequence[str] = ("", "")


def story() -> Scene:
    lm = soar.load("mini-llada")
    events = {"soar": lm.stream(STORY + "\n", "soar", max_new_tokens=56)}
    return Scene(f'soar generate -m mini-llada -n 56 --watch "{STORY}"', lm, events, 7)


def function() -> Scene:
    lm = soar.load("mini-dreamon")
    template = soar.Template.parse(FUNCTION)
    events = {"greedy": lm.stream_infill(template, "greedy")}
    return Scene("soar infill -m mini-dreamon -s greedy --watch solve.py", lm, events, 24, template.pieces)


def comparison() -> Scene:
    lm = soar.load("mini-llada")
    events = {name: lm.stream(STORY + "\n", name, max_new_tokens=56) for name in ("greedy", "soar")}
    command = f'soar generate -m mini-llada -n 56 --watch --compare greedy,soar "{STORY}"'
    return Scene(command, lm, events, 9)


def draw(scene: Scene, name: str, width: int, height: int) -> None:
    """The same frame in the three looks."""
    seen = {strategy: _until(events, scene.step) for strategy, events in scene.events.items()}
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
        shown = _frame(scene, seen, console)
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
        (HERE / f"{name}-{width}x{height}-{look}.svg").write_text(svg, encoding="utf-8")


def _until(events: Iterator[soar.Event], step: int) -> list[soar.Event]:
    seen = []
    for event in events:
        seen.append(event)
        if event.step == step:
            break
    return seen


def _frame(scene: Scene, seen: dict[str, list[soar.Event]], console: Console) -> Group:
    """What the terminal shows after these events."""
    palette, sides = Palette(console), []
    for name, events in seen.items():
        pane = Pane(drawing_of(scene.lm, scene.lm.strategy(name), palette, scene.around))
        for event in events:
            pane.follow(event)
        sides.append(compare.Side(name, iter(()), pane, events[-1]))
    return frame(sides[0].pane, palette, console) if len(sides) == 1 else compare.frame(sides, palette, console)


if __name__ == "__main__":
    draw(story(), "watch", 80, 24)
    draw(function(), "watch", 120, 40)
    draw(comparison(), "compare", 120, 40)
