"""What candidates agree on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from soar_dlm.search.candidate import Candidate, Ints


def agreed(candidates: Sequence[Candidate]) -> int:
    """How many tokens of the text, from the left, all candidates have in common before the first mask of any.

    A commit changes nothing to its left, so in a search that takes nothing back these tokens stay as they are.
    """
    texts = [_before_first_mask(candidate) for candidate in candidates]
    size = min((text.size for text in texts), default=0)
    if not size:
        return 0
    alike = (np.stack([text[:size] for text in texts]) == texts[0][:size]).all(axis=0)
    return size if alike.all() else int(np.argmin(alike))


def _before_first_mask(candidate: Candidate) -> Ints:
    """The tokens of the text before the first one that is still to be written: [<= L]."""
    end = int(np.argmax(candidate.open)) if candidate.open.any() else candidate.open.size
    text: Ints = candidate.tokens[:end][candidate.blank[:end] >= 0]
    return text
