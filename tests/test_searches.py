"""A search is a coroutine: what it may ask, what it is told, and what happens to one that does it wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

from soar_dlm import Answer, Proposal, Question, Reading, Start, Strategy, Wanted
from soar_dlm.engine.engine import Engine
from soar_dlm.engine.request import Request, StepEvent
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.engine.trace import Trace
from soar_dlm.errors import StrategyError
from soar_dlm.options import Options
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.position_beam import PositionBeam
from tests.closeness import about
from tests.crafted import CraftedLM, canvas_request, decode, decode_one, random_lm, scripted_lm

Coroutine = Callable[[Start], Any]


@dataclass(frozen=True)
class Own(Strategy):
    """Searches as it is told."""

    coroutine: Coroutine | None = None

    def search(self, start: Start) -> Any:
        assert self.coroutine is not None
        return self.coroutine(start)


def leftmost(start: Start) -> Generator[Any, Any, Any]:
    """The simplest search: one canvas, left to right, and not a word about what it does."""
    canvas = start.candidate
    while canvas.left:
        reading = yield from start.read_one(canvas)
        canvas = start.commit(canvas, reading, Proposal(np.array([0]), "search"))
    return canvas


def test_a_search_of_ones_own_is_traced_without_saying_a_word() -> None:
    model = random_lm(5)
    found = decode_one(model, [1], 5, Own(coroutine=leftmost))
    assert [entry.positions for entry in found.trace.path()] == [(1,), (2,), (3,), (4,), (5,)]
    assert (found.steps, found.forwards, len(found.trace)) == (5, 5, 5)
    committed = {at: sure for at, sure in enumerate(found.confidence) if sure is not None}
    assert found.trace.confidence_at() == pytest.approx(committed)


def test_an_answer_can_carry_details() -> None:
    def counted(start: Start) -> Generator[Any, Any, Any]:
        canvas = yield from leftmost(start)
        return Answer(canvas, {"tried": 1})

    assert decode_one(random_lm(5), [1], 3, Own(coroutine=counted)).details == {"tried": 1}
    assert decode_one(random_lm(5), [1], 3, Greedy()).details == {}


def test_details_are_plain_numbers() -> None:
    def measured(start: Start) -> Generator[Any, Any, Any]:
        canvas = yield from leftmost(start)
        details: Any = {"score": np.float32(-0.5), "tried": np.int64(2)}
        return Answer(canvas, details)

    details = decode_one(random_lm(5), [1], 3, Own(coroutine=measured)).details
    assert json.dumps(details) == '{"score": -0.5, "tried": 2}'


def test_a_search_may_report_now_and_then() -> None:
    """A report used to come after the step before it, also if that step had reported nothing."""

    def now_and_then(start: Start) -> Generator[Any, Any, Any]:
        canvas = start.candidate
        for step in range(3):
            reading = yield from start.read_one(canvas)
            if step % 2 == 0:
                canvas = start.commit(canvas, reading, Proposal(np.arange(len(reading))[: 1 + step], "search"))
                start.report([canvas], [0.0])
        yield [start.question(canvas, np.array([1]))]
        return canvas

    found = decode_one(random_lm(5), [1], 4, Own(coroutine=now_and_then))
    assert [len(record.beam) for record in found.trace] == [1, 0, 1, 0]
    assert [entry.positions for entry in found.trace.path()] == [(1,), (2, 3, 4)]
    assert [place.step for place in found.trace.places()] == [1, 3]
    assert Trace.from_json(found.trace.to_json()) == about(found.trace)


def test_events_show_the_canvas_as_it_fills() -> None:
    model = random_lm(5)
    engine = Engine(model)
    engine.add(canvas_request(model, [1], 3, Own(coroutine=leftmost)))
    assert [event.best.left for event in engine.run() if event.best is not None] == [2, 1, 0]


def test_equal_canvases_of_a_request_are_run_once_in_a_step() -> None:
    def twice(start: Start) -> Generator[Any, Any, Any]:
        canvas = start.candidate
        while canvas.left:
            one, other = yield from start.read([canvas, canvas])
            assert one is not None
            assert other is not None
            assert (one.tokens == other.tokens).all()
            canvas = start.commit(canvas, one, Proposal(np.array([0]), "search"))
        return canvas

    model = random_lm(5)
    found = decode_one(model, [1], 4, Own(coroutine=twice))
    assert found.forwards == 4
    assert [len(ids) for ids in model.seen] == [1] * 4


def test_different_questions_about_one_canvas_are_all_answered() -> None:
    def both(start: Start) -> Generator[Any, Any, Any]:
        first, last = np.array([1]), np.array([3])
        one, other, given = yield [
            start.question(start.candidate, first),
            start.question(start.candidate, last),
            start.question(start.candidate, last, given=np.array([4])),
        ]
        assert (one.positions, other.positions) == (first, last)
        assert one.given_log_p is None
        assert given.given_log_p is not None
        return (yield from leftmost(start))

    assert decode_one(random_lm(5), [1], 3, Own(coroutine=both)).forwards == 3 + 3


def not_a_question(start: Start) -> Generator[Any, Any, Any]:
    yield ["what?"]


def asking(**changes: Any) -> Coroutine:
    def search(start: Start) -> Generator[Any, Any, Any]:
        yield [replace(Question(start.candidate, np.array([1])), **changes)]

    return search


def nothing(start: Start) -> Generator[Any, Any, Any]:
    yield []


def returning(value: Any) -> Coroutine:
    def search(start: Start) -> Generator[Any, Any, Any]:
        yield from start.read([start.candidate])
        return value

    return search


def answering(details: Any) -> Coroutine:
    def search(start: Start) -> Generator[Any, Any, Any]:
        canvas = yield from leftmost(start)
        return Answer(canvas, details)

    return search


def reporting(rank: float, verdict: float = 0.0) -> Coroutine:
    def search(start: Start) -> Generator[Any, Any, Any]:
        yield from start.read([start.candidate])
        start.report([start.candidate], [rank], verdict=verdict)

    return search


def unfinished(start: Start) -> Generator[Any, Any, Any]:
    yield from start.read([start.candidate])
    return start.candidate


def raising(start: Start) -> Generator[Any, Any, Any]:
    yield from start.read([start.candidate])
    raise ZeroDivisionError("a bug of the author's")


def raising_at_once(start: Start) -> Any:
    raise ZeroDivisionError("a bug of the author's")


BROKEN: dict[str, tuple[Coroutine, str]] = {
    "no generator": (lambda start: start.candidate, "search must be a generator"),
    "raises at once": (raising_at_once, "a bug of the author's"),
    "raises later": (raising, "a bug of the author's"),
    "asks nothing": (nothing, "at least one Question"),
    "asks something else": (not_a_question, "must yield Questions"),
    "asks about a list": (asking(positions=[1]), "non-empty array of indices"),
    "asks about nothing": (asking(positions=np.array([], dtype=np.int64)), "non-empty array of indices"),
    "asks beyond the canvas": (asking(positions=np.array([9])), "outside its canvas of 4"),
    "asks before the canvas": (asking(positions=np.array([-1])), "outside its canvas of 4"),
    "gives too few tokens": (asking(given=np.array([1, 2])), "given of a Question must be an array"),
    "returns nothing": (returning(None), "must return a Candidate or an Answer, not None"),
    "returns a text": (returning("done"), "must return a Candidate or an Answer"),
    "returns masks": (unfinished, "still has 3 masks"),
    "returns no mapping": (answering([1]), "details of an Answer must map names to numbers"),
    "returns a detail that is no number": (answering({"best": "yes"}), "finite numbers with a name, not 'best': 'yes'"),
    "returns an infinite detail": (answering({"score": -math.inf}), "finite numbers with a name, not 'score': -inf"),
    "reports a verdict of NaN": (reporting(0.0, math.nan), "A verdict must be a finite number, not nan"),
    "reports an infinite rank": (reporting(-math.inf), "A rank must be a finite number, not -inf"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_search_ends_its_own_request_and_no_other(case: str) -> None:
    coroutine, words = BROKEN[case]
    model = random_lm(1)
    engine = Engine(model)
    neighbour = canvas_request(model, [1, 2], 3, PositionBeam(beam=2))
    engine.add(neighbour)
    engine.add(canvas_request(model, [3], 3, Own(coroutine=coroutine)))
    engine.add(neighbour)
    found: dict[int, StepEvent] = {event.ticket: event for event in engine.run() if event.final}
    error = found[1].error
    assert isinstance(error, StrategyError)
    assert "Own" in str(error)
    assert words in str(error)
    assert found[0].decoding is not None
    assert found[2].decoding == about(found[0].decoding)


def test_a_full_canvas_needs_no_search() -> None:
    model = random_lm(1)
    found = decode(model, [Request([1, 2], [], Own(coroutine=raising))])[0]
    assert (found.tokens, found.steps, found.forwards) == ((1, 2), 0, 0)


def test_a_search_that_asks_nothing_can_still_answer() -> None:
    def filled(start: Start) -> Generator[Any, Any, Any]:
        yield from ()
        return start.candidate.filled(5)

    found = decode_one(random_lm(1), [1], 2, Own(coroutine=filled))
    assert (found.tokens, found.steps, found.forwards) == ((1, 5, 5), 0, 0)


BELIEF = {1: 0.5, 2: 0.25, 3: 0.125}
WANTED = [Wanted(), Wanted(top=2), Wanted(entropy=True), Wanted(distribution=True), Wanted(3, True, True)]


def readings(model: CraftedLM, options: Options, wanted: Wanted, given: int | None) -> list[Reading]:
    """What a search is told of three positions."""
    told: list[Reading] = []

    def asks(start: Start) -> Generator[Any, Any, Any]:
        place = start.candidate.window()
        tokens = None if given is None else np.full(place.size, given)
        told.extend((yield [replace(start.question(start.candidate, place, tokens), wanted=wanted)]))
        return start.candidate.filled(5)

    decode_one(model, [1], 3, Own(coroutine=asks), options)
    return told


@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("given", [None, 2])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_what_is_wanted_is_read(wanted: Wanted, given: int | None, temperature: float) -> None:
    """The rest of each belief, 0.125, is spread over five tokens; the mask token counts for nothing."""
    model = scripted_lm(dict.fromkeys((1, 2, 3), BELIEF))
    (reading,) = readings(model, Options(temperature=temperature), wanted, given)
    assert reading.tokens.tolist() == [1, 1, 1], "nothing is drawn unless the question brings its own numbers"
    assert reading.confidence == pytest.approx([0.5] * 3)
    log_p = np.log([0.5, 0.25, 0.125])
    if wanted.top:
        assert reading.log_p == pytest.approx([log_p[0]] * 3, abs=1e-5)
        assert reading.top_tokens is not None
        assert reading.top_tokens.tolist() == [[1, 2, 3][: wanted.top]] * 3
        assert reading.top_log_p == pytest.approx(np.tile(log_p[: wanted.top], (3, 1)), abs=1e-5)
        assert reading.top_confidence == pytest.approx(np.exp(np.tile(log_p[: wanted.top], (3, 1))), abs=1e-5)
    else:
        assert reading.log_p is None
        assert reading.top_tokens is None
    if wanted.entropy:
        entropy = -sum(p * math.log(p) for p in (0.5, 0.25, 0.125, *[0.025] * 5))
        assert reading.entropy == pytest.approx([entropy] * 3, abs=1e-5)
    else:
        assert reading.entropy is None
    if wanted.distribution:
        assert reading.distribution is not None
        assert reading.distribution.shape == (3, 9)
        assert reading.distribution.exp().sum(-1).tolist() == pytest.approx([1.0] * 3, abs=1e-5)
        assert reading.distribution[0, 2].item() == pytest.approx(log_p[1], abs=1e-5)
    else:
        assert reading.distribution is None
    assert (None if given is None else pytest.approx([log_p[1]] * 3, abs=1e-5)) == reading.given_log_p


def test_more_can_be_wanted_than_there_are_tokens() -> None:
    (reading,) = readings(scripted_lm({1: BELIEF}), Options(), Wanted(top=50), None)
    assert reading.top_tokens is not None
    assert reading.top_tokens.shape == (3, 9)


def test_a_reading_tells_where_the_text_would_end() -> None:
    model = scripted_lm({1: {1: 0.9}, 2: {7: 0.8}, 3: {3: 0.7}}, ends=(7,))
    assert readings(model, Options(stop_token_ids=[3]), Wanted(), None)[0].ends.tolist() == [False, True, True]


def test_a_part_of_a_reading() -> None:
    whole = readings(scripted_lm({1: BELIEF, 2: {4: 0.9}, 3: {5: 0.8}}), Options(), Wanted(2, True, True), 4)[0]
    part = whole.at(np.array([0, 2]))
    assert len(part) == 2
    assert part.positions.tolist() == [1, 3]
    for name in ("tokens", "confidence", "ends", "entropy", "log_p", "top_tokens", "top_log_p", "given_log_p"):
        assert getattr(part, name).tolist() == getattr(whole, name)[[0, 2]].tolist()
    assert part.distribution is not None
    assert whole.distribution is not None
    assert torch.equal(part.distribution, whole.distribution[[0, 2]])


def test_wanted_things_come_from_slices_of_any_size() -> None:
    """The head reads as many positions at a time as its budget allows; the answer is the same."""
    model = random_lm(4)
    start = canvas_request(model, [1], 6, Own(coroutine=leftmost))
    found = []
    for budget in (1, 10**9):
        engine = Engine(model, EngineSettings(head_budget=budget))
        seen: list[Reading] = []

        def asks(start: Start, seen: list[Reading] = seen) -> Generator[Any, Any, Any]:
            seen.extend((yield [replace(start.question(start.candidate, start.candidate.window()), wanted=WANTED[-1])]))
            return start.candidate.filled(5)

        engine.add(replace(start, strategy=Own(coroutine=asks)))
        list(engine.run())
        found.append(seen[0])
    for name in ("tokens", "top_tokens"):
        assert (getattr(found[0], name) == getattr(found[1], name)).all()
    for name in ("confidence", "entropy", "log_p", "top_log_p", "top_confidence"):
        assert getattr(found[0], name) == pytest.approx(getattr(found[1], name), abs=1e-5)


@pytest.mark.parametrize("strategy", [Greedy(defer_end=True), PositionBeam(beam=2, defer_end=True)])
def test_an_end_token_waits_until_nothing_else_is_left(strategy: Strategy) -> None:
    model = scripted_lm({1: {7: 0.9}, 2: {2: 0.5}, 3: {7: 0.4}}, ends=(7,))
    path = decode_one(model, [0], 3, strategy).trace.path()
    assert [entry.positions for entry in path] == [(2,), (1,), (3,)]
    plain = decode_one(model, [0], 3, replace(strategy, defer_end=False)).trace.path()  # type: ignore[type-var]
    assert [entry.positions for entry in plain] == [(1,), (2,), (3,)]
