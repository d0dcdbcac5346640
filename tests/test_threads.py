"""Requests are added and cancelled from other threads while the engine runs."""

from __future__ import annotations

import threading

from torch import Tensor

from soar_dlm.engine.engine import Engine
from soar_dlm.engine.request import StepEvent
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.models.masked_lm import Rows
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.position_beam import PositionBeam
from tests.crafted import CraftedLM, canvas_request, decode, random_lm


class Interrupted(CraftedLM):
    """A random model whose forward lets another thread act first, and waits until it has."""

    def __init__(self, seed: int) -> None:
        super().__init__(random_lm(seed).rule, 9)
        self.inside, self.acted = threading.Event(), threading.Event()
        self.armed = False

    def hidden(self, rows: Rows) -> Tensor:
        if self.armed:
            self.armed = False
            self.inside.set()
            assert self.acted.wait(60), "the other thread was kept waiting for the forward"
        return super().hidden(rows)


def step_while(engine: Engine, model: Interrupted, act: object) -> list[StepEvent]:
    """Run one step; ``act`` runs in another thread in the middle of its forward."""
    failures: list[BaseException] = []

    def other() -> None:
        assert model.inside.wait(60)
        try:
            act()  # type: ignore[operator]
        except BaseException as error:
            failures.append(error)
        model.acted.set()

    thread = threading.Thread(target=other)
    model.armed = True
    thread.start()
    events = engine.step()
    thread.join(60)
    assert not failures
    return events


def test_a_request_added_during_a_step_joins_the_next() -> None:
    model = Interrupted(3)
    engine = Engine(model)
    engine.add(canvas_request(model, [1], 3, PositionBeam(beam=2)))
    events = step_while(engine, model, lambda: engine.add(canvas_request(model, [2, 2], 3, Greedy())))
    assert [event.ticket for event in events] == [0]
    assert [event.ticket for event in engine.step()] == [0, 1]


def test_a_request_cancelled_during_a_step_reports_nothing_more() -> None:
    model = Interrupted(3)
    engine = Engine(model)
    for prompt in ([1], [2], [3]):
        engine.add(canvas_request(model, prompt, 3, Greedy()))
    events = step_while(engine, model, lambda: engine.cancel(1))
    assert [event.ticket for event in events] == [0, 2]
    assert {event.ticket for event in engine.run()} == {0, 2}
    assert not engine.busy


def test_questions_about_the_engine_are_answered_during_a_step() -> None:
    model = Interrupted(3)
    engine = Engine(model)
    engine.add(canvas_request(model, [1], 3, Greedy()))
    answers: list[bool] = []
    step_while(engine, model, lambda: answers.extend([engine.busy, engine.hungry]))
    assert answers == [True, True]


def test_many_threads_lose_and_mix_up_nothing() -> None:
    """Four threads add, cancel and step at once; every request that stays is decoded as it would be alone."""
    model = random_lm(5)
    engine = Engine(model, EngineSettings(max_rows=6))
    requests = {
        (thread, n): canvas_request(model, [thread] * (n % 4 + 1), 4, PositionBeam(2))
        for thread in range(3)
        for n in range(12)
    }
    tickets: dict[tuple[int, int], int] = {}
    finals: dict[int, StepEvent] = {}
    lock = threading.Lock()
    adding = threading.Barrier(4)
    done = threading.Event()

    def feed(feeder: int) -> None:
        adding.wait(60)
        for n in range(12):
            ticket = engine.add(requests[feeder, n])
            with lock:
                tickets[feeder, n] = ticket
            if n % 4 == 3:
                engine.cancel(ticket)

    def work() -> None:
        adding.wait(60)
        while not done.is_set() or engine.busy:
            for event in engine.step():
                if event.final:
                    with lock:
                        assert event.ticket not in finals
                        finals[event.ticket] = event

    feeders = [threading.Thread(target=feed, args=(feeder,)) for feeder in range(3)]
    worker = threading.Thread(target=work)
    for thread in (*feeders, worker):
        thread.start()
    for thread in feeders:
        thread.join(60)
    done.set()
    worker.join(60)
    assert not worker.is_alive()
    assert len(set(tickets.values())) == 36
    for (feeder, n), ticket in tickets.items():
        if n % 4 == 3 and ticket not in finals:
            continue
        decoding = finals[ticket].decoding
        assert decoding is not None
        assert decoding.tokens == decode(model, [requests[feeder, n]])[0].tokens
