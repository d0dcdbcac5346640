from __future__ import annotations

from dataclasses import dataclass

from soar_dlm.doors import guarded
from soar_dlm.search.strategy import Strategy


@guarded
@dataclass(frozen=True)
class PositionBeam(Strategy):
    """Keep the ``beam`` best orders, ``tokens_per_step`` positions at a time (section 3.2)."""

    beam: int = 2
    tokens_per_step: int = 1
    metric: str = "probability"
    defer_end: bool = False
