from __future__ import annotations

from dataclasses import dataclass

from soar_dlm.doors import guarded
from soar_dlm.search.strategy import Strategy


@guarded
@dataclass(frozen=True)
class Greedy(Strategy):
    """Commit the ``tokens_per_step`` most confident positions (eq. 4 and 5)."""

    tokens_per_step: int = 1
    metric: str = "probability"
    defer_end: bool = False
