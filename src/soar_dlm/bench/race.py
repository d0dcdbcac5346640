"""Entrants in turns, each round in another order, so that changes in the machine's speed affect all of them alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import torch

from soar_dlm import checks
from soar_dlm.bench.clock import PARTS, Clock, waiting
from soar_dlm.bench.entrants import Entrant
from soar_dlm.bench.memory import Peak
from soar_dlm.bench.plain import Written
from soar_dlm.bench.workload import Workload
from soar_dlm.errors import SettingsError

WARM_UP = 4
"""The length of the canvas that every entrant fills before anything is timed."""


@dataclass(frozen=True)
class Lane:
    """An entrant and what it decodes; ``value`` is that of the variable that lanes differ in, if there is one."""

    entrant: Entrant
    workload: Workload
    value: int | None = None


@dataclass
class Measured:
    """What was measured in a lane: the ``seconds`` of each round, and what is the same in all of them.

    ``forwards`` counts evaluations of one canvas, ``runs`` those of the backbone, each with some ``rows``. ``parts``
    are the seconds of each part in ``clocked`` seconds of decoding. ``peak`` is in bytes, above what was in use before.
    """

    lane: Lane
    seconds: list[float] = field(default_factory=list)
    texts: list[tuple[int, ...]] = field(default_factory=list)
    tokens: int = 0
    forwards: int = 0
    runs: int = 0
    rows: int = 0
    parts: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    clocked: float = 0.0
    peak: int | None = None

    @property
    def name(self) -> str:
        return self.lane.entrant.name

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def tokens_per_second(self) -> float:
        return median(self.tokens / seconds for seconds in self.seconds)

    @property
    def tokens_per_forward(self) -> float:
        return self.tokens / self.forwards

    @property
    def rows_per_run(self) -> float:
        return self.rows / self.runs

    @property
    def shares(self) -> dict[str, float]:
        """The share of each part in the time, and that of the host, which is the rest."""
        found = {part: seconds / self.clocked for part, seconds in self.parts.items()}
        return {**found, "host": 1 - sum(found.values())}

    def ratios(self, other: Measured) -> list[float]:
        """How much faster than another lane, by tokens per second, in each round."""
        share = self.tokens / other.tokens
        return [share * theirs / own for own, theirs in zip(self.seconds, other.seconds, strict=True)]

    def add(self, written: Sequence[Written], peak: int | None) -> None:
        self.texts = [text.tokens for text in written]
        self.tokens, self.forwards = sum(text.written for text in written), sum(text.forwards for text in written)
        self.peak = None if peak is None else max(peak, self.peak or 0)

    def clock(self, clock: Clock, seconds: float) -> None:
        self.runs, self.rows = clock.runs, clock.rows
        self.clocked += seconds
        for part, own in clock.seconds.items():
            self.parts[part] += own


Told = Callable[[str], None]


def race(model: Any, lanes: Sequence[Lane], repeats: int, told: Told = lambda _: None) -> list[Measured]:
    """Every lane ``repeats`` times.

    1. Everyone fills a short canvas, untimed. One that should write what its twin writes is refused if it does not.
    2. In each round every lane has a turn; the order rotates by one from round to round.
    3. After the first round, the texts of twins are compared as a whole.
    4. On a CPU every turn is clocked part by part. An accelerator must be waited for at each part, which takes time; so
       there the parts come from a turn of their own, before the first round.
    """
    checks.whole_number("repeats", repeats, 1)
    found = [Measured(lane) for lane in lanes]
    for one in found:
        told(f"warming up: {one.name}")
        _warm_up(model, one.lane)
    always = model.device.type == "cpu"
    for one in [] if always else found:
        told(f"looking at the parts: {one.name}")
        _turn(model, one, clocked=True, counts=False)
    for number in range(repeats):
        shift = number % len(found)
        for one in [*found[shift:], *found[:shift]]:
            told(f"round {number + 1} of {repeats}: {one.name}")
            _turn(model, one, clocked=always)
        if number == 0:
            _check_twins(found)
    return found


def _warm_up(model: Any, lane: Lane) -> None:
    short, entrant = lane.workload.cut(WARM_UP), lane.entrant
    own = entrant.decode(model, short)
    if entrant.twin is not None and _texts(entrant.twin.decode(model, short)) != _texts(own):
        raise _void(entrant.name, entrant.twin.name)


def _turn(model: Any, one: Measured, clocked: bool, counts: bool = True) -> None:
    lane, device = one.lane, model.device
    clock = Clock(device) if clocked else None
    gc.collect()
    peak, wait = Peak(device), waiting(device)
    wait()
    started = time.perf_counter()
    written = lane.entrant.decode(model, lane.workload, clock)
    wait()
    seconds = time.perf_counter() - started
    one.add(written, peak.bytes())
    if clock is not None:
        one.clock(clock, seconds)
    if counts:
        one.seconds.append(seconds)


def _check_twins(found: Sequence[Measured]) -> None:
    for one in found:
        for other in found:
            same = (one.lane.workload, one.lane.entrant.twin) == (other.lane.workload, other.lane.entrant)
            if same and one.texts != other.texts:
                raise _void(one.name, other.name)


def _texts(written: Sequence[Written]) -> list[tuple[int, ...]]:
    return [text.tokens for text in written]


def _void(name: str, twin: str) -> SettingsError:
    return SettingsError(
        f"{name} and {twin} should write the same tokens but do not: the comparison is void. Load the model in "
        "float32, or leave out --baseline."
    )


def reference(found: Sequence[Measured], name: str | None = None) -> Mapping[int | None, Measured]:
    """What each value's lanes are compared with: those of the entrant of this name, or of the first."""
    names = list(dict.fromkeys(one.name for one in found))
    chosen = names[0] if name is None else checks.known_name("entrant called", name, names)
    return {one.lane.value: one for one in found if one.name == chosen}


def set_threads(threads: int | None) -> None:
    if threads is not None:
        torch.set_num_threads(checks.whole_number("threads", threads, 1, 4096))
