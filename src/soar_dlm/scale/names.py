"""What driver, proxies and replicas of a service on Ray agree on."""

from __future__ import annotations

APP, DEPLOYMENT = "soar", "server"
MARK = "x-soar-replica"
"""The header by which answers of a replica are told from those of Ray. Its value is the name of the replica."""
RETRY_AFTER = 1
"""Seconds after which a client may try another replica."""
