"""How a token is chosen from a position's distribution."""

from __future__ import annotations

from dataclasses import dataclass

from soar_dlm import checks
from soar_dlm.doors import guarded
from soar_dlm.errors import SettingsError, shown

COLDEST, HOTTEST = 1e-30, 1e30
"""Temperatures that logits of 32 bits can be divided by: colder ones would be 0 there, hotter ones infinite."""


@guarded
@dataclass(frozen=True)
class Sampling:
    """How a token is drawn from a position's logits.

    1. ``temperature`` 0 takes the most likely token; the other two settings then change nothing.
    2. Otherwise logits are divided by ``temperature``,
    3. only the ``top_k`` most likely tokens are kept (None: all),
    4. then only the fewest most likely tokens whose probabilities reach ``top_p``,
    5. and the token is drawn from what is left.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float = 1.0

    def __post_init__(self) -> None:
        checks.field(self, "temperature", checks.real_number, 0.0, HOTTEST)
        if 0 < self.temperature < COLDEST:
            raise SettingsError(
                f"temperature must be 0, or a number from {COLDEST:g} to {HOTTEST:g}, not {shown(self.temperature)}."
            )
        checks.field(self, "top_p", checks.real_number, 0.0, 1.0, open_low=True)
        checks.field(self, "top_k", checks.whole_number, 1, optional=True)

    @property
    def buffers(self) -> int:
        """How many float32 copies of the logits are alive at the peak of :func:`soar_dlm.search.reading.read`."""
        if self.temperature == 0:
            return 3
        return 6 if self.top_p == 1.0 else 12  # sorting takes indices and room to work in
