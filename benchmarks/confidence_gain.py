"""Does search find answers that the model is surer of, and are these right? A section of the report of table1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from soar_dlm.evals.results import Record


@dataclass(frozen=True)
class Gain:
    """Problems in which a method wrote another text than greedy, with more or with less mean confidence.

    ``gained`` and ``lost`` count those that only the method, or only greedy, got right.
    """

    surer: bool
    problems: int
    gained: int
    lost: int


def gains(method: Sequence[Record], greedy: Sequence[Record]) -> list[Gain]:
    """Two groups, surer than greedy first; records of the two in any order."""
    base = {record.index: record for record in greedy}
    pairs = [(record, base[record.index]) for record in method if record.text != base[record.index].text]
    found = []
    for surer in (True, False):
        group = [(own, other) for own, other in pairs if (own.mean_confidence > other.mean_confidence) == surer]
        gained = sum(own.correct and not other.correct for own, other in group)
        lost = sum(other.correct and not own.correct for own, other in group)
        found.append(Gain(surer, len(group), gained, lost))
    return found


def gain_rows(task: str, method: Sequence[Record], greedy: Sequence[Record]) -> Iterator[str]:
    for gain in gains(method, greedy):
        kind = "surer" if gain.surer else "less sure"
        yield f"| {task} | {kind} | {gain.problems} | {gain.gained} | {gain.lost} |"
