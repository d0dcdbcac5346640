from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soar_dlm import checks
from soar_dlm.doors import guarded
from soar_dlm.search.candidate import Proposal
from soar_dlm.search.prefix import longest_prefix, ranked
from soar_dlm.search.question import Reading, Wanted
from soar_dlm.search.strategy import Strategy


@guarded
@dataclass(frozen=True)
class EntropyBound(Strategy):
    """Commit the positions of least entropy, up to a sum of ``gamma`` (EB-Sampler).

    Positions are taken by rising entropy H. The longest prefix with H_1 + ... + H_n - max H <= gamma is committed: this
    bounds what its tokens could tell about each other (Ben-Hamu et al., 2025).
    """

    gamma: float = 0.1
    defer_end: bool = False

    wanted = Wanted(entropy=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.field(self, "gamma", checks.real_number, 0.0, float("inf"))

    def propose(self, reading: Reading) -> list[Proposal]:
        assert reading.entropy is not None
        order, certainty = ranked(-reading.entropy)
        entropy = -certainty
        found = longest_prefix(order, np.cumsum(entropy) - entropy <= self.gamma)
        return [found if found.picks.size > 1 else Proposal(found.picks, "search")]
