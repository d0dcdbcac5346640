from __future__ import annotations

from dataclasses import dataclass

from soar_dlm import checks
from soar_dlm.doors import guarded
from soar_dlm.search.rules import PAPER, RELEASED, Rules
from soar_dlm.search.strategy import Strategy


@guarded
@dataclass(frozen=True)
class Soar(Strategy):
    """Search or Accelerate: a beam while unsure, parallel when sure (Algorithm 1).

    ``threshold=None`` takes the paper's value for the model and metric. ``released`` follows the authors' released
    code for "llada" or "dream" where it departs from the paper.
    """

    beam: int = 2
    threshold: float | None = None
    metric: str = "probability"
    released: str | None = None
    defer_end: bool = False

    def __post_init__(self) -> None:
        if self.released is not None:
            checks.known_name("released preset", self.released, RELEASED)
        super().__post_init__()

    @property
    def rules(self) -> Rules:  # type: ignore[override]
        return PAPER if self.released is None else RELEASED[self.released]
