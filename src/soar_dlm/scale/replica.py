"""A replica of the server: one engine with the server's app, in an actor of Ray Serve."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from sse_starlette.sse import AppStatus
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from soar_dlm.async_lm import AsyncLM
from soar_dlm.errors import EngineStopped
from soar_dlm.scale.exposition import merged
from soar_dlm.scale.names import APP, DEPLOYMENT, MARK
from soar_dlm.serve.app import make_app
from soar_dlm.serve.settings import ServeSettings
from soar_dlm.serve.watch import log_to_stderr

_PATIENCE = 5.0
"""Seconds for an engine's last errors to be sent, or for the figures of all replicas to come."""


class Replica:
    """What Ray Serve calls in a replica.

    1. Ray starts a replica anew whose engine has died: once the errors of its requests are sent, the process ends.
    2. Every second Ray asks for what :class:`soar_dlm.scale.routing.LiveRows` goes by.
    3. ``/metrics`` of any replica has the figures of all, each with the name of its replica.
    """

    def __init__(self, make: Callable[[], AsyncLM], settings: ServeSettings) -> None:
        from ray import serve

        AppStatus.enable_automatic_graceful_drain = False  # streams that run are finished
        log_to_stderr()
        self.name = str(serve.get_replica_context().replica_id.unique_id)
        self._lm = make()
        self._app = make_app(self._lm, settings)
        self._app.state.exposed = self._figures_of_all
        self._door = Door(self._app, self.name)

    def __serve_build_asgi_app__(self) -> ASGIApp:
        self._watching = asyncio.create_task(self._watch())
        return self._door

    def record_routing_stats(self) -> dict[str, Any]:
        """How many requests there are, and the rows that they take or will take."""
        lm, requests = self._lm, self._door.open
        each = lm.live_rows / max(1, requests - lm.waiting)
        return {"requests": requests, "rows": round(lm.live_rows + lm.waiting * max(1.0, each), 1)}

    def check_health(self) -> None:
        if self._lm.dead is not None:
            raise self._lm.dead

    def figures(self) -> tuple[str, list[Metric]]:
        """The name of the replica, and its figures, one of which says on which machine it is which process."""
        from ray.util import get_node_ip_address

        about = GaugeMetricFamily("soar_replica_info", "A replica.", labels=["node", "pid"])
        about.add_metric([get_node_ip_address(), str(os.getpid())], 1)
        return self.name, [about, *self._app.state.figures.registry.collect()]

    async def _figures_of_all(self) -> bytes:
        from ray import serve

        asked = serve.get_deployment_handle(DEPLOYMENT, APP).broadcast("figures")
        found = await asked.results_async(timeout_s=_PATIENCE, return_exceptions=True)
        return merged(dict(one for one in found if not isinstance(one, BaseException)))

    async def _watch(self) -> None:
        try:
            await self._lm.ended()
        except EngineStopped:
            end = asyncio.get_running_loop().time() + _PATIENCE
            while self._door.open and asyncio.get_running_loop().time() < end:
                await asyncio.sleep(0.01)
            os._exit(1)


class Door:
    """Counts the requests that an app has in work, and marks its answers."""

    def __init__(self, app: ASGIApp, name: str) -> None:
        self._app, self._name = app, name
        self.open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[MARK] = self._name
            await send(message)

        http = scope["type"] == "http"
        self.open += http
        try:
            await self._app(scope, receive, marked)
        finally:
            self.open -= http
