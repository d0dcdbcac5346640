"""One run of Deliberate tells what it would have answered with fewer tries, or had it accepted a text sooner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, count, takewhile
from math import inf

from soar_dlm.engine.trace import Trace
from soar_dlm.errors import SettingsError
from soar_dlm.evals.fields import Damaged, Fields
from soar_dlm.search.deliberate import Deliberate
from soar_dlm.search.question import Place
from soar_dlm.search.strategy import Strategy

NEVER = 0.0
"""A value of ``accept`` that no text is above: scores are mean log probabilities."""

UNSCORED = -inf
"""The score of a text without tokens, which has nothing to verify; null in files."""


@dataclass(frozen=True)
class Spent:
    """What a request had cost by a certain moment."""

    steps: int
    forwards: int


@dataclass(frozen=True)
class Stage:
    """A text that scored better than every text before it, and whether it is right.

    ``branches`` had been followed, and ``spent`` was the cost, when its score was known.
    """

    score: float
    branches: int
    spent: Spent
    text: str
    correct: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer of a run with certain settings, and its cost."""

    text: str
    correct: bool
    steps: int
    forwards: int


@dataclass(frozen=True)
class Course:
    """What happened in a deliberation that accepted nothing and followed one branch after the other.

    ``drafted`` is the cost of the first draft before it was verified. ``branches`` has, for each branch that was
    followed, the cost before it; ``end`` is that of the whole run. Texts that did not become the best are left out,
    since no run with other settings can return them.
    """

    drafted: Spent
    stages: tuple[Stage, ...]
    branches: tuple[Spent, ...]
    end: Spent

    def outcome(self, accept: float, tries: int, skip: float | None = None) -> Outcome:
        """What a run with these settings would have answered.

        ``accept`` and ``tries`` only cut a deliberation short: what comes before the cut does not depend on them.

        1. The first text that scores above ``accept``, after at most ``tries`` branches, is the answer; nothing is
           spent after its verification.
        2. Without one, the answer is the best text of these branches; all that comes before the next branch is spent.
        3. With ``skip`` = 0.0 the first draft is the answer, and it is not verified. Other values are not recorded.
        """
        if skip is not None:
            assert skip == 0.0
            return _outcome(self.stages[0], self.drafted)
        best = self.stages[0]
        for stage in self.stages:
            if stage.branches > tries:
                break
            best = stage
            if stage.score > accept:
                return _outcome(stage, stage.spent)
        return _outcome(best, self.branches[tries] if tries < len(self.branches) else self.end)

    @classmethod
    def of(
        cls, trace: Trace, first: int, text_of: Callable[[Sequence[int]], str], judge: Callable[[str], bool]
    ) -> Course:
        """The course of a run on one blank that starts at position ``first``; see :func:`check_replayable`."""
        costs = [Spent(0, 0)]
        costs += map(Spent, range(1, len(trace) + 1), accumulate(record.forwards for record in trace))
        stages: list[Stage] = []
        branches: list[Spent] = []
        drafted: Spent | None = None
        for record in trace:
            now = costs[record.step]
            for place, entry in enumerate(record.beam):
                if entry.mode == "branch":
                    branches.append(now)
                elif entry.verdict is not None:
                    drafted = drafted or costs[entry.after]
                    if not stages or entry.verdict > stages[-1].score:
                        text = text_of(_text_tokens(trace, Place(record.step, place), first))
                        stages.append(Stage(entry.verdict, len(branches), now, text, judge(text)))
        if drafted is None or stages[0].branches:  # the drafts had no tokens, and so no verdict
            drafted, text = branches[0] if branches else costs[-1], text_of([])
            stages.insert(0, Stage(UNSCORED, 0, drafted, text, judge(text)))
        return cls(drafted, tuple(stages), tuple(branches), costs[-1])

    @classmethod
    def read(cls, found: Fields) -> Course:
        """The course that ``dataclasses.asdict`` made plain."""
        stages = tuple(_stage(stage) for stage in found.each_inside("stages"))
        if not stages:
            raise Damaged("course.stages is empty")
        branches = tuple(map(_spent, found.each_inside("branches")))
        return cls(_spent(found.inside("drafted")), stages, branches, _spent(found.inside("end")))


def _stage(found: Fields) -> Stage:
    return Stage(
        score=UNSCORED if found.lacks("score") else found.number("score"),
        branches=found.whole("branches"),
        spent=_spent(found.inside("spent")),
        text=found.text("text"),
        correct=found.flag("correct"),
    )


def _spent(found: Fields) -> Spent:
    return Spent(found.whole("steps"), found.whole("forwards"))


def check_replayable(strategy: Strategy) -> None:
    """Refuse a strategy whose trace does not tell the outcome of every ``accept`` and every smaller ``tries``."""
    if not isinstance(strategy, Deliberate):
        raise SettingsError(f"Only runs of Deliberate can be replayed, not those of {type(strategy).__name__}.")
    if strategy.accept < NEVER:
        raise SettingsError(f"A run that is to be replayed must accept nothing; set accept to {NEVER}.")
    limits = (strategy.skip, strategy.budget, strategy.draft)
    if strategy.abreast != 1 or any(limit is not None for limit in limits):
        raise SettingsError("A run that is to be replayed cannot have skip, budget, draft or abreast; leave them out.")


def _text_tokens(trace: Trace, place: Place, first: int) -> list[int]:
    """The tokens from ``first`` on, as far as they were committed: after an early exit there is a gap."""
    tokens = trace.tokens_at(place)
    return [tokens[at] for at in takewhile(tokens.__contains__, count(first))]


def _outcome(stage: Stage, spent: Spent) -> Outcome:
    return Outcome(stage.text, stage.correct, spent.steps, spent.forwards)
