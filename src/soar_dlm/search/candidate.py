"""A partly filled canvas in the beam, and what the model says about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]

Mode = Literal["start", "search", "parallel", "kept"]


@dataclass(frozen=True, slots=True)
class Reading:
    """One forward pass of one candidate, at its masked positions in the active window; all arrays [W]."""

    positions: Ints
    tokens: Ints
    confidence: Floats


@dataclass(frozen=True, slots=True)
class Proposal:
    """Indices into a reading that would be committed together, and the mode that chose them."""

    picks: NDArray[np.intp]
    mode: Literal["search", "parallel"]


@dataclass(frozen=True, slots=True)
class Commit:
    """The last thing that happened to a candidate: what was committed, by which mode, in which parent.

    ``origin`` is the parent's place in the previous beam.
    """

    mode: Mode
    origin: int
    positions: Ints
    tokens: Ints
    confidence: Floats


_NONE = np.empty(0, dtype=np.int64)
_START = Commit("start", 0, _NONE, _NONE, np.empty(0, dtype=np.float32))


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """``tokens`` [L] is the canvas and ``open`` [L] says which positions are still to be filled.

    Masked positions are known by ``open`` and never by token id, so a prompt may contain the mask token.
    ``score`` sums the mean confidence of each step; ``confidence_sum`` sums the confidence of each token.
    """

    tokens: Ints
    open: Bools
    score: float = 0.0
    steps: int = 0
    confidence_sum: float = 0.0
    committed: int = 0
    last: Commit = _START

    def commit(self, reading: Reading, proposal: Proposal, origin: int) -> Candidate:
        positions = reading.positions[proposal.picks]
        tokens = reading.tokens[proposal.picks]
        confidence = reading.confidence[proposal.picks]
        canvas, still_open = self.tokens.copy(), self.open.copy()
        canvas[positions] = tokens
        still_open[positions] = False
        total = float(confidence.sum(dtype=np.float64))
        return Candidate(
            tokens=canvas,
            open=still_open,
            score=self.score + total / positions.size,
            steps=self.steps + 1,
            confidence_sum=self.confidence_sum + total,
            committed=self.committed + positions.size,
            last=Commit(proposal.mode, origin, positions, tokens, confidence),
        )

    def kept(self, origin: int) -> Candidate:
        """The same candidate one step later, when there was nothing for it to fill."""
        return replace(self, last=replace(_START, mode="kept", origin=origin))

    def filled(self, token: int) -> Candidate:
        """Every open position takes ``token`` at no cost and no gain: the end of an early exit."""
        return replace(self, tokens=np.where(self.open, token, self.tokens), open=np.zeros_like(self.open))

    @property
    def key(self) -> tuple[bytes, bytes]:
        """Equal for candidates with the same canvas and the same open positions."""
        return self.tokens.tobytes(), self.open.tobytes()
