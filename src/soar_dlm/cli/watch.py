"""A canvas that fills before your eyes, each token coloured by how sure the model was of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

if TYPE_CHECKING:
    from soar_dlm.engine.trace import StepRecord
    from soar_dlm.lm import LM
    from soar_dlm.results import Event, Result


class BeamConfidence:
    """The confidence of every committed token of every candidate, followed from beam to beam."""

    def __init__(self) -> None:
        self._beam: list[dict[int, float]] = [{}]

    def follow(self, record: StepRecord) -> dict[int, float]:
        """Canvas position -> confidence for the best candidate after this step."""
        self._beam = [entry.follow(self._beam[entry.origin]) for entry in record.beam]
        return self._beam[0]


def colour(share: float) -> str:
    """Red for 0, yellow for one half, green for 1."""
    share = min(max(share, 0.0), 1.0)
    red, green = (220, int(60 + 280 * share)) if share < 0.5 else (int(220 - 300 * (share - 0.5)), 200)
    return f"rgb({red},{green},70)"


def as_share(confidence: float) -> float:
    """Confidence on a scale from 0 to 1, whatever the metric (negative entropy is at most 0)."""
    return confidence if confidence > 0 else 2.0**confidence


def canvas(event: Event, pieces: list[str], confidence: dict[int, float], around: Sequence[str] = ("", "")) -> Text:
    """The generated part: masked places as dim blocks, tokens in the colour of their confidence.

    ``around`` is the text before, between and behind the blanks.
    """
    text = Text(around[0], style="dim")
    for blank, behind in enumerate(around[1:]):
        for place, piece, masked, number in zip(event.positions, pieces, event.masked, event.blanks, strict=True):
            if number != blank:
                continue
            if masked:
                text.append("░", style="not dim bright_black")
            elif place in confidence:
                text.append(piece, style=f"not dim {colour(as_share(confidence[place]))}")
            else:
                text.append("·", style="not dim bright_black")  # filled in by an early exit
        text.append(behind)
    return text


def footer(event: Event) -> Text:
    left = sum(event.masked)
    record = event.record
    mode = record.beam[0].mode if record is not None else "done"
    width = len(record.beam) if record is not None else 0
    sizes = record.beam[0].sizes if record is not None else ()
    edits = "".join(f"  {name} {sizes.count(size)}" for name, size in (("expand", 2), ("delete", 0)) if size in sizes)
    text = Text(
        f"step {event.step}  forwards {event.forwards}  beam {width}  {mode:<8}  {left} masked{edits}   ", style="dim"
    )
    text.append("unsure ", style=colour(0.2))
    text.append("▇▇ ", style=colour(0.5))
    text.append("sure", style=colour(1.0))
    return text


def show(lm: LM, events: Iterator[Event], console: Console, around: Sequence[str] = ("", "")) -> Result:
    """Show the events as they come and return the result of the last."""
    confidence: dict[int, float] = {}
    beam = BeamConfidence()
    result = None
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        for event in events:
            if event.record is not None:
                confidence = beam.follow(event.record)
            body = canvas(event, lm.pieces(event.token_ids), confidence, around)
            live.update(Group(body, Text(), footer(event)), refresh=True)
            result = event.result
    assert result is not None
    return result
