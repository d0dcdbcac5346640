"""What it takes to show a trace to a person without the model: the text of every token, and where the blanks were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import exp, inf
from typing import Any

from soar_dlm import checks
from soar_dlm.errors import InputFileError


@dataclass(frozen=True)
class Scene:
    """The canvas that a decoding started from, and how to read what was written on it.

    ``around`` is the text before, between and after the blanks. ``blanks`` has the first position and the length of
    each. ``pieces`` maps every token id of the trace to its text; ``ends`` are those that end a text, and ``filler`` is
    what an early exit fills the rest of a canvas with. A confidence lies between ``low`` (None: it has no bound) and
    ``high``.
    """

    around: tuple[str, ...]
    blanks: tuple[tuple[int, int], ...]
    pieces: Mapping[int, str]
    ends: tuple[int, ...]
    filler: int
    low: float | None = 0.0
    high: float = 1.0

    def share(self, confidence: float) -> float:
        """A confidence on a scale from 0 (unsure) to 1 (sure); without a lower bound c becomes exp(c - high)."""
        if self.low is None:
            return exp(min(confidence - self.high, 0.0))
        return min(max((confidence - self.low) / (self.high - self.low), 0.0), 1.0)

    def to_json(self) -> dict[str, Any]:
        """The scene as plain JSON values."""
        return {**asdict(self), "pieces": {str(token): piece for token, piece in self.pieces.items()}}

    @classmethod
    def from_json(cls, content: Any) -> Scene:
        """The scene of :meth:`to_json`; anything else is refused."""
        around = tuple(_text(one) for one in content["around"])
        blanks = tuple(_blank(*one) for one in content["blanks"])
        apart = all(first + size <= after for (first, size), (after, _) in pairwise(blanks))
        if len(around) != len(blanks) + 1 or not apart:
            raise InputFileError("the blanks overlap, or do not fit the text around them")
        low, high = content["low"], checks.real_number("high", content["high"], -inf, inf)
        if low is not None and checks.real_number("low", low, -inf, inf) >= high:
            raise InputFileError("low is not below high")
        return cls(
            around=around,
            blanks=blanks,
            pieces={int(token): _text(piece) for token, piece in content["pieces"].items()},
            ends=checks.whole_numbers("ends must be token ids", content["ends"]),
            filler=checks.whole_number("filler", content["filler"], 0),
            low=low,
            high=high,
        )


def _text(value: Any) -> str:
    checks.string("A piece of text", value)
    return str(value)


def _blank(first: Any, size: Any) -> tuple[int, int]:
    return checks.whole_number("The start of a blank", first, 0), checks.whole_number("Its length", size, 1)
