"""What is seen of requests from outside: an id, a line in the log, and the figures of ``/metrics``."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from soar_dlm.async_lm import AsyncLM
from soar_dlm.strict_json import json_line

LOG = logging.getLogger("soar_dlm.serve")
router = APIRouter(tags=["operation"])
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)


class Figures(Collector):
    """The engine's figures when they are asked for, and those of requests as they end."""

    def __init__(self, lm: AsyncLM) -> None:
        self._lm = lm
        self.registry = CollectorRegistry()
        self.registry.register(self)
        how: dict[str, Any] = {"registry": self.registry, "buckets": _SECONDS}
        self.seconds = Histogram("soar_request_seconds", "From a request to the end of its answer.", ["route"], **how)
        self.first = Histogram("soar_first_byte_seconds", "From a request to its answer's start.", ["route"], **how)
        self.answers = Counter("soar_answers", "Answers by status.", ["route", "status"], registry=self.registry)

    async def exposed(self) -> bytes:
        """All figures as Prometheus reads them."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        lm, counts = self._lm, self._lm.counts
        yield GaugeMetricFamily("soar_requests_waiting", "Requests that wait for a row.", lm.waiting)
        yield GaugeMetricFamily("soar_rows_live", "Rows of the next forward.", lm.live_rows)
        for name, about, value in (
            ("soar_steps", "Steps of the engine.", counts.steps),
            ("soar_forwards", "Candidates evaluated.", counts.forwards),
            ("soar_tokens", "Tokens committed in texts that were finished.", counts.tokens),
        ):
            yield CounterMetricFamily(name, about, value)
        ends = CounterMetricFamily("soar_searches", "Searches by how they ended.", labels=["end"])
        for end in ("finished", "failed", "cancelled"):
            ends.add_metric([end], getattr(counts, end))
        yield ends


@router.get("/metrics", response_class=Response, responses={200: {"content": {CONTENT_TYPE_LATEST: {}}}})
async def metrics(request: Request) -> Response:
    """Figures for Prometheus."""
    return Response(await request.app.state.exposed(), headers={"Content-Type": CONTENT_TYPE_LATEST})


class Watch:
    """Gives every request an id, or keeps its own (``x-request-id``), and tells how it ended.

    A route may put more into ``request.state.log``, which is a dict.
    """

    def __init__(self, app: ASGIApp, figures: Figures) -> None:
        self._app, self._figures = app, figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        sent = Headers(scope=scope).get("x-request-id", "")
        name = sent if _ID.fullmatch(sent) else uuid.uuid4().hex
        log: dict[str, Any] = {}
        scope.setdefault("state", {})["log"] = log
        status = 0
        first: float | None = None

        async def told(message: Message) -> None:
            nonlocal status, first
            if message["type"] == "http.response.start":
                status, first = message["status"], time.monotonic() - began
                MutableHeaders(scope=message)["x-request-id"] = name
            await send(message)

        try:
            await self._app(scope, receive, told)
        except Exception:
            status = status or 500  # which is answered further out
            raise
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._count(route, status, first, time.monotonic() - began)
            line = {"id": name, "method": scope["method"], "path": scope["path"], "status": status}
            LOG.info("request", extra={"fields": {**line, "seconds": round(time.monotonic() - began, 4), **log}})

    def _count(self, route: str, status: int, first: float | None, seconds: float) -> None:
        figures = self._figures
        figures.answers.labels(route, str(status)).inc()
        figures.seconds.labels(route).observe(seconds)
        if first is not None:
            figures.first.labels(route).observe(first)


class JsonLines(logging.Formatter):
    """A record as one line of JSON: when, how grave, what, and the fields it has."""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        line = {"time": when, "level": record.levelname.lower(), "event": record.getMessage()}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json_line({**line, **getattr(record, "fields", {})})


def install(app: FastAPI, lm: AsyncLM) -> None:
    """Watch an app; its figures are ``app.state.figures``, and what ``/metrics`` shows ``app.state.exposed``."""
    app.state.figures = Figures(lm)
    app.state.exposed = app.state.figures.exposed
    app.add_middleware(Watch, figures=app.state.figures)


def log_to_stderr() -> None:
    """Write the log of the server, and what uvicorn has to complain of, to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name, level in ((LOG.name, logging.INFO), ("uvicorn.error", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
