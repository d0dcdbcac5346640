"""What happened in a decoding, step by step: made by the engine, read by streams, files and plots."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from typing import Any

from soar_dlm.search.candidate import Candidate, Mode


@dataclass(frozen=True)
class BeamEntry:
    """A candidate that survived a step.

    ``origin`` is its parent's place in the beam of the step before; ``positions`` are positions of the parent's canvas
    committed in this step with their ``tokens`` and ``confidence``; ``sizes`` says how many positions each became:
    1 for an ordinary token, 2 for an expand, 0 for a delete. ``left`` counts the positions still masked.
    """

    mode: Mode
    origin: int
    positions: tuple[int, ...]
    tokens: tuple[int, ...]
    confidence: tuple[float, ...]
    rank: float
    left: int
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, candidate: Candidate, rank: float) -> BeamEntry:
        last = candidate.last
        return cls(
            mode=last.mode,
            origin=last.origin,
            positions=tuple(last.positions.tolist()),
            tokens=tuple(last.tokens.tolist()),
            confidence=tuple(last.confidence.tolist()),
            rank=rank,
            left=int(candidate.open.sum()),
            sizes=tuple(last.sizes.tolist()),
        )

    def follow(self, confidence: Mapping[int, float]) -> dict[int, float]:
        """Position -> confidence after this step, given that of the parent: what stands right of an edit moves."""
        edits = sorted((at, size - 1) for at, size in zip(self.positions, self.sizes, strict=True) if size != 1)
        places = [at for at, _ in edits]
        shifts = [0, *accumulate(change for _, change in edits)]
        written = zip(self.positions, self.confidence, self.sizes, strict=True)
        known = {**confidence, **{at: sure for at, sure, size in written if size == 1}}
        return {at + shifts[bisect_left(places, at)]: sure for at, sure in known.items()}


@dataclass(frozen=True)
class StepRecord:
    """One denoising step: how many candidates were run, and the beam after it, best first."""

    step: int
    forwards: int
    beam: tuple[BeamEntry, ...]


@dataclass(frozen=True)
class Trace:
    """All steps of a request; the answer is the first entry of the last beam."""

    steps: tuple[StepRecord, ...] = field(default=())

    def __iter__(self) -> Iterator[StepRecord]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def path(self) -> list[BeamEntry]:
        """What each step did on the way to the answer, first step first."""
        place, entries = 0, []
        for record in reversed(self.steps):
            entry = record.beam[place]
            entries.append(entry)
            place = entry.origin
        return entries[::-1]

    def confidence_at(self) -> dict[int, float]:
        """Canvas position -> confidence with which the answer's token was committed there."""
        confidence: dict[int, float] = {}
        for entry in self.path():
            confidence = entry.follow(confidence)
        return confidence

    def to_json(self) -> list[dict[str, Any]]:
        return [asdict(record) for record in self.steps]

    @classmethod
    def from_json(cls, steps: Sequence[dict[str, Any]]) -> Trace:
        def entry(raw: dict[str, Any]) -> BeamEntry:
            lists = {name: tuple(raw[name]) for name in ("positions", "tokens", "confidence", "sizes")}
            return BeamEntry(**{**raw, **lists})

        return cls(tuple(StepRecord(s["step"], s["forwards"], tuple(map(entry, s["beam"]))) for s in steps))
