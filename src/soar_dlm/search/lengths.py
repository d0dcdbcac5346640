"""Canvases that change their length: a committed *expand* becomes two masks, a committed *delete* vanishes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from soar_dlm.search.candidate import Candidate, Ints
from soar_dlm.search.question import Reading


@dataclass(frozen=True, slots=True, eq=False)
class Lengths:
    """The tokens that change a canvas's length, and ``most`` [B]: how many positions each blank may grow to.

    A blank also expands at most ``most`` times in total, since deletes could otherwise make room forever. So decoding
    ends: call the masked positions of a candidate plus twice the expansions it has left its debt. A token or a delete
    removes a mask; an expand adds one and spends an expansion; so every commit lowers the debt by one. A candidate with
    masks commits in every step, so a request that starts with m masks takes at most m + 2 * sum(most) steps, with
    blocks as without.
    """

    expand_id: int
    delete_id: int
    mask_id: int
    most: Ints

    def room(self, candidate: Candidate) -> Ints:
        """How often each blank may still expand now: [B]."""
        inside = candidate.blank[candidate.blank >= 0]
        sizes = np.bincount(inside, minlength=self.most.size)
        left: Ints = np.minimum(self.most - sizes, self.most - candidate.expansions)
        return np.maximum(left, 0)

    def affordable(self, candidate: Candidate, reading: Reading, picks: NDArray[np.intp]) -> NDArray[np.intp]:
        """``picks`` without the expands there is no room for: in each blank the most confident ones stay.

        Never empty: a position of a blank without room does not read as expand in the first place.
        """
        expands = picks[reading.tokens[picks] == self.expand_id]
        room = self.room(candidate)
        dropped: list[int] = []
        for blank in np.unique(candidate.blank[reading.positions[expands]]):
            mine = expands[candidate.blank[reading.positions[expands]] == blank]
            strongest = mine[np.argsort(-reading.confidence[mine], kind="stable")]
            dropped += strongest[room[blank] :].tolist()
        return picks[~np.isin(picks, dropped)]

    def applied(self, candidate: Candidate) -> Candidate:
        """The canvas after its last commit, all edits made at once; everything to the right of an edit moves."""
        positions, tokens = candidate.last.positions, candidate.last.tokens
        grown, gone = tokens == self.expand_id, tokens == self.delete_id
        sizes = np.where(grown, 2, np.where(gone, 0, 1))
        canvas, is_open, sure = candidate.tokens.copy(), candidate.open.copy(), candidate.confidence.copy()
        canvas[positions[grown]] = self.mask_id
        is_open[positions[grown]] = True
        sure[positions[grown]] = np.nan
        copies = np.ones(canvas.size, dtype=np.int64)
        copies[positions] = sizes
        expansions = np.bincount(candidate.blank[positions[grown]], minlength=self.most.size)
        return replace(
            candidate,
            tokens=np.repeat(canvas, copies),
            open=np.repeat(is_open, copies),
            blank=np.repeat(candidate.blank, copies),
            block=np.repeat(candidate.block, copies),
            confidence=np.repeat(sure, copies),
            expansions=candidate.expansions + expansions,
            written=candidate.written - int(grown.sum() + gone.sum()),
            last=replace(candidate.last, sizes=sizes),
        )
