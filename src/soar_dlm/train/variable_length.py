"""Teaching a canvas to find its own length, after DreamOn: what stands for too much or for nothing must say so."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST = 64
"""The most masks a blank is trained with."""

ALL_HIDDEN = 0.25
"""Share of the states in which nothing of the answer is shown yet, as when decoding starts."""

FROM_LEFT = 0.25
"""Share of the states in which the answer is shown up to a place, as when a short blank grows at its end."""

RIGHT_LENGTH = 1 / 3
"""Share of the states with as many masks as there are tokens left."""


@dataclass(frozen=True)
class State:
    """A blank on the way: ``targets`` [n] is what each position is or should become, ``hidden`` [n] which are masks."""

    targets: list[int]
    hidden: list[bool]


def draw_state(answer: Sequence[int], expand_id: int, delete_id: int, rng: random.Random) -> State:
    """A state that decoding ``answer`` from a blank of any length may come through.

    1. All of the answer is hidden, or all behind some place, or each token by the same chance.
    2. The tokens behind the last one shown are hidden under as many masks as there are, or under a number of masks
       that does not hang on theirs: how long a blank is must say nothing of how long its text will be.
    3. Too few masks: the last one stands for all the rest and must say expand. It will become two masks, the second
       of which stands for the rest.
    4. Too many: surplus masks at the end must say delete.

    Merges and surplus are at the end of a run, where a model can know them: every other mask stands for the token at
    its place.
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
    """Which tokens of an answer are hidden: [length]."""
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
