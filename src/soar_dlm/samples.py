"""Several texts for one prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from soar_dlm import checks
from soar_dlm.errors import SettingsError
from soar_dlm.results import Result
from soar_dlm.search.strategy import Strategy


@dataclass(frozen=True)
class Samples:
    """``n`` texts for each prompt; None stands for one that is not in a list.

    1. With a temperature, each is drawn by a request of its own: ``requests`` for each prompt.
    2. At temperature 0 one search gives them all: its answer, then the other texts it ended with. There are fewer than
       ``n`` where it ended with fewer, and a strategy that always ends with one is refused.
    """

    n: int | None = None
    requests: int = 1

    @classmethod
    def of(cls, n: int | None, strategy: Strategy, temperature: float) -> Samples:
        """``n`` and the strategy are checked before there is any prompt."""
        if n is None:
            return cls()
        wanted = checks.whole_number("n", n, 1, checks.WIDEST)
        if temperature > 0:
            return cls(wanted, wanted)
        if wanted > 1 and strategy.finalists == 1:
            raise SettingsError(
                f"n={wanted} at temperature 0 would give the same text each time; set a temperature, or choose a "
                "strategy with a beam, which ends with several texts."
            )
        return cls(wanted)

    def texts(self, results: Sequence[Result]) -> Any:
        """A prompt's result, or with ``n`` the list of them, from the results of its requests."""
        if self.n is None:
            return results[0]
        return [*results] if self.requests == self.n else [results[0], *results[0].alternatives][: self.n]


ONE = Samples()
