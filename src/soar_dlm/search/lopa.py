from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soar_dlm import checks
from soar_dlm.doors import guarded
from soar_dlm.search.beam import proposals
from soar_dlm.search.candidate import Candidate, Proposal
from soar_dlm.search.question import Place, Reading, Search, Wanted
from soar_dlm.search.start import Start
from soar_dlm.search.strategy import Strategy


@guarded
@dataclass(frozen=True)
class Lopa(Strategy):
    """Look ahead along several orders, keep what leaves the model surest (LoPA).

    1. The anchor commits all positions with a probability above ``threshold``, or the surest one.
    2. ``branches`` others commit one more position each: the first, second, ... surest of the rest.
    3. All of them are run. The one whose open positions have the greatest mean negative entropy survives, the earlier
       on ties; what was read of it is used for its next step. A canvas without open positions is as sure as can be.

    LoPA's authors count the rows of a step as one forward; here each row is one.
    """

    threshold: float | None = None
    branches: int = 3
    defer_end: bool = False

    wanted = Wanted(entropy=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.field(self, "branches", checks.whole_number, 1, checks.WIDEST)

    @property
    def rows(self) -> int:
        return 1 + self.branches

    @property
    def settles(self) -> bool:
        return True

    def search(self, start: Start) -> Search:
        candidate, place = start.candidate, Place(0, 0)
        (reading,) = yield from start.read([candidate], self.wanted)
        while reading is not None:
            ahead = self._ahead(candidate, reading, start)
            place = start.report(ahead, [self.rank(one) for one in ahead], after=place)
            if not ahead[0].left:
                return ahead[0]
            readings = yield from start.read(ahead, self.wanted)
            best = int(np.argmax([certainty(one) for one in readings]))
            candidate, reading, place = ahead[best], readings[best], Place(place.step, place.first + best)
        return candidate

    def _ahead(self, candidate: Candidate, reading: Reading, start: Start) -> list[Candidate]:
        """The anchor, and the canvases with one more position committed."""
        anchor = proposals(self, reading)[0]
        rest = np.setdiff1d(np.arange(len(reading)), anchor.picks)
        surest = rest[np.argsort(-reading.confidence[rest], kind="stable")][: self.branches]
        chosen = [anchor, *(Proposal(np.sort(np.append(anchor.picks, one)), anchor.mode) for one in surest)]
        return [start.commit(candidate, reading, one) for one in chosen]


def certainty(reading: Reading | None) -> float:
    """The mean negative entropy of what is open; 0 for a full canvas."""
    if reading is None:
        return 0.0
    assert reading.entropy is not None
    return -float(reading.entropy.mean(dtype=np.float64))
