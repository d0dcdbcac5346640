"""Where a method gains and loses: by kind of problem, and by how sure the model is of what it wrote."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from soar_dlm.evals.results import Record


def by_kind(records: Sequence[Record]) -> dict[str, tuple[int, int]]:
    """For each kind of problem: how many there are, and how many of them are solved."""
    total = Counter(record.kind for record in records)
    right = Counter(record.kind for record in records if record.correct)
    return {kind: (total[kind], right[kind]) for kind in sorted(total, key=_number_order)}


@dataclass(frozen=True)
class Gain:
    """Problems for which a method wrote another text than greedy, with more or with less mean confidence.

    ``gained`` and ``lost`` count those that only the method, or only greedy, solved.
    """

    surer: bool
    problems: int
    gained: int
    lost: int


def gains(method: Sequence[Record], greedy: Sequence[Record]) -> list[Gain]:
    """Two groups, the surer one first; the records may be in any order."""
    base = {record.index: record for record in greedy}
    pairs = [(record, base[record.index]) for record in method if record.text != base[record.index].text]
    found = []
    for surer in (True, False):
        group = [(own, other) for own, other in pairs if (own.mean_confidence > other.mean_confidence) == surer]
        gained = sum(own.correct and not other.correct for own, other in group)
        lost = sum(other.correct and not own.correct for own, other in group)
        found.append(Gain(surer, len(group), gained, lost))
    return found


def _number_order(label: str) -> list[tuple[int, str]]:
    """A sorting key that puts "9 givens" before "10 givens"."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", label)]
