"""The order of writing as a picture: positions from left to right, steps from top to bottom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from soar_dlm.notebook.spans import HUE, level, opacity

WIDEST, TALLEST = 560.0, 168.0
FAINTEST, STRONGEST = 0.45, 1.0
"""How opaque the marks are: stronger than the background of a token."""

TITLE = "When each position was written: left to right on the canvas, top to bottom in time"


class Mark(NamedTuple):
    """A position that was written in a step; how sure the model was, from 0 to 1, if it is in the answer."""

    position: int
    step: int
    share: float | None = None


def strip(marks: Sequence[Mark], steps: int) -> str:
    """An inline SVG; what is not in the answer is grey. Nothing without marks."""
    if not marks:
        return ""
    column = {position: place for place, position in enumerate(sorted({mark.position for mark in marks}))}
    across, down = min(WIDEST / len(column), 9.0), min(TALLEST / steps, 7.0)
    width, height = across * len(column), down * steps
    groups: dict[int, list[Mark]] = {}
    for mark in marks:
        groups.setdefault(-1 if mark.share is None else level(mark.share), []).append(mark)
    paths = []
    for strength, own in sorted(groups.items()):
        boxes = "".join(_box(column[mark.position] * across, (mark.step - 1) * down, across, down) for mark in own)
        paths.append(f'<path d="{boxes}" {_fill(strength)}/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.1f} {height:.1f}" '
        f'width="{width:.0f}" height="{height:.0f}" style="max-width:100%"><title>{TITLE}</title>'
        f'<rect width="{width:.1f}" height="{height:.1f}" fill="currentColor" fill-opacity=".05"/>'
        f"{''.join(paths)}</svg>"
    )


def answered(marks: Iterable[Mark], passed: Iterable[Mark]) -> list[Mark]:
    """The marks of the answer, and of what was written on the way and is not in it."""
    kept = list(marks)
    known = {(mark.position, mark.step) for mark in kept}
    return [*(mark for mark in dict.fromkeys(passed) if (mark.position, mark.step) not in known), *kept]


def _fill(strength: int) -> str:
    if strength < 0:
        return 'fill="currentColor" fill-opacity=".3"'
    return 'fill="rgb({},{},{})" fill-opacity="{:.2f}"'.format(*HUE, opacity(strength, FAINTEST, STRONGEST))


def _box(x: float, y: float, width: float, height: float) -> str:
    """A box a little smaller than its cell, so that neighbours stay apart where there is room."""
    wide, tall = max(width - 1, width * 0.7), max(height - 1, height * 0.7)
    return f"M{x:.1f} {y:.1f}h{wide:.1f}v{tall:.1f}h-{wide:.1f}z"
