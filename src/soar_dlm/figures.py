"""The line below a canvas that says how far the decoding is and what it is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from soar_dlm.engine.trace import BeamEntry, StepRecord
    from soar_dlm.results import Event

_WORDS = {"branch": "other token", "reopened": "taken back", "start": "reading"}
"""Modes whose names say too little by themselves."""


class Figures:
    """Follows the events of one request and puts each into a line.

    1. A beam has its width, and the mode of its best candidate.
    2. A search that goes down several times has the dive it is in: "draft 1", "draft 2", then "branch 1" and so on.
    3. A text that was verified in this step has its score; the best one so far stays in the line.
    """

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._dive = 0
        self._best: float | None = None

    def line(self, event: Event) -> str:
        parts = [f"step {event.step}", f"forwards {event.forwards}"]
        if event.record is not None:
            self._follow(event.record)
            parts += self._doing(event.record, event)
        if self._best is not None and event.result is None:
            parts.append(f"best {self._best:.4f}")
        return "  ".join(parts)

    def _follow(self, record: StepRecord) -> None:
        """Note the dives and the verdicts of a step."""
        for entry in record.beam:
            if entry.dive and entry.dive not in self._names:
                kind = "branch" if entry.mode == "branch" else "draft"
                before = sum(name.startswith(kind) for name in self._names.values())
                self._names[entry.dive] = f"{kind} {before + 1}"
            if entry.verdict is not None:
                self._best = entry.verdict if self._best is None else max(self._best, entry.verdict)
        if record.standing is not None:
            self._dive = record.standing.dive

    def _doing(self, record: StepRecord, event: Event) -> list[str]:
        masked = f"{sum(event.masked)} masked"
        standing, name = record.standing, self._names.get(self._dive, "")
        if event.result is not None and name:
            score = event.result.details.get("score")
            return [f"answer: {name}" if score is None else f"answer: {name}, score {score:.4f}"]
        verdicts = [
            f"{self._names.get(one.dive, 'text')} scored {one.verdict:.4f}"
            for one in record.beam
            if one.verdict is not None
        ]
        if verdicts:
            going_on = standing is not None and standing.verdict is None
            return [f"{verdicts[-1]}, now {name or 'another'}", masked] if going_on else [verdicts[-1]]
        if standing is None:
            parts = ["reading", masked] if any(event.masked) else ["verifying"]
        else:
            parts = [*_what(record, standing), masked]
        return [name, *parts] if name else parts


def _what(record: StepRecord, standing: BeamEntry) -> list[str]:
    """The width of the beam, the mode of its best candidate, and the edits of a canvas that changes its length."""
    width = sum(record.beam[place].dive == standing.dive for place in record.frontier())
    beam = [f"beam {width}"] if width > 1 or not standing.dive else []
    edits = [
        f"{name} {standing.sizes.count(size)}"
        for name, size in (("expand", 2), ("delete", 0))
        if size in standing.sizes
    ]
    return [*beam, f"{_WORDS.get(standing.mode, standing.mode):<8}", *edits]
