"""Ideas for a better Deliberate, measured on validation problems: what each solves with the same number of forwards.

    python -m benchmarks.ideas                                        every idea on mini-code, about an hour on a core
    python -m benchmarks.ideas --task mini-sudoku --threshold 0.995 --first 800 --ideas "the rule,earlier first"

An idea decodes each problem once and accepts nothing; what it would have answered for every ``accept`` and every
smaller ``tries`` is replayed from the trace (soar_dlm/evals/replay.py). A cell is the most accurate of these settings
within a budget of forwards. It was chosen on the very problems it is measured on, so it serves to compare ideas and is
too good as a forecast. docs/results/ideas.md says what came of it.
"""

from __future__ import annotations

import argparse
import heapq
import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from soar_dlm.cli.lists import listed, numbers_of
from soar_dlm.errors import SoarError, UnknownName
from soar_dlm.evals.comparison import course_of
from soar_dlm.evals.deliberate_sweeps import QUANTILES
from soar_dlm.evals.replay import NEVER, Course
from soar_dlm.evals.reports import table
from soar_dlm.lm import load
from soar_dlm.search.candidate import Candidate, Proposal
from soar_dlm.search.deliberate import Deliberate
from soar_dlm.search.deliberation import Asking, Decision, Deliberation, Dive
from soar_dlm.search.entropy_bound import EntropyBound
from soar_dlm.search.question import Place, Question, Reading, Search
from soar_dlm.search.soar import Soar
from soar_dlm.search.start import Start
from soar_dlm.tasks.catalogue import make_task


@dataclass(frozen=True)
class BetterTextsFirst(Deliberate):
    """Branches of texts with better scores come first."""

    weight: float = 3.0

    def search(self, start: Start) -> Search:
        return _Listening(self, start, by_score=self.weight).run()


@dataclass(frozen=True)
class DoubtsFirst(Deliberate):
    """Branches at tokens that the verification found unlikely come first."""

    weight: float = 0.3

    def search(self, start: Start) -> Search:
        return _Listening(self, start, by_doubt=self.weight).run()


@dataclass(frozen=True)
class EarlierFirst(Deliberate):
    """Of decisions that were equally unsure, the earlier ones are tried first: later tokens suffer from a mistake."""

    weight: float = 0.1

    def search(self, start: Start) -> Search:
        return _Listening(self, start, by_order=self.weight).run()


@dataclass(frozen=True)
class Repairs(Deliberate):
    """A verified text is verified again with the tokens that the model would have put where it disagrees."""

    def search(self, start: Start) -> Search:
        return _Listening(self, start, repairs=True).run()


class _Listening(Deliberation):
    """A deliberation that keeps what verifications say of single tokens, and uses it for branches or new texts."""

    def __init__(
        self,
        settings: Deliberate,
        start: Start,
        by_score: float = 0.0,
        by_doubt: float = 0.0,
        by_order: float = 0.0,
        repairs: bool = False,
    ) -> None:
        super().__init__(settings, start)
        self._by_score, self._by_doubt, self._by_order, self._repairs = by_score, by_doubt, by_order, repairs
        self._heard: list[Reading] = []
        self._own_score = 0.0

    def _verified(self, dive: Dive, text: Candidate, drafted: Place, at_once: bool) -> Asking:
        self._heard = []
        yield from _overheard(super()._verified(dive, text, drafted, at_once), self._heard)
        self._own_score = self._scores.get(text.key, 0.0)
        heard = self._heard
        if self._repairs and self._best is not None and not self._accepted:
            for reading in heard:
                differ = np.flatnonzero(reading.tokens != text.tokens[reading.positions])
                if differ.size:
                    opened = text.masked(reading.positions[differ], self.start.mask_id)
                    mended = opened.commit(reading.at(differ), Proposal(np.arange(differ.size), "search"), 0)
                    if mended.key not in self._scores:
                        place = self._report([mended], [0.0], drafted, dive.number)
                        yield from super()._verified(dive, mended, place, at_once=False)
        self._heard = heard

    def _push(self, dive: Dive, decisions: Sequence[Decision]) -> None:
        before = set(map(id, self._heap))
        super()._push(dive, decisions)
        doubts: dict[int, list[float]] = {}
        for reading in self._heard:
            if reading.given_log_p is not None:
                for at, log_p in zip(reading.positions, reading.given_log_p, strict=True):
                    doubts.setdefault(int(at), []).append(-float(log_p))
        bonus = {id(one): self._bonus(one, place, doubts) for place, one in enumerate(decisions)}
        self._heap = [
            entry if id(entry) in before else (entry[0] - bonus[id(entry[3])], *entry[1:]) for entry in self._heap
        ]
        heapq.heapify(self._heap)

    def _bonus(self, decision: Decision, place: int, doubts: Mapping[int, Sequence[float]]) -> float:
        """What is taken off the cost of a branch; ``place`` numbers the decisions of a dive."""
        doubt = float(np.mean(doubts.get(int(decision.reading.positions[decision.pick]), [0.0])))
        return self._by_score * self._own_score + self._by_doubt * min(doubt, 5.0) - self._by_order * place


