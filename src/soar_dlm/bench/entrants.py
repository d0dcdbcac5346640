"""Who takes part: a strategy with a cache in the engine, or a loop written by hand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from soar_dlm.bench.clock import Clock, ClockedEngine, ClockedLM
from soar_dlm.bench.plain import Loop, Written, can_run_plainly, plain, plain_dual, plain_search
from soar_dlm.bench.workload import Workload
from soar_dlm.engine.engine import Engine
from soar_dlm.engine.request import Request
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.errors import SettingsError
from soar_dlm.options import Options
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.strategy import Strategy

NO_CACHE = "none"
CACHES = (NO_CACHE, "prefix", "dual")


class Entrant(ABC):
    """Decodes a workload; ``twin`` must write the very same tokens, if there is one."""

    name: str
    twin: Entrant | None = None

    @abstractmethod
    def decode(self, model: Any, workload: Workload, clock: Clock | None = None) -> list[Written]:
        """Fill every canvas of the workload; the ``clock`` is told where the time goes."""


@dataclass(frozen=True)
class Decoder(Entrant):
    """A strategy in the engine. All requests share its batch, or with ``alone`` each has it for itself."""

    name: str
    strategy: Strategy
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: EngineSettings = field(default_factory=EngineSettings)
    alone: bool = False

    def decode(self, model: Any, workload: Workload, clock: Clock | None = None) -> list[Written]:
        options = Options(**self.options, block_length=workload.block_length, early_exit=False, trace=False)
        requests = [
            Request(tokens, fill, self.strategy, options) for tokens, fill in workload.canvases(model.facts.mask_id)
        ]
        batches = [[one] for one in requests] if self.alone else [requests]
        return [text for batch in batches for text in self._batch(model, batch, clock)]

    def _batch(self, model: Any, requests: Sequence[Request], clock: Clock | None) -> list[Written]:
        engine = self._engine(model, clock)
        places = {engine.add(request): place for place, request in enumerate(requests)}
        found: dict[int, Written] = {}
        for event in engine.run():
            if event.error is not None:
                raise event.error
            if event.decoding is not None:
                done = event.decoding
                if done.cache != self.options.get("cache"):
                    raise SettingsError(
                        f"What {self.name} would store does not fit into the engine's budget for stored keys and "
                        "values. Ask for fewer requests, shorter prompts or a smaller beam."
                    )
                found[places[event.ticket]] = Written(done.tokens, done.written, done.forwards)
        return [found[place] for place in range(len(requests))]

    def _engine(self, model: Any, clock: Clock | None) -> Engine:
        if clock is None:
            return Engine(model, self.settings)
        engine = ClockedEngine(ClockedLM(model, clock), self.settings)
        engine.clock = clock
        return engine


@dataclass(frozen=True)
class ByHand(Entrant):
    """A plain loop, one request after the other. ``make`` gets what times a part of the work, and gives the loop."""

    name: str
    make: Callable[[Callable[[str, Callable[..., Any]], Callable[..., Any]]], Loop]
    twin: Entrant | None = None

    def decode(self, model: Any, workload: Workload, clock: Clock | None = None) -> list[Written]:
        clocked = model if clock is None else ClockedLM(model, clock)
        loop = self.make((lambda part, work: work) if clock is None else clock.timed)
        canvases = workload.canvases(model.facts.mask_id)
        return [loop(clocked, tokens, fill, workload.block_length) for tokens, fill in canvases]


def decoders(
    strategies: Mapping[str, Strategy],
    caches: Sequence[str],
    options: Mapping[str, Any],
    settings: EngineSettings,
    alone: bool = False,
) -> list[Entrant]:
    """Every strategy with every cache; with ``alone`` also one request at a time.

    ``refresh_every`` is for those that have a cache.
    """
    found: list[Entrant] = []
    for name, strategy in strategies.items():
        for cache in caches:
            own = {key: value for key, value in options.items() if cache != NO_CACHE or key != "refresh_every"}
            own |= {} if cache == NO_CACHE else {"cache": cache}
            title = name if cache == NO_CACHE else f"{name}, {cache}"
            found.append(Decoder(title, strategy, own, settings))
            if alone:
                found.append(Decoder(f"{title}, one by one", strategy, own, settings, alone=True))
    return found


def by_hand(strategies: Mapping[str, Strategy], caches: Sequence[str], settings: EngineSettings) -> list[Entrant]:
    """The plain loops that belong beside these: of greedy, without a cache and with a dual one, and of the others.

    A strategy that is no beam over probabilities has no plain loop; where none has one, greedy's stand for them.
    """
    found: list[Entrant] = []
    greedy = Greedy() in strategies.values() or not any(map(can_run_plainly, strategies.values()))
    if greedy:
        found.append(ByHand("plain", lambda _: plain, Decoder("greedy", Greedy(), settings=settings)))
    if greedy and "dual" in caches:
        twin = Decoder("greedy, dual", Greedy(), {"cache": "dual"}, settings)
        found.append(ByHand("plain-dual", lambda _: plain_dual, twin))
    for name, strategy in strategies.items():
        if strategy != Greedy() and can_run_plainly(strategy):
            found.append(_searcher(name, strategy, settings))
    return found


def _searcher(name: str, strategy: Strategy, settings: EngineSettings) -> ByHand:
    twin = Decoder(name, strategy, settings=settings)
    return ByHand(f"plain-{name}", lambda clocked: plain_search(strategy, clocked), twin)
