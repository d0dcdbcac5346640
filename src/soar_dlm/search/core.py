from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soar_dlm import checks
from soar_dlm.doors import guarded
from soar_dlm.search.beam import proposals
from soar_dlm.search.candidate import Candidate, Ints
from soar_dlm.search.question import Search
from soar_dlm.search.start import Start
from soar_dlm.search.strategy import Strategy


@guarded
@dataclass(frozen=True)
class Core(Strategy):
    """Commit the surest positions; now and then take back the weakest (CORE).

    After every ``every`` steps the ``weak`` committed tokens of least confidence are masked together and read in one
    forward. The one of them that is least probable there is opened again, and decoding continues. Nothing is taken back
    while there is nothing but masks.
    """

    every: int = 8
    weak: int = 32
    tokens_per_step: int = 1
    metric: str = "probability"
    defer_end: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.field(self, "every", checks.whole_number, 2)
        checks.field(self, "weak", checks.whole_number, 1)

    def search(self, start: Start) -> Search:
        candidate, steps = start.candidate, 0
        while candidate.left:
            reading = yield from start.read_one(candidate)
            candidate = start.commit(candidate, reading, proposals(self, reading)[0])
            start.report([candidate], [self.rank(candidate)])
            steps += 1
            if steps % self.every == 0 and candidate.left:
                weak = self._weak(candidate)
                if not weak.size:
                    continue  # so far it has only changed the canvas's length
                question = start.question(candidate.masked(weak, start.mask_id), weak, candidate.tokens[weak])
                (reading,) = yield [question]
                assert reading.given_log_p is not None
                candidate = candidate.reopened(weak[[int(np.argmin(reading.given_log_p))]], start.mask_id)
                start.report([candidate], [self.rank(candidate)])
        return candidate

    def _weak(self, candidate: Candidate) -> Ints:
        """The positions of the committed tokens of least confidence, left to right."""
        committed = np.flatnonzero(~np.isnan(candidate.confidence))
        weakest = np.argsort(candidate.confidence[committed], kind="stable")[: self.weak]
        return np.sort(committed[weakest])