def _overheard(steps: Asking, heard: list[Reading]) -> Generator[Sequence[Question], Sequence[Reading], None]:
    """The same questions and readings, with a copy of the readings for who listens."""
    try:
        asked = next(steps)
        while True:
            readings = yield asked
            heard += readings
            asked = steps.send(readings)
    except StopIteration:
        return


def ideas(tries: int, tau: float = 0.99) -> dict[str, Deliberate]:
    """The ideas by their names; the first is the rule as it is. ``tau`` is the threshold of all that name no other."""
    own: dict[str, Any] = {"accept": NEVER, "tries": tries}
    return {
        "the rule": Deliberate(tau, **own),
        "tau 0.98": Deliberate(0.98, **own),
        "tau 0.99": Deliberate(0.99, **own),
        "tau 0.995": Deliberate(0.995, **own),
        "tau 0.998": Deliberate(0.998, **own),
        "open and plain drafts": Deliberate(tau, drafts=("open", "plain"), **own),
        "plain drafts": Deliberate(tau, drafts="plain", **own),
        "verified every third": Deliberate(tau, hidden=1, span=1, **own),
        "verified every second": Deliberate(tau, parts=2, hidden=1, span=1, **own),
        "verified two of three": Deliberate(tau, hidden=2, span=1, **own),
        "verified six of nine": Deliberate(tau, hidden=2, span=3, **own),
        "verified half": Deliberate(tau, parts=4, hidden=2, span=1, **own),
        "2 choices": Deliberate(tau, choices=2, **own),
        "5 choices": Deliberate(tau, choices=5, least=-7.0, **own),
        "drafts by EB": Deliberate(draft=EntropyBound(0.02), **own),
        "drafts by SOAR": Deliberate(tau, draft=Soar(2), **own),
        "better texts first": BetterTextsFirst(tau, **own),
        "doubts first": DoubtsFirst(tau, **own),
        "earlier first": EarlierFirst(tau, **own),
        "repairs": Repairs(tau, **own),
    }


def front(courses: Sequence[Course], tries: int, budgets: Sequence[float]) -> Iterator[str]:
    """For each budget, the accuracy of the most accurate setting within it, and its forwards."""
    scores = [stage.score for course in courses for stage in course.stages if math.isfinite(stage.score)]
    settings = [(accept, most) for accept in [*np.quantile(scores, QUANTILES), NEVER] for most in range(tries + 1)]
    runs = [[course.outcome(accept, most) for course in courses] for accept, most in settings]
    runs.append([course.outcome(NEVER, 0, skip=0.0) for course in courses])
    count = len(courses)
    points = [(sum(one.correct for one in run) / count, -sum(one.forwards for one in run) / count) for run in runs]
    for budget in budgets:
        accuracy, forwards = max((point for point in points if -point[1] <= budget), default=(math.nan, math.nan))
        yield "" if math.isnan(accuracy) else f"{accuracy:.1%} at {-forwards:.1f}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ideas", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", default="mini-code")
    parser.add_argument("--model", default="mini-llada")
    parser.add_argument("--threshold", type=float, default=0.99, help="of all ideas that name no other")
    parser.add_argument("--ideas", help="names separated by commas; all by default")
    parser.add_argument("--first", type=int, default=1000, help="the first validation problem")
    parser.add_argument("--problems", type=int, default=300)
    parser.add_argument("--tries", type=int, default=8)
    parser.add_argument("--budgets", default="18,22,26,30,36,43", help="forwards per problem")
    given = parser.parse_args(arguments)
    try:
        known, budgets = ideas(given.tries, given.threshold), numbers_of(given.budgets, float)
        names = list(known) if given.ideas is None else listed(given.ideas)
        for name in names:
            if name not in known:
                raise UnknownName("idea", name, known)
        task, lm = make_task(given.task), load(given.model)
        problems = task.distinct("validation", given.first + given.problems)[given.first :]
        rows = []
        for name in names:
            prompts = [problem.prompt for problem in problems]
            results = lm.generate(prompts, known[name], max_new_tokens=task.canvas, trace=True)
            courses = [course_of(lm, task, *pair) for pair in zip(problems, results, strict=True)]
            rows.append([name, *front(courses, given.tries, budgets)])
            print(*rows[-1], sep="  ", flush=True)
        print(f"\n{given.task}, {len(problems)} validation problems from the {given.first + 1:,}th on\n")
        print(*table(["idea", *(f"at most {budget:g}" for budget in budgets)], rows), sep="\n")
    except SoarError as error:
        raise SystemExit(f"ideas: {error}") from error


if __name__ == "__main__":
    main()
