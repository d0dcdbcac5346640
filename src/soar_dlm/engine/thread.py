"""One engine that steps for everybody who asks, on a thread of its own."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from math import ceil
from threading import Condition, Thread

from soar_dlm.engine.engine import Engine
from soar_dlm.engine.request import Request, StepEvent
from soar_dlm.errors import Busy, EngineStopped, SoarError, told

Listener = Callable[[StepEvent], None]
"""Takes the events of one request. It runs on the engine's thread, so it must return at once and not raise."""

_LONGEST_WAIT = 600
"""The most seconds that a caller is ever asked to wait."""


@dataclass
class Counts:
    """What an engine has done so far: steps, candidates evaluated, tokens in finished texts, and ends of requests."""

    steps: int = 0
    forwards: int = 0
    tokens: int = 0
    finished: int = 0
    failed: int = 0
    cancelled: int = 0


class EngineThread:
    """Steps an engine while it has requests.

    1. A request joins at the next step. Its events go to its listener, the last of them too, unless it is cancelled.
    2. A call that comes while ``queue`` requests wait is refused: :class:`Busy`. Where the engine has room for another
       row, nothing waits.
    3. An exception that escapes the engine ends it: every listener gets an error, ``dead`` says why, and whoever comes
       later is refused: :class:`EngineStopped`.
    4. ``ended`` is done when the thread is: without a result after :meth:`close`, with ``dead`` as its exception else.
    """

    def __init__(self, engine: Engine, queue: int) -> None:
        self.engine, self.queue = engine, queue
        self.counts = Counts()
        self.ended: Future[None] = Future()
        self._changed = Condition()
        """Guards all below, and is notified when there is something to do."""
        self._listeners: dict[int, Listener] = {}
        self._closing = False
        self._dead: EngineStopped | None = None
        self._ends: deque[float] = deque(maxlen=32)
        Thread(target=self._run, name="soar-engine", daemon=True).start()

    @property
    def dead(self) -> EngineStopped | None:
        """Why the engine has stopped although nobody asked it to."""
        return self._dead

    @property
    def closing(self) -> bool:
        """Whether no more requests are taken."""
        return self._closing

    def check_open(self) -> None:
        """Raise what would keep a request from being added now."""
        if self._dead is not None:
            raise _stopped(self._dead)
        if self._closing:
            raise EngineStopped("The engine is shutting down and takes no more requests; ask another one.")
        waiting = self.engine.waiting
        if waiting >= self.queue and not self.engine.hungry:
            raise Busy(waiting, self._guess(waiting))

    def add(self, requests: Sequence[Request], listeners: Sequence[Listener]) -> list[int]:
        """Queue the requests of one call, all of them or none; returns their tickets."""
        with self._changed:
            self.check_open()
            tickets: list[int] = []
            try:
                for request, listener in zip(requests, listeners, strict=True):
                    tickets.append(self.engine.add(request))
                    self._listeners[tickets[-1]] = listener
            except SoarError:
                for ticket in tickets:
                    self.cancel(ticket)
                raise
            self._changed.notify()
            return tickets

    def cancel(self, ticket: int) -> None:
        """Drop a request that nobody waits for any more: it takes part in no further step. Finished ones stay so."""
        with self._changed:
            if self._listeners.pop(ticket, None) is not None:
                self.counts.cancelled += 1
        self.engine.cancel(ticket)

    def close(self, drain: bool = True) -> None:
        """Take no more requests, and finish those there are; without ``drain``, they end with an error."""
        with self._changed:
            self._closing = True
            if not drain:
                self._end_all(EngineStopped("The engine was closed before this request was finished."))
            self._changed.notify()

    def _guess(self, waiting: int) -> int:
        """In how many seconds there may be room, if requests keep ending as often as of late."""
        with self._changed:
            ends = [*self._ends]
        if len(ends) < 2:
            return 1
        each = (time.monotonic() - ends[0]) / len(ends)
        return min(max(1, ceil(each * (waiting - self.queue + 1))), _LONGEST_WAIT)

    def _run(self) -> None:
        try:
            while self._has_work():
                self._pass_on(self.engine.step())
        except BaseException as error:
            self._die(error)
        else:
            self.ended.set_result(None)

    def _has_work(self) -> bool:
        """Wait for a request; false once there will be none."""
        with self._changed:
            self._changed.wait_for(lambda: self.engine.busy or self._closing)
            return self.engine.busy

    def _pass_on(self, events: Sequence[StepEvent]) -> None:
        with self._changed:
            self.counts.steps += 1
            for event in events:
                self._count(event)
                listener = (self._listeners.pop if event.final else self._listeners.get)(event.ticket, None)
                if listener is not None:
                    listener(event)

    def _count(self, event: StepEvent) -> None:
        if event.record is not None:
            self.counts.forwards += event.record.forwards
        if event.decoding is not None:
            self.counts.finished += 1
            self.counts.tokens += event.decoding.written
        elif event.error is not None:
            self.counts.failed += 1
        if event.final:
            self._ends.append(time.monotonic())

    def _die(self, error: BaseException) -> None:
        dead = EngineStopped(f"The engine has stopped ({type(error).__name__}: {told(error)}). Start it again.")
        dead.__cause__ = error
        with self._changed:
            self._dead = dead
            self._end_all(dead)
        self.ended.set_exception(dead)

    def _end_all(self, why: EngineStopped) -> None:
        """Every caller gets an error of its own, as a traceback belongs to whoever raises it."""
        listeners, self._listeners = self._listeners, {}
        self.counts.failed += len(listeners)
        for ticket, listener in listeners.items():
            self.engine.cancel(ticket)
            listener(StepEvent(ticket, error=_stopped(why)))


def _stopped(why: EngineStopped) -> EngineStopped:
    error = EngineStopped(str(why))
    error.__cause__ = why.__cause__
    return error
