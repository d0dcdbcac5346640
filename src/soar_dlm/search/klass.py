from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from soar_dlm import checks
from soar_dlm.doors import guarded
from soar_dlm.search.beam import proposals
from soar_dlm.search.candidate import Candidate, Floats, Ints, Proposal
from soar_dlm.search.question import Reading, Search, Wanted
from soar_dlm.search.start import Start
from soar_dlm.search.strategy import Strategy


@guarded
@dataclass(frozen=True)
class Klass(Strategy):
    """Commit what is sure and has stopped changing from step to step (KLASS).

    Ready are the positions with a probability above ``sure`` and a Kullback-Leibler divergence from the step before
    below ``divergence``, in ``history`` steps in a row. All of them are committed; if there is none, the
    ``tokens_per_step`` surest are (Kim et al., 2025). A position's history begins when it is first read.
    """

    sure: float = 0.9
    divergence: float = 0.01
    history: int = 2
    tokens_per_step: int = 1
    defer_end: bool = False

    wanted = Wanted(distribution=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.field(self, "sure", checks.real_number, 0.0, 1.0)
        checks.field(self, "divergence", checks.real_number, 0.0, float("inf"))
        checks.field(self, "history", checks.whole_number, 1)

    @property
    def settles(self) -> bool:
        return True

    def search(self, start: Start) -> Search:
        candidate, past = start.candidate, History()
        while candidate.left:
            reading = yield from start.read_one(candidate, self.wanted)
            calm = past.calm_steps(candidate, reading, self.divergence)
            ready = np.flatnonzero((calm >= self.history) & (reading.confidence > self.sure))
            chosen = Proposal(ready, "parallel") if ready.size else proposals(self, reading)[0]
            candidate = start.commit(candidate, reading, chosen)
            start.report([candidate], [self.rank(candidate)])
        return candidate


class History:
    """The last distribution of each position, and for how many steps in a row it has hardly moved."""

    def __init__(self) -> None:
        self._positions: Ints = np.empty(0, dtype=np.int64)
        self._log_p: Tensor | None = None
        self._calm: Ints = np.empty(0, dtype=np.int64)

    def calm_steps(self, candidate: Candidate, reading: Reading, divergence: float) -> Ints:
        """For each position read, in how many steps up to this one its divergence was below the bound: [W]."""
        if (candidate.last.sizes != 1).any():
            self._positions = np.empty(0, dtype=np.int64)  # positions have moved
        calm = np.zeros(len(reading), dtype=np.int64)
        known = np.flatnonzero(np.isin(reading.positions, self._positions))
        before = np.searchsorted(self._positions, reading.positions[known])
        if known.size:
            assert self._log_p is not None
            assert reading.distribution is not None
            moved = divergences(reading.distribution[known], self._log_p[before])
            calm[known] = np.where(moved < divergence, self._calm[before] + 1, 0)
        self._positions, self._log_p, self._calm = reading.positions, reading.distribution, calm
        return calm


def divergences(now: Tensor, before: Tensor) -> Floats:
    """KL(now || before) of each row, from log probabilities: [S, V], [S, V] -> [S]."""
    found: Floats = (now.exp() * (now - before)).sum(-1).cpu().numpy()
    return found
