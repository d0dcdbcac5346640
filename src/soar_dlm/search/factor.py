from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soar_dlm import checks
from soar_dlm.doors import guarded
from soar_dlm.search.candidate import Proposal
from soar_dlm.search.prefix import longest_prefix, ranked
from soar_dlm.search.question import Reading
from soar_dlm.search.strategy import Strategy


@guarded
@dataclass(frozen=True)
class Factor(Strategy):
    """Commit the n surest, for the largest n with (n + 1)(1 - c_n) < ``factor``.

    c_n is the n-th greatest probability. For a greater n each of the positions has to be surer, so that the product of
    their own choices is the choice of their joint distribution (Wu et al., 2025, theorem 1).
    """

    factor: float = 1.0
    defer_end: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.field(self, "factor", checks.real_number, 0.0, float("inf"), open_low=True)

    def propose(self, reading: Reading) -> list[Proposal]:
        order, sure = ranked(reading.confidence)
        count = np.arange(1, sure.size + 1)
        return [longest_prefix(order, (count + 1) * (1 - sure) < self.factor)]
