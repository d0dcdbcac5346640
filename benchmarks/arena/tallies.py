"""What a method did on all problems of a run, added up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from soar_dlm.evals.comparison import Summary
from soar_dlm.evals.results import Record
from soar_dlm.evals.statistics import mcnemar, wilson_interval


@dataclass(frozen=True)
class Tally:
    """A method on the problems it decoded: which of them it solved, and sums over all of them.

    ``solved`` has a character for each problem in order, "1" if it was solved and "0" if not. ``tokens`` counts the
    tokens that were committed, ``forwards`` evaluations of one candidate.
    """

    solved: str
    tokens: int
    forwards: int
    steps: int
    seconds: float

    @property
    def verdicts(self) -> list[bool]:
        return [verdict == "1" for verdict in self.solved]

    def summary(self, baseline: Tally) -> Summary:
        """The method on its problems, compared with another on those that both decoded, the first so many.

        The speed-up means something only if both decoded all of them on the same machine.
        """
        count, correct = len(self.solved), self.solved.count("1")
        common = min(count, len(baseline.solved))
        test = mcnemar(self.verdicts[:common], baseline.verdicts[:common])
        return Summary(
            problems=count,
            correct=correct,
            interval=wilson_interval(correct, count),
            forwards=self.forwards / count,
            steps=self.steps / count,
            tokens_per_forward=self.tokens / max(self.forwards, 1),
            seconds=self.seconds,
            speed_up=baseline.seconds / self.seconds,
            gained=test.first_only,
            lost=test.second_only,
            p_value=test.p_value,
        )


def tallies(records: Iterable[Record]) -> dict[str, Tally]:
    """The records of each method, added up in the order of their problems."""
    by_method: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: record.index):
        by_method.setdefault(record.method, []).append(record)
    return {name: _added(own) for name, own in by_method.items()}


def _added(own: Sequence[Record]) -> Tally:
    return Tally(
        solved="".join("1" if record.correct else "0" for record in own),
        tokens=sum(round(record.tokens_per_forward * record.forwards) for record in own),
        forwards=sum(record.forwards for record in own),
        steps=sum(record.steps for record in own),
        seconds=round(sum(record.seconds for record in own), 4),
    )
