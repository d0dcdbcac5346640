"""From the engine's thread to a task: the events of one request."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock

from soar_dlm.engine.request import StepEvent
from soar_dlm.engine.trace import StepRecord

MOST_PENDING = 64
"""The most events that wait for a reader."""


@dataclass
class Delivery:
    """An event, the forwards up to it, and the records of the steps whose own events it has replaced."""

    event: StepEvent
    forwards: int
    missed: list[StepRecord] = field(default_factory=list)


class Mailbox:
    """Events of one request, put in by the engine's thread and taken out by one task of the present loop.

    1. Without ``every``, only the last event is delivered.
    2. Where ``MOST_PENDING`` events wait for their reader, a new one replaces the latest of them. So what a slow reader
       takes up in memory has a bound, and it never sees an event twice or out of order.
    3. With ``keep``, the records of replaced events are handed on with the one that replaced them. They are as large
       as the trace that the request keeps anyway.
    """

    def __init__(self, every: bool, keep: bool) -> None:
        self._every, self._keep = every, keep
        self._loop = asyncio.get_running_loop()
        self._filled = asyncio.Event()
        self._lock = Lock()
        self._pending: deque[Delivery] = deque()
        self._forwards = 0

    def put(self, event: StepEvent) -> None:
        """Called on the engine's thread."""
        self._forwards += event.record.forwards if event.record is not None else 0
        if not (self._every or event.final):
            return
        delivery = Delivery(event, self._forwards)
        with self._lock:
            if len(self._pending) == MOST_PENDING:
                replaced = self._pending.pop()
                delivery.missed = replaced.missed
                if self._keep and replaced.event.record is not None:
                    delivery.missed.append(replaced.event.record)
            self._pending.append(delivery)
        with suppress(RuntimeError):  # the loop is closed, so nobody waits
            self._loop.call_soon_threadsafe(self._filled.set)

    async def get(self) -> Delivery:
        """The earliest event that waits."""
        while True:
            with self._lock:
                if self._pending:
                    return self._pending.popleft()
                self._filled.clear()
            await self._filled.wait()
