"""The processes that make malformed calls, and the watch over them.

A call hangs if it takes 5 seconds of the processor's time, or 20 in which it neither runs nor waits for a processor: a
busy machine makes no hangs.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.malformed.room import SLOW, Room
from benchmarks.malformed.tally import Tally, judged

STUCK = 20.0
"""Seconds for which no call may stand still."""
OWN_PROCESSES = "processes"
"""The part whose calls are processes of their own, which it watches itself."""


class Chunk(NamedTuple):
    """``size`` calls of a part; their number in the part is their seed."""

    part: str
    number: int
    size: int


def run_chunk(chunk: Chunk, room: Room, say: Callable[[tuple[str, ...]], None]) -> None:
    """All calls of a chunk: those of odd chunks come from hypothesis, the others from a generator of random numbers."""
    from hypothesis import HealthCheck, given, seed, settings
    from hypothesis import strategies as st

    from benchmarks.malformed.chooser import Chooser, Drawn, Seeded
    from benchmarks.malformed.parts import MAKERS

    def one(choose: Chooser) -> None:
        case = MAKERS[chunk.part](choose, room)
        say(("start", case.label))
        say(("end", *judged(case.run), case.label))

    if chunk.number % 2 == 0:
        for place in range(chunk.size):
            one(Seeded(f"{chunk.part}:{chunk.number}:{place}"))
        return

    @seed(chunk.number)
    @settings(max_examples=chunk.size, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def many(data: Any) -> None:
        one(Drawn(data))

    many()


def quiet() -> None:
    """Offline, on one core, without bars and warnings."""
    os.environ.update(HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", NO_COLOR="1", TQDM_DISABLE="1")
    warnings.simplefilter("ignore")


def work(orders: Connection, folder: str) -> None:
    """A worker: runs the chunks that it is sent, and says what it does. Interruptions are its owner's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    quiet()
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    import torch

    torch.set_num_threads(1)
    room = Room(Path(folder))
    orders.send(("ready",))
    while True:
        run_chunk(Chunk(*orders.recv()), room, orders.send)
        orders.send(("done",))


class Worker:
    """A process that runs chunks, and the watch over it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._folder = tempfile.mkdtemp(prefix="soar-fuzz-")
        self.messages, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, self._folder))
        self._process.start()
        theirs.close()
        self._ready = False
        self._label = "the start of a worker"
        self._tally = Tally()
        self.chunk: Chunk | None = None
        self.alive = True

    def begin(self, chunk: Chunk) -> None:
        self.chunk, self._tally = chunk, Tally()
        self._mark()
        self.messages.send(tuple(chunk))

    def listen(self) -> Tally | None:
        """Take in what the process said since; the tally of its chunk if that is over, because of a hang or not."""
        while self.messages.poll():
            try:
                kind, *said = self.messages.recv()
            except (EOFError, ConnectionError):
                self._process.join()
                return self._over("other", f"the process died with {self._process.exitcode}")
            self._mark()
            if kind == "ready":
                self._ready = True
            elif kind == "start":
                (self._label,) = said
            elif kind == "end":
                self._tally.add(*said)
                self._label = f"the making of a case of {self.chunk}"
            else:
                self.chunk = None
                return self._tally
        return self._over("hang", "") if self._hangs() else None

    def _over(self, verdict: str, what: str) -> Tally:
        self._tally.add(verdict, what, self._label)
        self.chunk = None
        self.stop()
        return self._tally

    def _mark(self) -> None:
        self._began, self._spent = time.monotonic(), self._seconds()

    def _hangs(self) -> bool:
        """Whether it has run too long, or stood still too long, since its last message."""
        assert self.chunk is not None
        if not self._ready or self.chunk.part == OWN_PROCESSES:
            return False
        ran, queued = (now - then for now, then in zip(self._seconds(), self._spent, strict=True))
        return ran > SLOW or time.monotonic() - self._began - ran - queued > STUCK

    def _seconds(self) -> tuple[float, float]:
        """How long the process has run, and how long it has waited for a processor."""
        try:
            ran, queued, _ = Path(f"/proc/{self._process.pid}/schedstat").read_text().split()
        except OSError:  # it has ended
            return 0.0, 0.0
        return int(ran) / 1e9, int(queued) / 1e9

    def stop(self) -> None:
        self.alive = False
        self._process.kill()
        self._process.join()
        shutil.rmtree(self._folder, ignore_errors=True)
