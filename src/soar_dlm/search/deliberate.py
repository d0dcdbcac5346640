"""Draft, verify, branch: a search over tokens for texts that do not hold when they are masked again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from typing_extensions import Self

from soar_dlm import checks
from soar_dlm.doors import guarded
from soar_dlm.errors import SettingsError
from soar_dlm.search.adaptive_parallel import AdaptiveParallel
from soar_dlm.search.candidate import Ints
from soar_dlm.search.catalogue import as_strategy
from soar_dlm.search.deliberation import Deliberation
from soar_dlm.search.metrics import get_metric
from soar_dlm.search.question import Search
from soar_dlm.search.rules import Rules
from soar_dlm.search.start import Start
from soar_dlm.search.strategy import Strategy

KINDS = ("open", "plain")
_DRAFTS = "drafts must be a list of kinds of draft, 'open' or 'plain'"
MOST_PARTS = 1024


@guarded
@dataclass(frozen=True)
class Deliberate(Strategy):
    """Draft, verify the text by masking it again, branch on tokens if it fails.

    1. A draft fills the canvas by Adaptive Parallel with ``threshold``, or by the strategy ``draft``: an object, a
       name, or a table such as {"strategy": "soar", "beam": 2}. It sets the metric; if it leaves its threshold open, it
       takes ``threshold``.
       Each step in which it was unsure (search mode) is a decision: the canvas before it, the position, and its
       ``choices`` likeliest tokens. ``drafts`` are made in order: an "open" one defers end tokens (``defer_end``), a
       "plain" one does not. They share the readings of equal canvases.
    2. If all decisions of a draft had a probability above ``skip``, it is the answer.
    3. Otherwise it is verified: its text, up to and with the first end token of each blank, is masked again in
       ``parts`` rows. Runs of ``span`` tokens (fewer in a text that would not fill the parts) are dealt out to the
       parts in turn; row m masks ``hidden`` parts, m and those after it, the first following the last. The score is
       the mean log probability of the text's tokens, each in all rows that mask it (a pseudo-log-likelihood).
    4. A text that scores above ``accept`` is the answer.
    5. Otherwise the likeliest branch is followed, up to ``tries`` times: an untried token of a decision with a log
       probability above ``least``, by the sum of the log probabilities of all such tokens on the way to it. The draft
       is finished from there; it is given up where it meets a canvas that was read before. Its text is verified row by
       row, as long as it can still be better than the best; its own decisions are branches, too.
    6. In the end the text with the best score is the answer.

    ``abreast`` branches are followed at once. No reading is asked for once ``budget`` forwards are spent, but the first
    draft is always finished.

    Limited discrepancy search (Harvey and Ginsberg, 1995) follows the same order of branches; scoring a text by masking
    it is pseudo-likelihood (Besag, 1975; Salazar et al., 2020). WINO, ReMDM and CORE mask weak tokens again, LoPA,
    LookUM, Info-Gain and Order-Token Search look ahead; none of them branches on tokens of a finished text.
    """

    threshold: float | None = None
    accept: float = -0.05
    tries: int = 4
    skip: float | None = None
    drafts: Sequence[str] = ("open",)
    draft: Strategy | str | Mapping[str, Any] | None = None
    parts: int = 3
    hidden: int = 2
    span: int = 2
    choices: int = 3
    least: float = -5.0
    abreast: int = 1
    budget: int | None = None
    metric: str = "probability"

    def __post_init__(self) -> None:
        get_metric(self.metric)
        if self.draft is not None:
            drafter = as_strategy(self.draft, "draft")
            if self.metric not in (Strategy.metric, drafter.metric):
                raise SettingsError(f"draft reads {drafter.metric!r}, but metric is {self.metric!r}; they must agree.")
            object.__setattr__(self, "draft", drafter)
            object.__setattr__(self, "metric", drafter.metric)
        super().__post_init__()
        checks.field(self, "accept", checks.real_number, -math.inf, math.inf)
        checks.field(self, "least", checks.real_number, -math.inf, 0.0)
        checks.field(self, "tries", checks.whole_number, 0)
        checks.field(self, "parts", checks.whole_number, 2, MOST_PARTS)
        checks.field(self, "hidden", checks.whole_number, 1)
        checks.field(self, "span", checks.whole_number, 1)
        if self.hidden >= self.parts:
            raise SettingsError(
                f"hidden must be less than parts, {self.parts}, so that each row shows some of the text."
            )
        checks.field(self, "choices", checks.whole_number, 2)
        checks.field(self, "abreast", checks.whole_number, 1, checks.WIDEST)
        checks.field(self, "skip", checks.real_number, 0.0, 1.0, optional=True)
        checks.field(self, "budget", checks.whole_number, 1, optional=True)
        named = [self.drafts] if isinstance(self.drafts, str) else checks.listed(_DRAFTS, self.drafts)
        kinds = tuple(checks.known_name("kind of draft called", kind, KINDS) for kind in named)
        if not kinds:
            raise SettingsError("drafts must name at least one kind of draft: 'open' or 'plain'.")
        object.__setattr__(self, "drafts", kinds)
        if self._own_drafter is not None and "open" in kinds and not _can_defer(self._own_drafter):
            name = type(self._own_drafter).__name__
            raise SettingsError(f"{name} has no setting defer_end, so it makes no open drafts; give drafts='plain'.")

    @property
    def _own_drafter(self) -> Strategy | None:
        assert self.draft is None or isinstance(self.draft, Strategy)
        return self.draft

    def bound(self, thresholds: Mapping[str, float]) -> Self:
        own = super().bound(thresholds)
        if self._own_drafter is None or own.threshold is None:
            return own
        return replace(own, draft=self._own_drafter.bound({**thresholds, own.metric: own.threshold}))

    def drafter(self, kind: str) -> Strategy:
        """The strategy that makes drafts of this kind."""
        defer, own = kind == "open", self._own_drafter
        if own is None:
            return AdaptiveParallel(threshold=self.threshold, metric=self.metric, defer_end=defer)
        drafter: Strategy = own if own.defer_end == defer else replace(cast(Any, own), defer_end=defer)
        return drafter

    @property
    def rules(self) -> Rules:  # type: ignore[override]
        return self.drafter("plain").rules

    @property
    def rows(self) -> int:
        return self.abreast * self.drafter("plain").rows

    @property
    def finalists(self) -> int:
        return len(self.drafts) + self.tries

    def hidden_rows(self, size: int) -> list[Ints]:
        """The indices in a text of ``size`` tokens that each row of a verification masks.

        None is empty and none is there twice. A row that masks the whole text, as in very short ones, is left out
        unless there is no other.
        """
        part = np.arange(size) // min(self.span, max(size // self.parts, 1)) % self.parts
        masked = [np.flatnonzero((part - first) % self.parts < self.hidden) for first in range(self.parts)]
        rows = list({row.tobytes(): row for row in masked if row.size}.values())
        return [row for row in rows if row.size < size] or rows

    def search(self, start: Start) -> Search:
        return Deliberation(self, start).run()


def _can_defer(strategy: Strategy) -> bool:
    return strategy.defer_end or "defer_end" in getattr(strategy, "__dataclass_fields__", {})
