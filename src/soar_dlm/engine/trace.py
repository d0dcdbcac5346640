"""What happened in a decoding, step by step: made by the engine, read by streams, files and plots."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from math import inf
from typing import Any, TypeVar, get_args

from soar_dlm import checks
from soar_dlm.doors import door
from soar_dlm.engine.packing import packed_steps, unpacked
from soar_dlm.engine.scene import Scene
from soar_dlm.errors import InputFileError, told
from soar_dlm.search.candidate import Candidate, Mode
from soar_dlm.search.question import Place, RunnerUp
from soar_dlm.strict_json import DEEPEST_RECORD, plain, read_json

T = TypeVar("T")


@dataclass(frozen=True)
class BeamEntry:
    """A candidate that survived a step.

    ``origin`` is its parent's place in the beam of step ``after`` (0: the empty canvas); ``positions`` are positions of
    the parent's canvas committed in this step with their ``tokens`` and ``confidence``; ``sizes`` says how many
    positions each became: 1 for an ordinary token, 2 for an expand, 0 for a delete. ``left`` counts the positions still
    masked. A search that goes down several times numbers its dives from 1; ``verdict`` is the score of a text that was
    verified in this step. ``runners_up`` has, for each position that was committed, the token that came second; it is
    empty unless the request notes them.
    """

    mode: Mode
    origin: int
    positions: tuple[int, ...]
    tokens: tuple[int, ...]
    confidence: tuple[float, ...]
    rank: float
    left: int
    sizes: tuple[int, ...]
    after: int = 0
    dive: int = 0
    verdict: float | None = None
    runners_up: tuple[RunnerUp, ...] = ()

    @property
    def parent(self) -> Place:
        """The entry that this one continues; Place(0, 0) stands for the empty canvas."""
        return Place(self.after, self.origin if self.after else 0)

    @classmethod
    def of(
        cls, candidate: Candidate, rank: float, after: Place, dive: int = 0, verdict: float | None = None
    ) -> BeamEntry:
        last = candidate.last
        return cls(
            mode=last.mode,
            origin=after.first + last.origin,
            positions=tuple(last.positions.tolist()),
            tokens=tuple(last.tokens.tolist()),
            confidence=tuple(last.confidence.tolist()),
            rank=rank,
            left=candidate.left,
            sizes=tuple(last.sizes.tolist()),
            after=after.step,
            dive=dive,
            verdict=verdict,
            runners_up=last.runners_up,
        )

    def follow(self, confidence: Mapping[int, float]) -> dict[int, float]:
        """Position -> confidence after this step, given that of the parent; positions to the right of an edit move."""
        return self._followed(confidence, self.confidence)

    def dated(self, steps: Mapping[int, int], step: int) -> dict[int, int]:
        """Position -> the step in which its token was committed, given those before this one."""
        return self._followed(steps, [step] * len(self.positions))

    def write(self, tokens: Mapping[int, int]) -> dict[int, int]:
        """Position -> token after this step, given those that were committed before it."""
        return self._followed(tokens, self.tokens)

    def _followed(self, before: Mapping[int, T], committed: Sequence[T]) -> dict[int, T]:
        edits = sorted((at, size - 1) for at, size in zip(self.positions, self.sizes, strict=True))
        places = [at for at, _ in edits]
        shifts = [0, *accumulate(change for _, change in edits)]
        written = zip(self.positions, committed, self.sizes, strict=True)
        if self.mode == "reopened":
            return {at: value for at, value in before.items() if at not in self.positions}
        known = {**before, **{at: value for at, value, size in written if size == 1}}
        return {at + shifts[bisect_left(places, at)]: value for at, value in known.items()}


@dataclass(frozen=True)
class StepRecord:
    """One denoising step: how many canvases were run, and the candidates it left.

    ``best`` is the place of the candidate that the search stands by after this step; in a beam it is the first. A step
    that only read, such as one row of a verification, left none.
    """

    step: int
    forwards: int
    beam: tuple[BeamEntry, ...]
    best: int = 0

    @property
    def standing(self) -> BeamEntry | None:
        """The entry of the candidate that the search stands by; None if the step left no candidate."""
        return self.beam[self.best] if self.beam else None

    def to_json(self) -> dict[str, Any]:
        """The step as plain JSON values; runners-up are left out where there are none."""
        values: dict[str, Any] = plain(asdict(self))
        for entry in values["beam"]:
            if not entry["runners_up"]:
                del entry["runners_up"]
        return values

    def frontier(self) -> list[int]:
        """The places of the candidates that this step left: not those that it continued itself."""
        passed = {entry.origin for entry in self.beam if entry.after == self.step}
        return [place for place in range(len(self.beam)) if place not in passed]


@dataclass(frozen=True)
class Trace:
    """All steps of a request; the answer is the best entry of the last one that left a candidate.

    With a ``scene`` it can be shown without the model that made it.
    """

    steps: tuple[StepRecord, ...]
    scene: Scene | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"<Trace of {len(self)} steps>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from soar_dlm.notebook.html import trace_html

        return trace_html(self)

    def __iter__(self) -> Iterator[StepRecord]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def at(self, place: Place) -> BeamEntry:
        """The entry at a place."""
        return self.steps[place.step - 1].beam[place.first]

    def places(self, to: Place | None = None) -> list[Place]:
        """Where the entries of :meth:`path` are."""
        if to is None:
            last = next((record for record in reversed(self.steps) if record.beam), None)
            to = Place(0, 0) if last is None else Place(last.step, last.best)
        found: list[Place] = []
        while to.step > 0:
            found.append(to)
            to = self.at(to).parent
        return found[::-1]

    def path(self, to: Place | None = None) -> list[BeamEntry]:
        """What was done on the way to the answer, or to another entry, first to last.

        In a beam each step did one thing. Other searches have steps that did several, and steps that led elsewhere.
        """
        return [self.at(place) for place in self.places(to)]

    def confidence_at(self) -> dict[int, float]:
        """Canvas position -> confidence with which the answer's token was committed there."""
        confidence: dict[int, float] = {}
        for entry in self.path():
            confidence = entry.follow(confidence)
        return confidence

    def steps_at(self) -> dict[int, int]:
        """Canvas position -> the step in which the answer's token was committed there."""
        steps: dict[int, int] = {}
        for place in self.places():
            steps = self.at(place).dated(steps, place.step)
        return steps

    def tokens_at(self, to: Place) -> dict[int, int]:
        """Canvas position -> token, for everything that was committed on the way to an entry."""
        tokens: dict[int, int] = {}
        for entry in self.path(to):
            tokens = entry.write(tokens)
        return tokens

    def to_json(self) -> list[dict[str, Any]]:
        """The steps as plain JSON values."""
        return [record.to_json() for record in self.steps]

    def to_line(self, packed: bool = False) -> dict[str, Any]:
        """The steps, and the scene if there is one, as a line of a trace file has them; see :func:`packed_steps`."""
        steps = packed_steps(self.to_json()) if packed else self.to_json()
        return {"trace": steps} | ({} if self.scene is None else {"scene": self.scene.to_json()})

    @classmethod
    @door
    def from_json(cls, source: str | bytes | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Trace:
        """The trace of :meth:`to_json`, or of a line of a trace file, as text or parsed.

        ``soar generate --trace`` writes such files, and so does ``soar eval --traces``, whose lines are packed.
        """
        try:
            parsed: Any = source
            if isinstance(source, (str, bytes)):
                parsed = read_json(source, DEEPEST_RECORD, lenient=True)  # old traces may have an infinite rank
            steps, scene = (parsed["trace"], parsed.get("scene")) if isinstance(parsed, Mapping) else (parsed, None)
            records = [_record(step) for step in (unpacked(steps) if isinstance(steps, Mapping) else steps)]
            return cls(_linked(records), None if scene is None else Scene.from_json(scene))
        except Exception as error:  # it may be anything
            raise InputFileError(f"This is not a trace of soar-dlm ({type(error).__name__}: {told(error)}).") from error


def _record(step: Mapping[str, Any]) -> StepRecord:
    number = checks.whole_number("step", step["step"], 0)
    beam = tuple(_entry(entry, number) for entry in step["beam"])
    best = checks.whole_number("best", step.get("best", 0), 0, max(len(beam) - 1, 0))
    return StepRecord(number, checks.whole_number("forwards", step["forwards"], 0), beam, best)


def _entry(entry: Mapping[str, Any], step: int) -> BeamEntry:
    """An entry whose numbers are numbers, and whose lists say something of each position."""
    known = {"after": step - 1, **entry}
    for name in ("positions", "tokens", "sizes"):
        known[name] = checks.whole_numbers(f"{name} must be whole numbers", entry[name])
    known["confidence"] = tuple(checks.real_number("confidence", one, -inf, inf) for one in entry["confidence"])
    if len({len(known[name]) for name in ("positions", "tokens", "sizes", "confidence")}) > 1:
        raise InputFileError("positions, tokens, sizes and confidence differ in length")
    for name in ("origin", "left", "after", "dive"):
        checks.whole_number(name, known.get(name, 0), 0)
    checks.known_name("mode", known["mode"], get_args(Mode))
    checks.real_number("rank", known["rank"], -inf, inf)
    known["runners_up"] = tuple(_runner_up(*one) for one in entry.get("runners_up", ()))
    if len(known["runners_up"]) not in (0, len(known["positions"])):
        raise InputFileError("runners_up says something of other positions")
    if known.get("verdict") is not None:
        checks.real_number("verdict", known["verdict"], -inf, inf)
    return BeamEntry(**known)


def _runner_up(token: Any, probability: Any) -> RunnerUp:
    return RunnerUp(
        checks.whole_number("A runner-up", token, 0), checks.real_number("Its probability", probability, 0.0, inf)
    )


def _linked(steps: Sequence[StepRecord]) -> tuple[StepRecord, ...]:
    """The steps, counted from 1; every entry continues one before it, so that all paths begin at the empty canvas."""
    for number, record in enumerate(steps, start=1):
        if record.step != number:
            raise InputFileError(f"step {record.step} is in the place of step {number}")
        for place, entry in enumerate(record.beam):
            earlier = (entry.after, entry.origin) < (number, place)
            if not earlier or (entry.after and entry.origin >= len(steps[entry.after - 1].beam)):
                raise InputFileError(f"entry {place} of step {number} does not continue an earlier one")
    return tuple(steps)
