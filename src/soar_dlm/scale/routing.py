"""Which replica a request goes to."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from ray.serve.request_router import FIFOMixin, PendingRequest, RequestRouter, RunningReplica


class LiveRows(FIFOMixin, RequestRouter):  # type: ignore[misc]
    """To the replica with the fewest rows; requests are routed in the order in which they come.

    1. Every second, replicas report their rows and their requests (:class:`soar_dlm.scale.replica.Replica`). How many
       requests a replica has now this router knows, as replicas say so whenever they take one.
    2. A request that has come to a replica since its last report counts as many rows as requests take on average, over
       all replicas; one that has ended, as many as those of this replica took.
    3. Of equals any is taken, so that several routers do not all choose the same.
    4. A replica that has all the requests it may have is passed over.
    """

    async def choose_replicas(
        self, candidate_replicas: Sequence[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        if pending_request is not None:
            pending_request.routing_context.should_backoff = True  # before all of them are asked again
        shuffled = random.sample(candidate_replicas, len(candidate_replicas))
        known = [(one.routing_stats, self.replica_queue_len_cache.get(one.replica_id)) for one in shuffled]
        order = sorted(zip(rows_now(known), range(len(known)), strict=True))
        return [[shuffled[place]] for _, place in order]


def rows_now(known: Sequence[tuple[Mapping[str, Any], int | None]]) -> list[float]:
    """The rows of each replica, by what it reported last and how many requests it has now, if that is known."""
    reports = [(report.get("rows", 0.0), report.get("requests", 0)) for report, _ in known]
    each = max(1.0, sum(rows for rows, _ in reports) / max(1, sum(requests for _, requests in reports)))
    found: list[float] = []
    for (rows, then), (_, heard) in zip(reports, known, strict=True):
        now = then if heard is None else heard
        found.append(rows + (now - then) * each if now >= then else rows * now / then)
    return found
