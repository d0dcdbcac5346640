"""Many requests, one forward per step."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from threading import Lock, RLock
from typing import Any

from soar_dlm import checks
from soar_dlm.doors import door, theirs
from soar_dlm.engine.live import LiveRequest
from soar_dlm.engine.reader import Reader
from soar_dlm.engine.request import Request, StepEvent
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.engine.stopping import Decode
from soar_dlm.errors import PromptError, SettingsError, SoarError, shown
from soar_dlm.models.masked_lm import MaskedLM, ModelFacts

_NO_MORE: Any = object()


class Engine:
    """Decodes requests together.

    Each :meth:`step`:

    1. waiting requests join, in the order they came, while all live rows fit in ``max_rows``, and all that requests
       with a cache may store fits in ``cache_budget``;
    2. the questions of all searches are the rows of one forward, or of several where they are more than ``max_rows`` or
       of very different lengths; equal questions of a request are one row;
    3. each search is sent its readings, runs to its next questions or its answer, and gives one event;
    4. finished and failed requests leave.

    The engine knows nothing of beams: what is asked, and what follows from it, is up to each request's search.

    A request's result depends on nothing else in the batch; one that fails ends with an error event of its own.

    Threads: :meth:`add`, :meth:`cancel` and the properties may be used from any thread at any time, also while
    another runs :meth:`step`. What they change takes effect at the start of the next step. Steps run one after the
    other: a second thread that calls :meth:`step` waits for the first.

    ``decode`` turns token ids into text; requests with stop strings need it.
    """

    @door
    def __init__(
        self, model: MaskedLM, settings: EngineSettings | None = None, *, decode: Decode | None = None
    ) -> None:
        if not isinstance(getattr(model, "facts", None), ModelFacts):
            raise SettingsError(f"An engine needs a model such as lm.model, not {shown(model)}.")
        if decode is not None and not callable(decode):
            raise SettingsError(f"decode must be a function of token ids, not {shown(decode)}.")
        self.model = model
        self.settings = EngineSettings() if settings is None else settings
        checks.instance("engine", self.settings, EngineSettings, "soar_dlm.EngineSettings")
        self._decode = decode
        self._reader = Reader(model, self.settings)
        self._waiting: deque[LiveRequest] = deque()
        self._live: list[LiveRequest] = []
        self._tickets = 0
        self._stepping = RLock()
        self._lists = Lock()
        """Guards the three above; held only to look at them or change them, never during a forward."""

    @door
    def add(self, request: Request) -> int:
        """Queue a request and return its ticket, which identifies its events; bad requests are refused here."""
        live = LiveRequest(-1, request, self.model, self.settings, self._decode)
        with self._lists:
            live.ticket = self._ticket()
            self._waiting.append(live)
        return live.ticket

    def _ticket(self) -> int:
        self._tickets += 1
        return self._tickets - 1

    @door
    def cancel(self, ticket: int) -> None:
        """Drop a request: it takes part in no further step, and a step that is running reports nothing of it."""
        with self._lists:
            self._waiting = deque(live for live in self._waiting if live.ticket != ticket)
            self._live = [live for live in self._live if live.ticket != ticket]

    @property
    def busy(self) -> bool:
        """Whether any request is waiting or being decoded."""
        with self._lists:
            return bool(self._waiting or self._live)

    @property
    def hungry(self) -> bool:
        """Whether another request could join the next step."""
        with self._lists:
            return sum(live.rows for live in (*self._live, *self._waiting)) < self.settings.max_rows

    @property
    def waiting(self) -> int:
        """How many requests have not joined yet."""
        with self._lists:
            return len(self._waiting)

    @property
    def live_rows(self) -> int:
        """How many rows the requests that have joined take up."""
        with self._lists:
            return sum(live.rows for live in self._live)

    def _admit(self) -> list[LiveRequest]:
        """Let waiting requests join while there is room; returns those with nothing to fill, which are done at once."""
        done: list[LiveRequest] = []
        rows = sum(live.rows for live in self._live)
        stored = sum(live.stored_bytes for live in self._live)
        while self._waiting:
            live = self._waiting[0]
            if live.full:
                done.append(self._waiting.popleft())
                continue
            rows, stored = rows + live.rows, stored + live.stored_bytes
            if self._live and (rows > self.settings.max_rows or stored > self.settings.cache_budget):
                break
            self._live.append(self._waiting.popleft())
        return done

    @door
    def step(self) -> list[StepEvent]:
        """One forward for all; the events of this step, one per request that took part."""
        with self._stepping:
            with self._lists:
                done, live = self._admit(), list(self._live)
            events = [one.finish() for one in done]
            begun = [(one, one.begin()) for one in live]
            running = [one for one, over in begun if over is None]
            asked = [one.questions() for one in running]
            answers = iter(self._reader.read([question for own in asked for question in own]) if running else ())
            advanced = [over for _, over in begun if over is not None]
            advanced += [one.absorb([next(answers) for _ in own]) for one, own in zip(running, asked, strict=True)]
            gone = {event.ticket for event in advanced if event.final}
            with self._lists:
                kept = {one.ticket for one in self._live}
                self._live = [one for one in self._live if one.ticket not in gone]
            return [*events, *(event for event in advanced if event.ticket in kept)]

    @door
    def run(self, requests: Iterable[Request | SoarError] = ()) -> Iterator[StepEvent]:
        """Decode to the end, taking requests from the iterable as there is room; it may be long or slow.

        Each takes one ticket, in order. One that is refused, or an error in its place, gives an error event; the
        others continue. More may be added between events.
        """
        source = theirs(checks.iterated("run takes requests", requests, PromptError))
        exhausted = False
        while self.busy or not exhausted:
            while self.hungry and not exhausted:
                request = next(source, _NO_MORE)
                if request is _NO_MORE:
                    exhausted = True
                    break
                try:
                    if isinstance(request, SoarError):
                        raise request
                    self.add(request)
                except SoarError as error:
                    with self._lists:
                        ticket = self._ticket()
                    yield StepEvent(ticket, error=error)
            if self.busy:
                yield from self.step()
