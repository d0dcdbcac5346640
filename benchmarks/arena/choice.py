"""Which settings of a strategy enter the test, from what they did on validation problems.

1. A setting is *fast* with at most 1/3 of greedy's forwards, *middle* with at most 9/20, *careful* with at most all of
   them, *free* with any number. 9/20 rather than half leaves a tenth to spare: test problems may take a little more
   forwards than validation problems, and a middle setting is to keep to half of greedy's there as well.
2. Each of these bounds chooses the most accurate setting within it, of these the one with the fewest forwards, of these
   the first in the grid. A bound that no setting keeps chooses none.
3. A setting that several bounds choose is taken once. Where fewer than three are chosen, the best of the others by the
   same order follow until there are three, or no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

FAST, MIDDLE, CAREFUL, FREE = "fast", "middle", "careful", "free"
BOUNDS = {FAST: Fraction(1, 3), MIDDLE: Fraction(9, 20), CAREFUL: Fraction(1), FREE: None}
LEAST = 3
"""How many settings of a strategy enter, if its grid has as many."""


@dataclass(frozen=True)
class Trial:
    """A setting on all validation problems: how many it solved, and the forwards it took for them together."""

    correct: int
    forwards: int


def chosen(trials: Mapping[str, Trial], greedy: int) -> dict[str, tuple[str, ...]]:
    """The settings that enter, by rising forwards, each with the bounds that chose it.

    ``trials`` are those of one strategy in the order of its grid; ``greedy`` is the forwards of greedy decoding.
    """
    ranked = sorted(trials, key=lambda setting: (-trials[setting].correct, trials[setting].forwards))
    roles: dict[str, list[str]] = {}
    for bound, share in BOUNDS.items():
        within = [one for one in ranked if share is None or trials[one].forwards <= share * greedy]
        if within:
            roles.setdefault(within[0], []).append(bound)
    for setting in ranked:
        if len(roles) < LEAST:
            roles.setdefault(setting, [])
    return {setting: tuple(roles[setting]) for setting in sorted(roles, key=lambda one: trials[one].forwards)}
