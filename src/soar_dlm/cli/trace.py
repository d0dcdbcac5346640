"""``soar trace``: a decoding played back from its trace, without the model."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer
from rich.console import Console

from soar_dlm import checks
from soar_dlm.cli.canvas import Drawing, Palette, Pieces, clean, joined
from soar_dlm.cli.loading import import_library
from soar_dlm.cli.screen import screen
from soar_dlm.cli.traces import Choice, Chosen, chosen_trace
from soar_dlm.cli.watch import Pane, follow, leave
from soar_dlm.errors import InputFileError
from soar_dlm.figures import Figures

if TYPE_CHECKING:
    from soar_dlm.engine.scene import Scene
    from soar_dlm.playback import Playback
    from soar_dlm.results import Event

FASTEST = 1000.0
LINE_FEED = "\N{SYMBOL FOR LINE FEED}"


def trace(
    file: Annotated[
        Path, typer.Argument(help="Written by 'soar generate --trace', 'soar infill --trace' or 'soar eval --traces'.")
    ],
    index: Annotated[Optional[int], typer.Option(help="Which prompt or problem, counted from 0.")] = None,
    method: Annotated[
        Optional[str], typer.Option(help="Which method of an evaluation, or strategy of a comparison.")
    ] = None,
    sample: Annotated[Optional[int], typer.Option(help="Which of several texts for one prompt.")] = None,
    speed: Annotated[float, typer.Option(help="Steps per second; 0 shows them without a pause.")] = 8.0,
    step: Annotated[Optional[int], typer.Option(help="Show the canvas after this step alone, as text.")] = None,
) -> None:
    """Play a decoding back from its trace, without the model.

    For example: [cyan]soar generate -m mini-llada "..." --trace t.jsonl[/cyan], then [cyan]soar trace t.jsonl[/cyan]

    Without a terminal, every step is a line: its number, the forwards so far, what was done, and the text.
    """
    checks.real_number("speed", speed, 0.0, FASTEST)
    import_library()
    from soar_dlm.playback import Playback

    chosen = chosen_trace(file, Choice(index, method, sample))
    playback = Playback(chosen.trace)
    if not len(chosen.trace):
        raise InputFileError(f"{file}: this trace has no steps.")
    console = screen(stderr=False)
    if step is not None:
        checks.whole_number("step", step, 1, len(chosen.trace))
        _show_step(playback, step, console)
    elif console.is_terminal:
        try:
            _play(chosen, playback, speed, console)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
    else:
        _list(playback)


def _play(chosen: Chosen, playback: Playback, speed: float, console: Console) -> None:
    palette = Palette(console)
    pane = Pane(_drawing(playback.scene, palette))
    last = follow(_paced(playback.events(), speed), pane, palette, console)
    cells = pane.drawing.final(last, _texts(chosen, playback), _pieces(playback.scene))
    leave(cells, pane, palette, console)


def _show_step(playback: Playback, step: int, console: Console) -> None:
    figures, drawing = Figures(), _drawing(playback.scene, Palette(console))
    for event in playback.events():
        line, cells = figures.line(event), drawing.cells(event)
        if event.step == step:
            break
    console.print(line)
    console.print(joined(cells), soft_wrap=True)


def _list(playback: Playback) -> None:
    print("step", "forwards", "mode", "text", sep="\t")
    for event in playback.events():
        standing = None if event.record is None else event.record.standing
        mode = "reading" if standing is None else standing.mode
        print(event.step, event.forwards, mode, clean(event.text).replace("\n", LINE_FEED), sep="\t")


def _paced(events: Iterable[Event], speed: float) -> Iterator[Event]:
    for event in events:
        yield event
        if speed:
            time.sleep(1 / speed)


def _pieces(scene: Scene) -> Pieces:
    return Pieces(lambda ids: "".join(scene.pieces.get(token, "") for token in ids))


def _drawing(scene: Scene, palette: Palette) -> Drawing:
    return Drawing(palette, _pieces(scene), scene.ends, scene.share, scene.around)


def _texts(chosen: Chosen, playback: Playback) -> list[str]:
    """The finished text of each blank: what the file says where the tokens agree, as a stop string may have cut it."""
    written = [""] * len(playback.scene.blanks)
    for cell in playback.answer():
        written[cell.blank] += "" if cell.token is None else playback.scene.pieces.get(cell.token, "")
    said = chosen.texts
    if said is None or len(said) != len(written):
        return written
    return [one if whole.startswith(one) else whole for one, whole in zip(said, written, strict=True)]
