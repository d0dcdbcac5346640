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
class Frechet(Strategy):
    """Commit the surest positions that are likely right together (Fast-dLLM++).

    However the positions depend on each other, all of them are right with a probability of at least
    c_1 + ... + c_n - (n - 1) (Fréchet). That bound, less the doubt 1 - c_n about the weakest, must exceed ``delta``.
    """

    delta: float = 0.25
    defer_end: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.field(self, "delta", checks.real_number, -1.0, 1.0)

    def propose(self, reading: Reading) -> list[Proposal]:
        order, sure = ranked(reading.confidence)
        bound = np.cumsum(sure) - np.arange(sure.size)
        return [longest_prefix(order, bound - (1 - sure) > self.delta)]
