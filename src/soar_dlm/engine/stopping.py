"""Where a text ends: at an end token, or before a stop string."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from soar_dlm.errors import SettingsError, StopError, shown
from soar_dlm.search.candidate import Candidate, Ints

Decode = Callable[[Sequence[int]], str]
"""Token ids to text."""


class Stopping:
    """The end tokens and stop strings of one request; ``ends`` [E] are the tokens, ``filler_id`` comes after them."""

    def __init__(self, end_ids: Iterable[int], stops: Sequence[str], decode: Decode | None, filler_id: int = 0) -> None:
        self.ends = np.array(sorted(set(end_ids)), dtype=np.int64)
        self._stops, self._decode, self._filler_id = stops, decode, filler_id
        if self._stops and decode is None:
            raise SettingsError("Stop strings need a tokenizer: make the engine with Engine(..., decode=...).")

    def length(self, tokens: Ints) -> int:
        """How many tokens come before the first end token: [L] -> 0 to L."""
        ends = np.flatnonzero(np.isin(tokens, self.ends))
        return int(ends[0]) if ends.size else tokens.size

    def ended(self, tokens: Ints) -> bool:
        """Whether the text of these tokens has an end token or a stop string in it."""
        length = self.length(tokens)
        if length < tokens.size:
            return True
        if not self._stops:
            return False
        assert self._decode is not None
        try:
            text = self._decode(tokens.tolist())
            return cut(text, self._stops) is not None
        except Exception as error:
            raise StopError(f"The stop strings could not be checked; decode raised {shown(error)}.") from error

    def settled(self, candidate: Candidate) -> Candidate:
        """Early exit: a candidate whose text has ended is complete."""
        if not candidate.open.any():
            return candidate
        first_open = int(np.argmax(candidate.open))
        if candidate.last.positions.min() > first_open:
            return candidate  # the filled part before the first mask has not grown
        text = candidate.tokens[:first_open][candidate.blank[:first_open] >= 0]
        return candidate.filled(self._filler_id) if self.ended(text) else candidate


def cut(text: str, stops: Sequence[str]) -> str | None:
    """The text before the first stop string in it; None if it has none."""
    found = [text.index(stop) for stop in stops if stop in text]
    return text[: min(found)] if found else None
