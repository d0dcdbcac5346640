"""Terminals for tests: one that remembers what it was given, and what is left of that on its screen."""

from __future__ import annotations

import io

from rich.console import Console


def terminal(width: int = 40, height: int = 10, colours: str = "truecolor", no_color: bool = False) -> Console:
    return Console(
        file=io.StringIO(),
        width=width,
        height=height,
        force_terminal=True,
        color_system=colours,  # type: ignore[arg-type]
        no_color=no_color,
        legacy_windows=False,
        _environ={},
    )


class Screen:
    """The lines a terminal has been given that are still there, from what rich writes: text, line feeds, cursor up."""

    def __init__(self, output: str) -> None:
        self.lines, self.row = [""], 0
        rest = output
        while rest:
            if rest.startswith("\x1b["):
                end = next(at for at, character in enumerate(rest) if at > 1 and character.isalpha())
                count = int(rest[2:end]) if rest[2:end].isdigit() else 1
                if rest[end] == "A":
                    self.row -= count
                elif rest[end] == "K":
                    self.lines[self.row] = ""
                rest = rest[end + 1 :]
                continue
            if rest[0] == "\n":
                self.row += 1
                self.lines += [""] * (self.row + 1 - len(self.lines))
            elif rest[0] != "\r":
                self.lines[self.row] += rest[0]
            rest = rest[1:]
