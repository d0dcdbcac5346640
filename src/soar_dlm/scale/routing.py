"""Which replica a request goes to."""

from __future__ import annotations

import random
import time
from collections import Counter, deque
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from ray.serve.request_router import FIFOMixin, PendingRequest, RequestRouter, RunningReplica

_ON_ITS_WAY = 0.05
"""Seconds in which a replica need not yet have said that it took a request."""


class LiveRows(FIFOMixin, RequestRouter):  # type: ignore[misc]
    """To the replica with the fewest rows; requests are routed in the order in which they come.

    1. Every second, replicas report their rows and their requests (:class:`soar_dlm.scale.replica.Replica`). How many
       requests a replica has now this router knows, as replicas say so whenever they take one; those that are on their
       way count, too.
    2. A request that has come to a replica since its last report counts as many rows as requests take on average, over
       all replicas; one that has ended, as many as those of this replica took.
    3. Of equals any is taken, so that several routers do not all choose the same.
    4. A replica that has all the requests it may have is passed over.
    """

    def initialize_state(self) -> None:
        self._lately: deque[tuple[float, Hashable]] = deque()

    async def choose_replicas(
        self, candidate_replicas: Sequence[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        if pending_request is not None:
            pending_request.routing_context.should_backoff = True  # before all of them are asked again
        now = time.monotonic()
        while self._lately and self._lately[0][0] < now - _ON_ITS_WAY:
            self._lately.popleft()
        coming = Counter(replica for _, replica in self._lately)
        shuffled = random.sample(candidate_replicas, len(candidate_replicas))
        known = [self._known(one, coming[one.replica_id]) for one in shuffled]
        ranked = [shuffled[place] for _, place in sorted(zip(rows_now(known), range(len(known)), strict=True))]
        if ranked:
            self._lately.append((now, ranked[0].replica_id))
        return [[one] for one in ranked]

    def _known(self, replica: RunningReplica, coming: int) -> tuple[Mapping[str, Any], int]:
        """What a replica reported last, and how many requests it has now."""
        heard = self.replica_queue_len_cache.get(replica.replica_id)
        report = replica.routing_stats
        return report, coming + (report.get("requests", 0) if heard is None else heard)


def rows_now(known: Sequence[tuple[Mapping[str, Any], int]]) -> list[float]:
    """The rows of each replica, by what it reported last and how many requests it has now."""
    reports = [(report.get("rows", 0.0), report.get("requests", 0)) for report, _ in known]
    each = max(1.0, sum(rows for rows, _ in reports) / max(1, sum(requests for _, requests in reports)))
    return [
        rows + (now - then) * each if now >= then else rows * now / then
        for (rows, then), (_, now) in zip(reports, known, strict=True)
    ]
