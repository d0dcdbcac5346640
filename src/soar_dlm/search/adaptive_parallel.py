from __future__ import annotations

from dataclasses import dataclass

from soar_dlm.doors import guarded
from soar_dlm.search.strategy import Strategy


@guarded
@dataclass(frozen=True)
class AdaptiveParallel(Strategy):
    """Commit every position above ``threshold``, or else the surest one (Fast-dLLM).

    ``threshold=None`` takes the paper's value for the model and metric.
    """

    threshold: float | None = None
    metric: str = "probability"
    defer_end: bool = False
