"""Teaching a canvas to find its own length, after DreamOn: a mask in place of too much or of nothing must say so."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST = 64
"""The greatest number of masks in a blank."""

ALL_HIDDEN = 0.25
"""Share of the states in which none of the answer is visible, as when decoding starts."""

FROM_LEFT = 0.25
"""Share of the states in which the answer is visible up to some place, as when a short blank grows at its end."""

RIGHT_LENGTH = 1 / 3
"""Share of the states with exactly as many masks as there are tokens left."""


@dataclass(frozen=True)
class State:
    """A partly filled blank: ``targets`` [n] is what each position is or should become; ``hidden`` [n] marks masks."""

    targets: list[int]
    hidden: list[bool]


def draw_state(answer: Sequence[int], expand_id: int, delete_id: int, rng: random.Random) -> State:
    """A state that decoding of ``answer`` may pass through, from a blank of any length.

    1. All of the answer is hidden, or all after some place, or each token with the same probability.
    2. The tokens after the last visible one are under as many masks, or under a number of masks that does not depend
       on theirs: the length of a blank must not give away the length of its text.
    3. Too few masks: the last one is in place of all the rest and must become expand. Expanded, it turns into two
       masks, the second of which is in place of the rest.
    4. Too many: surplus masks at the end must become delete.

    Missing and surplus masks are at the end of a run, where a model can recognise them: every other mask is in place
    of exactly one token.
    """
    hidden = _hidden(len(answer), rng)
    shown = max((place for place, is_hidden in enumerate(hidden) if not is_hidden), default=-1) + 1
    targets = list(answer)
    left = len(answer) - shown
    most = LONGEST - shown
    right = any(hidden) and (most < 1 or rng.random() < RIGHT_LENGTH)
    masks = left if right else _number(most, rng)
    if masks < left:
        targets[shown + masks - 1 :] = [expand_id]
    targets += [delete_id] * (masks - left)
    return State(targets, [*hidden[:shown], *[True] * masks])


def _hidden(length: int, rng: random.Random) -> list[bool]:
    """Which tokens of an answer to hide: [length]."""
    kind = rng.random()
    if kind < ALL_HIDDEN:
        return [True] * length
    if kind < ALL_HIDDEN + FROM_LEFT:
        shown = rng.randint(0, length)
        return [place >= shown for place in range(length)]
    level = rng.random()
    return [rng.random() < level for _ in range(length)]


def _number(most: int, rng: random.Random) -> int:
    """A number from 1 to ``most``, as likely between 1 and 2 as between 32 and 64."""
    return int((max(most, 1) + 1) ** rng.random())
