"""What a search reports while it runs, step by step; it becomes the trace and the events of its request."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from soar_dlm.engine.trace import BeamEntry, StepRecord, Trace
from soar_dlm.search.candidate import Candidate
from soar_dlm.search.contract import checked_rank
from soar_dlm.search.question import Place


class Journal:
    """The records of one request; ``best`` is the candidate that its search stands by, ``live`` what it reported last.

    A search reports what it does, or stays silent: then the engine shows the canvases it asks about. ``rank`` is what
    these are ranked by. Without ``keep`` only the record of the present step is in memory.
    """

    def __init__(self, start: Candidate, rank: Callable[[Candidate], float], keep: bool) -> None:
        self.best = start
        self.live: Sequence[Candidate] = (start,)
        self.steps = self.forwards = 0
        self._rank, self._keep = rank, keep
        self._entries: list[BeamEntry] = []
        self._best_place = 0
        self._latest = Place(0, 0)
        self._silent = True
        self._records: list[StepRecord] = []

    def open_step(self, forwards: int) -> None:
        """Begin a step for which this many canvases were run."""
        self.steps += 1
        self.forwards += forwards
        self._entries, self._best_place = [], 0

    def close_step(self, forwards: int) -> StepRecord:
        """The record of the step that was opened last."""
        record = StepRecord(self.steps, forwards, tuple(self._entries), self._best_place)
        if self._keep:
            self._records.append(record)
        return record

    def report(
        self,
        candidates: Sequence[Candidate],
        ranks: Sequence[float],
        after: Place | None = None,
        dive: int = 0,
        verdict: float | None = None,
    ) -> Place:
        """Put candidates, best first, into the record of this step, and say where they are.

        ``after`` is the place of the report that their origins refer to; by default, the report before.
        """
        self._silent = False
        scored = None if verdict is None else checked_rank(verdict, "verdict")
        place = Place(self.steps, len(self._entries))
        came_from = self._latest if after is None else after
        for candidate, rank in zip(candidates, ranks, strict=True):
            self._entries.append(BeamEntry.of(candidate, checked_rank(rank), came_from, dive, scored))
        self.best, self._best_place, self._latest, self.live = candidates[0], place.first, place, candidates
        return place

    def asked_about(self, candidates: Sequence[Candidate]) -> None:
        """The canvases of the next questions, which speak for a search that is silent."""
        if self._silent and self.steps:
            self._show(candidates)

    def answered(self, candidate: Candidate) -> None:
        """The answer, unless it is what was reported last."""
        if candidate is not self.best:
            self._show([candidate])

    def finalists(self, answer: Candidate) -> list[Candidate]:
        """The full canvases of the last report besides the answer."""
        return [candidate for candidate in self.live if candidate is not answer and not candidate.left]

    def _show(self, candidates: Sequence[Candidate]) -> None:
        silent = self._silent
        self.report(candidates, [self._rank(candidate) for candidate in candidates])
        self._silent = silent

    def trace(self) -> Trace:
        return Trace(tuple(self._records))
