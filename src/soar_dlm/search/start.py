"""What a search starts from, and what it may do with a canvas."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from soar_dlm.search.candidate import Candidate, Ints, Proposal
from soar_dlm.search.lengths import Lengths
from soar_dlm.search.question import ONLY_TOKENS, Question, Reading, Report, Wanted


def unsettled(candidate: Candidate) -> Candidate:
    """No early exit."""
    return candidate


@dataclass(frozen=True, eq=False)
class Start:
    """The empty canvas of a request, and the request's rules that hold for every search.

    ``settle`` sees every new candidate and may complete it (early exit). ``lengths`` gives expand and delete their
    meaning; without it every token is an ordinary one. ``end_ids`` [E] are the tokens that end a text. ``random``
    decides the draws when tokens are sampled; None reads the most likely token. ``report`` puts candidates into the
    trace; what is not reported is not seen from outside.
    """

    candidate: Candidate
    mask_id: int
    report: Report
    settle: Callable[[Candidate], Candidate] = unsettled
    lengths: Lengths | None = None
    end_ids: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    random: np.random.Generator | None = None

    def read(
        self, beam: Sequence[Candidate], wanted: Wanted = ONLY_TOKENS
    ) -> Generator[Sequence[Question], Sequence[Reading], list[Reading | None]]:
        """Ask about every candidate that has something to fill: its reading, or None for a full one."""
        asked = self.questions(beam, wanted)
        questions = [question for question in asked if question is not None]
        answers = iter((yield questions) if questions else ())
        return [None if question is None else next(answers) for question in asked]

    def read_one(
        self, candidate: Candidate, wanted: Wanted = ONLY_TOKENS
    ) -> Generator[Sequence[Question], Sequence[Reading], Reading]:
        """Ask about a candidate that has something to fill."""
        (reading,) = yield from self.read([candidate], wanted)
        assert reading is not None
        return reading

    def questions(self, beam: Sequence[Candidate], wanted: Wanted = ONLY_TOKENS) -> list[Question | None]:
        """What to ask about each candidate: all open positions of its first unfinished block; None for a full one."""
        draws = None
        if self.random is not None:
            longest = max(candidate.tokens.size for candidate in beam)
            draws = self.random.random((len(beam), longest), dtype=np.float32)
        asked: list[Question | None] = []
        for place, candidate in enumerate(beam):
            columns = candidate.window()
            if not columns.size:
                asked.append(None)
                continue
            uniforms = None if draws is None else draws[place, columns]
            asked.append(replace(self.question(candidate, columns), wanted=wanted, uniforms=uniforms))
        return asked

    def question(self, candidate: Candidate, positions: Ints, given: Ints | None = None) -> Question:
        """What the model thinks of these positions: the likeliest tokens, or those that are ``given``."""
        full = None
        if self.lengths is not None:
            full = self.lengths.room(candidate)[candidate.blank[positions]] == 0
        return Question(candidate, positions, full=full, given=given)

    def commit(self, candidate: Candidate, reading: Reading, proposal: Proposal, origin: int = 0) -> Candidate:
        """The candidate with the proposal's tokens on its canvas; ``origin`` is its place in the beam it was in."""
        if self.lengths is None:
            return self.settle(candidate.commit(reading, proposal, origin))
        affordable = replace(proposal, picks=self.lengths.affordable(candidate, reading, proposal.picks))
        return self.settle(self.lengths.applied(candidate.commit(reading, affordable, origin)))
