"""The course of a deliberation: drafts, verdicts and the heap of branches, as :class:`Deliberate` numbers them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from soar_dlm.search.candidate import Candidate, Ints, Proposal
from soar_dlm.search.contract import checked_answer, checked_questions
from soar_dlm.search.question import Answer, Place, Question, Reading, Search
from soar_dlm.search.start import Start

if TYPE_CHECKING:
    from soar_dlm.search.deliberate import Deliberate

Asking = Generator[Sequence[Question], Sequence[Reading], Any]
Key = tuple[bytes, ...]


@dataclass(frozen=True, eq=False)
class Decision:
    """A token that a draft committed while it was unsure.

    ``canvas`` is the one before it, at ``origin`` in the beam that the trace has at ``place``; ``pick`` is the index of
    the position in what was read of it.
    """

    canvas: Candidate
    place: Place
    origin: int
    reading: Reading
    pick: int

    @property
    def probability(self) -> float:
        assert self.reading.log_p is not None
        return math.exp(self.reading.log_p[self.pick])

    def others(self) -> Iterator[tuple[int, float]]:
        """The likeliest tokens that were not taken: (index among them, log probability)."""
        tokens, log_p = self.reading.top_tokens, self.reading.top_log_p
        assert tokens is not None
        assert log_p is not None
        for choice, token in enumerate(tokens[self.pick]):
            if token != self.reading.tokens[self.pick]:
                yield choice, float(log_p[self.pick, choice])

    def with_other(self, choice: int, start: Start) -> Candidate:
        """The canvas with another token."""
        top_tokens, top_confidence = self.reading.top_tokens, self.reading.top_confidence
        assert top_tokens is not None
        assert top_confidence is not None
        tokens, confidence = self.reading.tokens.copy(), self.reading.confidence.copy()
        tokens[self.pick] = top_tokens[self.pick, choice]
        confidence[self.pick] = top_confidence[self.pick, choice]
        read = replace(self.reading, tokens=tokens, confidence=confidence)
        return start.commit(self.canvas, read, Proposal(np.array([self.pick]), "branch"), self.origin)


class Spot(NamedTuple):
    """A candidate of a dive: the number of the report that has it, and its place there."""

    report: int
    number: int


class Reported(NamedTuple):
    """What a drafter reported: candidates, where the trace has them, and what their origins count from."""

    beam: Sequence[Candidate]
    place: Place
    after: Spot | None


@dataclass(eq=False)
class Dive:
    """One way down: the canvas it starts from, and what its drafter reported.

    ``log_p`` sums the log probabilities of the other tokens taken on the way to its start; a draft that took none has
    not ``branched``.
    """

    number: int
    kind: str
    start: Candidate
    place: Place
    log_p: float = 0.0
    branched: bool = False
    reports: list[Reported] = field(default_factory=list)

    def after(self, place: Place | None) -> Spot | None:
        """Which candidate the origins of a drafter's report count from; by default, the first of its last report.

        None is the start, which drafters know as the empty canvas.
        """
        if place is None:
            return Spot(len(self.reports) - 1, 0) if self.reports else None
        for number, one in enumerate(self.reports):
            offset = place.first - one.place.first
            if one.place.step == place.step and 0 <= offset < len(one.beam):
                return Spot(number, offset)
        return None

    def place_of(self, spot: Spot | None) -> Place:
        """Where the trace has it."""
        if spot is None:
            return self.place
        place = self.reports[spot.report].place
        return Place(place.step, place.first + spot.number)

    def spot_of(self, text: Candidate) -> Spot | None:
        """The last candidate with this canvas that the drafter has reported."""
        for number in range(len(self.reports) - 1, -1, -1):
            for place, candidate in enumerate(self.reports[number].beam):
                if candidate is text or candidate.key == text.key:
                    return Spot(number, place)
        return None

    def decisions(self, spot: Spot | None, memory: dict[Key, Reading]) -> list[Decision]:
        """The decisions on the way to a candidate, first to last."""
        found: list[Decision] = []
        while spot is not None:
            report = self.reports[spot.report]
            last = report.beam[spot.number].last
            before = report.after
            spot = None if before is None else Spot(before.report, before.number + last.origin)
            parent = self.start if spot is None else self.reports[spot.report].beam[spot.number]
            reading = memory.get(canvas_key(parent)) if last.mode == "search" else None
            if reading is not None:
                picks = np.flatnonzero(np.isin(reading.positions, last.positions))
                place = self.place_of(before)
                found += [Decision(parent, place, last.origin, reading, int(pick)) for pick in picks[::-1]]
        return found[::-1]


class Found(NamedTuple):
    """A text, the number of the dive it is from, and where the trace has it."""

    text: Candidate
    dive: int
    place: Place


class Deliberation:
    """The state of one request's search; ``start`` is its canvas, ``settings`` the strategy."""

    def __init__(self, settings: Deliberate, start: Start) -> None:
        self.settings, self.start = settings, start
        self._memory: dict[Key, Reading] = {}
        self._asked: set[Key] = set()
        self._heap: list[tuple[float, int, str, Decision, int]] = []
        self._order, self._dives = count(), count(1)
        self._pushed: set[tuple[Key, int, int]] = set()
        self._scores: dict[Key, float] = {}
        self._texts: list[tuple[float, Candidate]] = []
        self._best: Found | None = None
        self._latest: Candidate | None = None
        self._score = -math.inf
        self._counts = {"drafts": 0, "branches": 0, "verifications": 0}
        self._spent = 0

    def run(self) -> Search:
        settings = self.settings
        first: Found | None = None
        for kind in settings.drafts:
            dive = Dive(next(self._dives), kind, self.start.candidate, Place(0, 0))
            text = yield from self._drafted(dive, first=first is None)
            if text is None:
                break
            self._counts["drafts"] += 1
            spot = dive.spot_of(text)
            place = dive.place_of(spot)
            found = Found(text, dive.number, place)
            first = first or found
            decisions = dive.decisions(spot, self._memory)
            if settings.skip is not None and all(one.probability > settings.skip for one in decisions):
                return self._answer(found)
            yield from self._verified(dive, text, place, at_once=True)
            if self._accepted:
                break
            self._push(dive, decisions)
        if not self._accepted:
            yield from self._explored()
        assert first is not None
        return self._answer(self._best or first)

    @property
    def _accepted(self) -> bool:
        return self._score > self.settings.accept

    @property
    def _spent_up(self) -> bool:
        return self.settings.budget is not None and self._spent >= self.settings.budget

    def _explored(self) -> Asking:
        """Follow branches, ``abreast`` at a time, until a text is accepted or there is nothing left to try."""
        settings = self.settings
        lanes: list[tuple[Asking, Sequence[Question]]] = []
        tries = 0
        while True:
            while len(lanes) < settings.abreast and tries < settings.tries and self._heap and not self._spent_up:
                tries += 1
                lane = self._followed()
                lanes += _resumed(lane, None)
            if not lanes:
                return
            readings = iter((yield [question for _, asked in lanes for question in asked]))
            running, lanes = lanes, []
            for lane, asked in running:
                lanes += _resumed(lane, [next(readings) for _ in asked])
                if self._accepted:
                    return

    def _followed(self) -> Asking:
        """Take the likeliest branch down to a text and verify it."""
        key, _, kind, decision, choice = heapq.heappop(self._heap)
        self._counts["branches"] += 1
        canvas = decision.with_other(choice, self.start)
        number = next(self._dives)
        place = self._report([canvas], [-key], decision.place, number)
        dive = Dive(number, kind, canvas, place, log_p=-key, branched=True)
        text = yield from self._drafted(dive)
        if text is not None:
            spot = dive.spot_of(text)
            yield from self._verified(dive, text, dive.place_of(spot), at_once=False)
            self._push(dive, dive.decisions(spot, self._memory))

    def _push(self, dive: Dive, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            for choice, log_p in decision.others():
                name = (canvas_key(decision.canvas), decision.pick, choice)
                if log_p > self.settings.least and name not in self._pushed:
                    self._pushed.add(name)
                    heapq.heappush(self._heap, (-(dive.log_p + log_p), next(self._order), dive.kind, decision, choice))

    def _drafted(self, dive: Dive, first: bool = False) -> Asking:
        """The text at the bottom of a dive; None if the budget is spent, or a branch meets a canvas read before."""

        def report(beam: Sequence[Candidate], ranks: Sequence[float], after: Place | None = None, **_: Any) -> Place:
            spot = dive.after(after)
            place = self._report(beam, ranks, dive.place_of(spot), dive.number)
            dive.reports.append(Reported(beam, place, spot))
            return place

        drafter = self.settings.drafter(dive.kind)
        search = drafter.search(replace(self.start, candidate=dive.start, report=report))
        try:
            asked = checked_questions(next(search))
            while True:
                keys = [question_key(question) for question in asked]
                if dive.branched and all(key in self._asked for key in keys):
                    return None
                missing = [question for question, key in zip(asked, keys, strict=True) if key not in self._memory]
                if missing:
                    if self._spent_up and not first:
                        return None
                    yield from self._read(missing)
                asked = checked_questions(search.send([self._memory[key] for key in keys]))
        except StopIteration as stop:
            return checked_answer(stop.value).candidate

    def _read(self, questions: Sequence[Question]) -> Asking:
        """Ask, with the choices that a decision needs, and remember what was read."""
        choices = self.settings.choices
        wanted = [replace(one.wanted, top=max(one.wanted.top, choices)) for one in questions]
        self._asked.update(map(question_key, questions))
        self._spent += len(questions)
        readings = yield [replace(one, wanted=more) for one, more in zip(questions, wanted, strict=True)]
        for question, reading in zip(questions, readings, strict=True):
            self._memory[question_key(question)] = reading

    def _verified(self, dive: Dive, text: Candidate, drafted: Place, at_once: bool) -> Asking:
        """Score a text, all rows at once, or row by row as long as it can still be better than the best."""
        where = self._text_positions(text)
        if text.key in self._scores or not where.size:
            return  # a text without tokens has nothing to mask, and so no score
        rows = [where[part] for part in self.settings.hidden_rows(where.size)]
        total, count = 0.0, sum(row.size for row in rows)
        for turn in [rows] if at_once else [[row] for row in rows]:
            if self._spent_up:
                return
            self._spent += len(turn)
            masked = [text.masked(row, self.start.mask_id) for row in turn]
            questions = [self.start.question(one, row, text.tokens[row]) for one, row in zip(masked, turn, strict=True)]
            for reading in (yield questions):
                assert reading.given_log_p is not None
                total += float(reading.given_log_p.sum(dtype=np.float64))
            if total / count <= self._score:
                break
        self._counts["verifications"] += 1
        score = total / count
        self._scores[text.key] = score
        judged = text.kept(0, "verified")
        self._texts.append((score, judged))
        place = self._report([judged], [score], drafted, dive.number, score)
        if self._best is None or score > self._score:
            self._best, self._score = Found(judged, dive.number, place), score

    def _text_positions(self, text: Candidate) -> Ints:
        """The positions of each blank up to and with its first end token."""
        found: list[Ints] = []
        for blank in range(text.expansions.size):
            places = np.flatnonzero(text.blank == blank)
            ends = np.flatnonzero(np.isin(text.tokens[places], self.start.end_ids))
            found.append(places[: ends[0] + 1] if ends.size else places)
        return np.concatenate(found)

    def _report(
        self,
        candidates: Sequence[Candidate],
        ranks: Sequence[float],
        after: Place,
        dive: int,
        verdict: float | None = None,
    ) -> Place:
        self._latest = candidates[0]
        return self.start.report(candidates, ranks, after=after, dive=dive, verdict=verdict)

    def _answer(self, found: Found) -> Answer:
        """The answer, which is put at the end of the trace if that is somewhere else."""
        text, dive, place = found
        score = self._scores.get(text.key)
        if text is not self._latest:
            text = text.kept(0)
            self._report([text], [self.settings.rank(text) if score is None else score], place, dive)
        details: dict[str, float] = {**self._counts}
        ranked = sorted(self._texts, key=lambda pair: pair[0], reverse=True)
        others = [other for _, other in ranked if other.key != text.key]
        return Answer(text, details if score is None else {"score": score, **details}, others)


def canvas_key(candidate: Candidate) -> Key:
    """Equal for canvases of which the same is read: how often blanks may still expand counts, too."""
    return (*candidate.key, candidate.expansions.tobytes())


def question_key(question: Question) -> Key:
    """That of the canvas, if the question is about all that is open on it; others are told apart by what they ask."""
    key = canvas_key(question.candidate)
    if question.given is None and np.array_equal(question.positions, question.candidate.window()):
        return key
    given = b"" if question.given is None else question.given.tobytes()
    return (*key, question.positions.tobytes(), given)


def _resumed(lane: Asking, readings: Sequence[Reading] | None) -> list[tuple[Asking, Sequence[Question]]]:
    """The lane with its next questions; nothing if it has ended."""
    try:
        return [(lane, next(lane) if readings is None else lane.send(readings))]
    except StopIteration:
        return []
