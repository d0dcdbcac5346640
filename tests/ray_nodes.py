"""A Ray cluster for the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def nodes(count: int) -> Iterator[Any]:
    """Nodes with one CPU each, on this machine; the first is the head."""
    from ray.cluster_utils import Cluster

    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(count - 1):
        cluster.add_node(num_cpus=1)
    try:
        yield cluster
    finally:
        cluster.shutdown()
