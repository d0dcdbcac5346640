"""Where the time of a decoding goes, seen from outside: the model and the requests are wrapped, the engine is not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from soar_dlm.engine.engine import Engine
from soar_dlm.engine.request import Request
from soar_dlm.models.masked_lm import Ints, ModelFacts, Past, Rows, Stored

PARTS = ("backbone", "head", "search")
"""What is timed; the rest of the time is the host's: packing rows, reading logits, transfers."""


class Clock:
    """Seconds by part; time in a part inside another counts for the inner one alone.

    An accelerator works while the host continues, so the clock waits for it at the ends of each part.
    """

    def __init__(self, device: torch.device) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.runs = self.rows = 0
        self._within: list[str] = []
        self._since = 0.0
        self._wait: Callable[[], Any] = waiting(device)

    @contextmanager
    def during(self, part: str) -> Iterator[None]:
        self._turn()
        self._within.append(part)
        try:
            yield
        finally:
            self._turn()
            self._within.pop()

    def _turn(self) -> None:
        self._wait()
        now = time.perf_counter()
        if self._within:
            self.seconds[self._within[-1]] += now - self._since
        self._since = now

    def count(self, rows: int) -> None:
        """A run of the backbone with this many rows."""
        self.runs += 1
        self.rows += rows

    def timed(self, part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            with self.during(part):
                return work(*arguments, **named)

        return run


def waiting(device: torch.device) -> Callable[[], Any]:
    """What waits until a device has done its work."""
    wait = getattr(getattr(torch, device.type, None), "synchronize", None)
    return wait if wait is not None and device.type != "cpu" else lambda: None


class ClockedLM:
    """A model whose backbone and head are timed; everything else is the model's own."""

    def __init__(self, model: Any, clock: Clock) -> None:
        self._model, self._clock = model, clock

    @property
    def facts(self) -> ModelFacts:
        found: ModelFacts = self._model.facts
        return found

    @property
    def device(self) -> torch.device:
        found: torch.device = self._model.device
        return found

    @property
    def column_bytes(self) -> int | None:
        found: int | None = getattr(self._model, "column_bytes", None)
        return found

    def needed(self, columns: Ints) -> Ints:
        found: Ints = self._model.needed(columns)
        return found

    def hidden(self, rows: Rows) -> Tensor:
        self._clock.count(len(rows.ids))
        with self._clock.during("backbone"):
            states: Tensor = self._model.hidden(rows)
            return states

    def hidden_over(self, rows: Rows, past: Past) -> tuple[Tensor, list[Stored | None]]:
        self._clock.count(len(rows.ids))
        with self._clock.during("backbone"):
            found: tuple[Tensor, list[Stored | None]] = self._model.hidden_over(rows, past)
            return found

    def backbone(self, **inputs: Any) -> Any:
        self._clock.count(len(inputs["input_ids"]))
        with self._clock.during("backbone"):
            return self._model.backbone(**inputs)

    def head(self, hidden: Tensor, out: Tensor) -> None:
        with self._clock.during("head"):
            self._model.head(hidden, out)

    def logits(self, hidden: Tensor) -> Tensor:
        with self._clock.during("head"):
            made: Tensor = self._model.logits(hidden)
            return made


class ClockedEngine(Engine):
    """An engine that times its requests: their searches, and the books that are kept of them."""

    clock: Clock

    def add(self, request: Request) -> int:
        ticket = super().add(request)
        live: Any = self._waiting[-1]
        for name in ("begin", "questions", "absorb"):
            setattr(live, name, self.clock.timed("search", getattr(live, name)))
        return ticket
