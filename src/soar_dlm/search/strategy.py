"""What a decoding strategy is: a search, and for searches over orders, what to commit next and how many to keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
from typing_extensions import Self

from soar_dlm import checks
from soar_dlm.errors import SettingsError
from soar_dlm.search.beam import beam_search
from soar_dlm.search.candidate import Candidate, Pool, Proposal
from soar_dlm.search.metrics import get_metric
from soar_dlm.search.question import ONLY_TOKENS, Reading, Search, Wanted
from soar_dlm.search.rules import PAPER, Rules
from soar_dlm.search.start import Start
from soar_dlm.search.subsets import best_subsets


class Strategy:
    """The paper's methods are one search with three numbers: beam K, tokens per step n, threshold tau.

    In each step of a request:

    1. Every candidate is run once; confidences c are read at its masked positions: on the whole canvas, or in its own
       first unfinished block. Candidates do not wait for each other at the end of a block.
    2. A candidate with a position of c > tau commits all such positions (parallel mode, eq. 12); any other
       proposes its K best n-subsets (search mode, eq. 9), n cut to what is left masked: :meth:`propose`.
    3. A candidate's score grows by the mean confidence of what it commits (eq. 6 and 7); its rank is its score
       over the steps it took: :meth:`rank`.
    4. Candidates are pooled and equal ones merged, the better kept; they are sorted by rank, the earlier-generated
       first on ties, and cut to N: 1 if the best new one came from parallel mode, else K (eq. 13): :meth:`width`.
    5. A complete candidate stays in the pool with its rank; decoding ends when no candidate in the beam has a mask.
    6. The mask token and suppressed tokens have probability 0 before confidences are read.

    A subclass is a frozen dataclass whose fields are the settings a user may give; what it does not offer keeps the
    value below. Override :meth:`propose`, :meth:`rank` or :meth:`width` for rules that three numbers cannot express,
    and :meth:`search` for what is not a beam at all. If one of them raises, or returns what cannot be done, its own
    request ends with a StrategyError and no other.

    ``defer_end``: a model that is unsure commits an end token by itself only if it sees nothing but end tokens.
    ``wanted`` is what :meth:`propose` reads besides tokens and confidences.
    """

    metric: str = "probability"
    beam: int = 1
    tokens_per_step: int = 1
    threshold: float | None = None
    defer_end: bool = False
    rules: Rules = PAPER
    wanted: Wanted = ONLY_TOKENS

    def __post_init__(self) -> None:
        metric = get_metric(self.metric)
        checks.field(self, "beam", checks.whole_number, 1, checks.WIDEST)
        checks.field(self, "tokens_per_step", checks.whole_number, 1)
        checks.field(self, "defer_end", checks.true_or_false)
        checks.field(self, "threshold", metric.checked_threshold, optional=True)

    def bound(self, thresholds: Mapping[str, float]) -> Self:
        """The same strategy with an open threshold (None) set to the model's value for the metric."""
        offered = getattr(self, "__dataclass_fields__", {})
        if "threshold" not in offered or self.threshold is not None:
            return self
        if self.metric not in thresholds:
            raise SettingsError(f"This model has no default threshold for the metric {self.metric!r}; give one.")
        filled: Self = replace(cast(Any, self), threshold=thresholds[self.metric])
        return filled

    @property
    def rows(self) -> int:
        """About how many rows of a forward a request takes; the engine admits requests by it."""
        return self.beam

    @property
    def finalists(self) -> int:
        """The most texts that a search can end with, which is what ``n`` gives at temperature 0."""
        return self.beam

    @property
    def settles(self) -> bool:
        """Whether what all candidates of the last report agree on, before the first mask, is in the answer, too.

        A beam takes nothing back. A search of another kind says so itself, if it does not either; what it writes can
        then be read before it is done.
        """
        return type(self).search is Strategy.search

    def search(self, start: Start) -> Search:
        """Fill a canvas: a generator that yields lists of questions, is sent their readings and returns an answer."""
        return beam_search(self, start)

    def propose(self, reading: Reading) -> list[Proposal]:
        """Commits to try next, best first: what was read of a candidate -> at least one proposal."""
        if self.threshold is not None:
            above = np.flatnonzero(reading.confidence > self.threshold)
            if above.size:
                strongest = above[np.argsort(-reading.confidence[above], kind="stable")]
                return [Proposal(np.sort(strongest[: self.rules.parallel_limit]), "parallel")]
        subsets = best_subsets(reading.confidence, self.tokens_per_step, self.beam)
        return [Proposal(picks, "search") for picks in subsets]

    def rank(self, candidate: Candidate) -> float:
        """What the beam is sorted by; greater is better."""
        return self.rules.rank(candidate)

    def width(self, pool: Pool) -> int:
        """How many candidates to keep, from 1 to ``beam``."""
        return 1 if self.rules.collapses(pool) else self.beam
