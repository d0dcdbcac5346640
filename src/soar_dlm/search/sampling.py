"""How a token is chosen from a position's distribution."""

from __future__ import annotations

from dataclasses import dataclass

from soar_dlm import checks


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
        checks.real_number("temperature", self.temperature, 0.0, float("inf"))
        checks.real_number("top_p", self.top_p, 0.0, 1.0, open_low=True)
        if self.top_k is not None:
            checks.whole_number("top_k", self.top_k, 1)

    @property
    def buffers(self) -> int:
        """How many float32 copies of the logits are alive at the peak of :func:`soar_dlm.search.reading.read`."""
        if self.temperature == 0:
            return 3
        return 6 if self.top_p == 1.0 else 12  # sorting takes indices and room to work in
