"""A partly filled canvas, and how it grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from soar_dlm.search.question import Reading, RunnerUp

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]

Mode = Literal["start", "search", "parallel", "branch", "reopened", "kept", "verified"]
"""What happened to a candidate: nothing yet; a commit while unsure, or several while sure; a token was taken that is
not the likeliest; tokens were taken back; nothing, as it was full; its text was masked again and scored."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Indices into a reading that would be committed together, and the mode that chose them."""

    picks: NDArray[np.intp]
    mode: Literal["search", "parallel", "branch"]


@dataclass(frozen=True, slots=True)
class Commit:
    """The last thing that happened to a candidate: what was committed, by which mode, in which parent.

    ``origin`` is the parent's place in the previous beam, ``positions`` count on the parent's canvas. ``sizes`` says
    how many positions each of them is now: 1, or 2 after an expand, or 0 after a delete. ``runners_up`` came second at
    each of them, if the request notes it.
    """

    mode: Mode
    origin: int
    positions: Ints
    tokens: Ints
    confidence: Floats
    sizes: Ints
    runners_up: tuple[RunnerUp, ...] = ()


_NONE = np.empty(0, dtype=np.int64)
_START = Commit("start", 0, _NONE, _NONE, np.empty(0, dtype=np.float32), _NONE)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """``tokens`` [L] is the canvas and ``open`` [L] says which positions are still to be filled.

    Masked positions are known by ``open`` and never by token id, so a prompt may contain the mask token.
    ``blank`` [L] is the number of the blank a position belongs to and ``block`` [L] that of its decoding block, both -1
    for text that stays as it is. ``expansions`` [B] counts how often each blank has expanded.
    ``confidence`` [L] is that with which each token was committed, NaN where none was.
    ``score`` sums the mean confidence of each step; ``confidence_sum`` sums the confidence of each commit.
    ``committed`` counts commits, ``written`` those that wrote a token and did not change the length.
    ``base`` is what the engine has stored of the canvas it grew from: 0 for nothing, None for a canvas that grew from
    none and from which none will grow.
    """

    tokens: Ints
    open: Bools
    blank: Ints
    block: Ints
    expansions: Ints
    confidence: Floats
    score: float = 0.0
    steps: int = 0
    confidence_sum: float = 0.0
    committed: int = 0
    written: int = 0
    last: Commit = _START
    base: int | None = 0

    def commit(self, reading: Reading, proposal: Proposal, origin: int) -> Candidate:
        """The canvas with the tokens of a proposal; ``origin`` is this candidate's place in its beam."""
        positions = reading.positions[proposal.picks]
        tokens = reading.tokens[proposal.picks]
        confidence = reading.confidence[proposal.picks]
        canvas, still_open, sure = self.tokens.copy(), self.open.copy(), self.confidence.copy()
        canvas[positions] = tokens
        still_open[positions] = False
        sure[positions] = confidence
        total = float(confidence.sum(dtype=np.float64))
        likeliest = reading.likeliest
        runners_up = () if likeliest is None else likeliest.besides(proposal.picks, tokens)
        return replace(
            self,
            tokens=canvas,
            open=still_open,
            confidence=sure,
            score=self.score + total / positions.size,
            steps=self.steps + 1,
            confidence_sum=self.confidence_sum + total,
            committed=self.committed + positions.size,
            written=self.written + positions.size,
            last=Commit(proposal.mode, origin, positions, tokens, confidence, np.ones_like(positions), runners_up),
            base=reading.base,
        )

    def reopened(self, positions: Ints, mask_id: int) -> Candidate:
        """The canvas with the tokens at these positions taken back, as if they had not been committed."""
        taken = self.confidence[positions]
        total = float(taken.sum(dtype=np.float64))
        sure = self.confidence.copy()
        sure[positions] = np.nan
        return replace(
            self.masked(positions, mask_id),
            confidence=sure,
            score=self.score - total,
            confidence_sum=self.confidence_sum - total,
            committed=self.committed - positions.size,
            written=self.written - positions.size,
            last=Commit("reopened", 0, positions, self.tokens[positions], taken, np.ones_like(positions)),
            base=self.base,
        )

    @property
    def left(self) -> int:
        """How many positions are still masked."""
        return int(self.open.sum())

    def window(self) -> Ints:
        """The positions to read next: all open ones of the first block that has any."""
        places: Ints = np.flatnonzero(self.open)
        if places.size:
            blocks = self.block[places]
            places = places[blocks == blocks.min()]
        return places

    def kept(self, origin: int, mode: Literal["kept", "verified"] = "kept") -> Candidate:
        """The same candidate one step later, when there was nothing for it to fill."""
        return replace(self, last=replace(_START, mode=mode, origin=origin))

    def masked(self, positions: Ints, mask_id: int) -> Candidate:
        """The canvas with these positions open again, to see what the model makes of them."""
        canvas, is_open = self.tokens.copy(), self.open.copy()
        canvas[positions] = mask_id
        is_open[positions] = True
        return replace(self, tokens=canvas, open=is_open, base=None)

    def filled(self, token: int) -> Candidate:
        """Every open position takes ``token`` at no cost and no gain: an early exit."""
        return replace(self, tokens=np.where(self.open, token, self.tokens), open=np.zeros_like(self.open))

    @property
    def key(self) -> tuple[bytes, bytes, bytes]:
        """Equal for candidates with the same canvas, the same open positions and the same blanks."""
        return self.tokens.tobytes(), self.open.tobytes(), self.blank.tobytes()


@dataclass(frozen=True, slots=True)
class Pool:
    """The candidates of a step, equal ones merged, best first: those just made and those kept because they are full.

    ``previous`` is the best candidate of the step before. ``any_parallel`` says whether any candidate of this step,
    also one that merged into a better one, came from parallel mode.
    """

    ranked: Sequence[Candidate]
    previous: Candidate
    any_parallel: bool
