"""Many requests, one forward per step."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from soar_dlm.engine.reader import Reader
from soar_dlm.engine.request import LiveRequest, Request, StepEvent
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.models.masked_lm import MaskedLM


class Engine:
    """Decodes requests together.

    Each :meth:`step`:

    1. waiting requests join, in the order they came, while the rows they may need fit in ``max_rows``;
    2. every live candidate of every live request is a row of one forward;
    3. each request's search moves one step on and yields one event;
    4. finished and failed requests leave.

    A request's result depends on nothing else in the batch; one that fails ends with an error event of its own.
    """

    def __init__(self, model: MaskedLM, settings: EngineSettings | None = None) -> None:
        self.model = model
        self.settings = settings or EngineSettings()
        self._reader = Reader(model, self.settings.head_budget)
        self._waiting: deque[LiveRequest] = deque()
        self._live: list[LiveRequest] = []
        self._tickets = 0

    def add(self, request: Request) -> int:
        """Queue a request and return its ticket, by which its events are known; bad requests are refused here."""
        live = LiveRequest(self._tickets, request, self.model.facts)
        self._tickets += 1
        self._waiting.append(live)
        return live.ticket

    def cancel(self, ticket: int) -> None:
        """Drop a request; it takes part in no further step."""
        self._waiting = deque(live for live in self._waiting if live.ticket != ticket)
        self._live = [live for live in self._live if live.ticket != ticket]

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._live)

    @property
    def hungry(self) -> bool:
        """Whether a further request could join the next step."""
        return self._rows_of([*self._live, *self._waiting]) < self.settings.max_rows

    @staticmethod
    def _rows_of(requests: Iterable[LiveRequest]) -> int:
        """The most rows these requests can need in one forward."""
        return sum(live.strategy.beam * (2 if live.options.cfg_scale else 1) for live in requests)

    def _admit(self) -> Iterator[LiveRequest]:
        while self._waiting:
            if self._live and self._rows_of([*self._live, self._waiting[0]]) > self.settings.max_rows:
                return
            live = self._waiting.popleft()
            if live.finished:  # nothing to fill
                yield live
            else:
                self._live.append(live)

    def step(self) -> list[StepEvent]:
        """One forward for all; the events of this step, one per request that took part."""
        events = [StepEvent(live.ticket, live.beam[0], decoding=live.decoding()) for live in self._admit()]
        asked = [live.questions() for live in self._live]
        questions = [question for batch in asked for question in batch if question is not None]
        readings = iter(self._reader.read(questions) if questions else ())
        for live, batch in zip(self._live, asked, strict=True):
            events.append(live.absorb([None if question is None else next(readings) for question in batch]))
        gone = {event.ticket for event in events if event.final}
        self._live = [live for live in self._live if live.ticket not in gone]
        return events

    def run(self, requests: Iterable[Request] = ()) -> Iterator[StepEvent]:
        """Decode to the end, taking requests in as there is room; more may be added between events."""
        source = iter(requests)
        exhausted = False
        while self.busy or not exhausted:
            while self.hungry and not exhausted:
                request = next(source, None)
                if request is None:
                    exhausted = True
                else:
                    self.add(request)
            if self.busy:
                yield from self.step()
