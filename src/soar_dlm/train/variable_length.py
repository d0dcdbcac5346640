"""Teaching a canvas to find its own length, after DreamOn: what stands for too much or for nothing must say so."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST = 64
"""The most masks a blank is trained with."""

ALL_HIDDEN = 0.25
"""Share of the states in which nothing of the answer is shown yet, as when decoding starts."""


@dataclass(frozen=True)
class State:
    """A blank on the way: ``targets`` [n] is what each position is or should become, ``hidden`` [n] which are masks."""

    targets: list[int]
    hidden: list[bool]


def draw_state(answer: Sequence[int], expand_id: int, delete_id: int, rng: random.Random) -> State:
    """A state that decoding ``answer`` from a blank of the wrong length may come through.

    1. A noise level is drawn, and each token is hidden with that probability.
    2. The tokens behind the last one shown are hidden under as many masks as there are, fewer, or more, a third each.
    3. Fewer: neighbours at the end are merged into one mask, which must say expand. It will become two masks, the
       second of which stands for the rest.
    4. More: surplus masks at the end must say delete.

    Merges and surplus are at the end of a run, where a model can know them: every other mask stands for the token at
    its place.
    """
    level = 1.0 if rng.random() < ALL_HIDDEN else rng.random()
    hidden = [rng.random() < level for _ in answer]
    shown = max((place for place, is_hidden in enumerate(hidden) if not is_hidden), default=-1) + 1
    targets = list(answer)
    left = len(answer) - shown
    masks = _masks(left, LONGEST - shown, rng)
    if masks < left:
        targets[shown + masks - 1 :] = [expand_id]
    targets += [delete_id] * (masks - left)
    hidden = [*hidden[:shown], *[True] * masks]
    if not any(hidden):
        return State([*targets, delete_id], [*hidden, True])
    return State(targets, hidden)


def _masks(left: int, most: int, rng: random.Random) -> int:
    """How many masks stand for ``left`` tokens."""
    kind = rng.randrange(3)
    if kind == 1 and left > 1:
        return rng.randint(1, left - 1)
    if kind == 2 and most > left:
        return left + 1 + int((most - left) * rng.random() ** 2)
    return left
