"""Settings of the engine."""

from __future__ import annotations

from dataclasses import dataclass

from soar_dlm import checks
from soar_dlm.doors import guarded


@guarded
@dataclass(frozen=True)
class EngineSettings:
    """``max_rows`` rows at most share a forward; a step with more of them takes several forwards.

    A candidate is one row, or two with classifier-free guidance. ``head_budget`` bytes at most are used at a time for
    logits and what is computed from them. ``cache_budget`` bytes at most are stored for requests with a cache: one that
    would take more than all of it is decoded without, others wait until there is room.
    """

    max_rows: int = 32
    head_budget: int = 512 * 2**20
    cache_budget: int = 4 * 2**30

    def __post_init__(self) -> None:
        checks.field(self, "max_rows", checks.whole_number, 1)
        checks.field(self, "head_budget", checks.whole_number, 1)
        checks.field(self, "cache_budget", checks.whole_number, 0)
