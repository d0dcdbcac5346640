"""The server on Ray Serve: replicas of one engine each, behind Ray's proxies."""

from __future__ import annotations

import logging
import re
import signal
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from soar_dlm.async_lm import AsyncLM
from soar_dlm.errors import EngineStopped, MissingExtra, SettingsError, SoarError, first_line
from soar_dlm.scale.cluster import import_ray
from soar_dlm.scale.names import APP, DEPLOYMENT, RETRY_AFTER
from soar_dlm.scale.pool import Pool
from soar_dlm.serve.run import bound
from soar_dlm.serve.settings import ServeSettings

_GRACE = 30.0
"""Seconds that a request may take on its way, beside those that it may take in a replica."""
_TURN = 0.2
"""Seconds between two looks at what Ray Serve is doing."""
_OWN_ERROR = re.compile(r"^soar_dlm\.\S+: (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Service:
    """What is served, and how: ``make`` gives the engine, in the process where it is to run.

    An engine has ``rows`` for requests, and ``queue`` more may wait for one; as many may wait at each proxy while no
    replica can take them. ``here`` says that the cluster was started for this service, and ends with it.
    """

    make: Callable[[], AsyncLM]
    settings: ServeSettings
    pool: Pool
    rows: int
    queue: int
    host: str
    port: int
    here: bool = False


class Stop(Protocol):
    """Whether the service is to end."""

    def wait(self, seconds: float) -> bool:
        """Wait until it is, but not longer; says whether it is."""

    @property
    def urgent(self) -> bool:
        """Whether requests that run are not to be waited for."""


class Signals:
    """A :class:`Stop` by SIGINT, SIGTERM or SIGHUP: at the second, it is urgent."""

    def __init__(self) -> None:
        self._count, self._any = 0, threading.Event()

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Take the signals of this process inside."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = [signal.signal(number, self._take) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    def _take(self, *_: Any) -> None:
        self._count += 1
        self._any.set()

    def wait(self, seconds: float) -> bool:
        return self._any.wait(seconds)

    @property
    def urgent(self) -> bool:
        return self._count > 1


def serve_on_ray(service: Service, stop: Stop, ready: Callable[[str], None]) -> bool:
    """Serve on the cluster that this process is connected to, until it is to stop; says whether it was.

    1. ``ready`` is told the address once all replicas take requests. What keeps the first of them from starting is
       raised.
    2. A service that is there already is replaced replica by replica: the new ones take requests before the old ones,
       which finish theirs, end. Where the cluster has no room for one more, an old one ends first. If the new ones
       cannot start, or it is to stop before they have, what there is stays.
    3. Whoever was replaced returns False and leaves all as it is, unless the cluster is its own.
    4. At the end no new request is taken, and those that run are finished.
    """
    owner = _Owner()
    address = _started(service, owner)
    first = APP not in _serve().status().applications
    try:
        _serve().run_many([_serve().RunTarget(_target(service), APP)], wait_for_applications_running=False)
        settled = _settled(stop)
    except Exception:
        if first:
            _shut_down(owner, service.here)
        raise
    if settled:
        owner.take()
        ready(address)
        if not _until_replaced(owner, stop, service.here):
            return False
    if settled or first:
        _drain(stop)
        _shut_down(owner, service.here)
    return True


def _serve() -> Any:
    import_ray()
    try:
        from ray import serve
    except ImportError as error:
        raise MissingExtra("ray[serve]", "scale", "Serving on several machines") from error
    logging.getLogger("ray.serve").setLevel(logging.ERROR)  # what it is doing is told here
    return serve


def _started(service: Service, owner: _Owner) -> str:
    """Start Ray Serve unless it runs; its address."""
    serve = _serve()
    from ray.serve.context import _get_global_client

    timeout = None if service.settings.timeout is None else service.settings.timeout + _GRACE
    client = _get_global_client(raise_if_no_controller_running=False)
    if client is None:
        port = service.port or _free_port(service.host)
        callback = {"RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": "soar_dlm.scale.proxy.middlewares"}
        try:
            serve.start(
                http_options={"host": service.host, "port": port, "request_timeout_s": timeout},
                logging_config={"log_level": "WARNING", "enable_access_log": False},
                controller_options={"runtime_env": {"env_vars": callback}},
            )
        except Exception as error:
            raise SettingsError(
                f"Ray Serve cannot be started on {service.host}, port {port}: {first_line(error)}."
            ) from error
        owner.take()
        return _address(service.host, port)
    found = client.http_config
    if not owner.known:  # its proxies would not say what is wrong as we do
        raise SettingsError(
            "Ray Serve runs on this cluster already, but was not started by 'soar serve'. Use another cluster, or end "
            "it with 'serve shutdown'."
        )
    if found.host != service.host or service.port not in (0, found.port):
        raise SettingsError(
            f"Ray Serve already listens on {found.host}, port {found.port}, on this cluster. Give these as --host and "
            "--port, or end it with 'serve shutdown'."
        )
    if found.request_timeout_s is not None and (timeout is None or timeout > found.request_timeout_s):
        raise SettingsError(
            f"Ray Serve, which runs already, ends requests after {found.request_timeout_s:g} s. Give a --timeout of at "
            f"most {found.request_timeout_s - _GRACE:g}, or end it with 'serve shutdown'."
        )
    return _address(found.host, found.port)


def _free_port(host: str) -> int:
    with bound(host, 0) as listener:
        return int(listener.getsockname()[1])


def _address(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _target(service: Service) -> Any:
    from soar_dlm.scale.replica import Replica

    serve, pool, settings = _serve(), service.pool, service.settings
    many: dict[str, Any] = {"num_replicas": pool.least}
    if pool.most > pool.least:
        wanted = {"min_replicas": pool.least, "max_replicas": pool.most}
        many = {"autoscaling_config": {**wanted, "target_ongoing_requests": service.rows}}
    deployment = serve.deployment(
        serve.ingress()(Replica),
        name=DEPLOYMENT,
        **many,
        ray_actor_options=pool.each,
        max_ongoing_requests=2 * (service.rows + service.queue) + 64,  # so that it is the engine that refuses
        max_queued_requests=max(1, service.queue),
        backpressure_config={"status_code": 429, "retry_after_s": RETRY_AFTER},
        request_router_config={
            "request_router_class": "soar_dlm.scale.routing.LiveRows",
            "request_routing_stats_period_s": 1.0,
        },
        health_check_period_s=1.0,
        graceful_shutdown_wait_loop_s=0.1,
        graceful_shutdown_timeout_s=1e6 if settings.timeout is None else settings.timeout + _GRACE,
        max_constructor_retry_count=1,
        max_surge_percent=1 if _room(pool) else 0,  # is rounded up to a whole replica
    )
    return deployment.bind(service.make, settings)


def _room(pool: Pool) -> bool:
    """Whether one of the machines has room for one more replica now."""
    import_ray()
    from ray._private.state import available_resources_per_node

    machines = available_resources_per_node().values()
    return any(one.get("CPU", 0.0) >= pool.cpus and one.get("GPU", 0.0) >= pool.gpus for one in machines)


def _settled(stop: Stop) -> bool:
    """Wait until all replicas run; False if it is to stop before."""
    while not stop.wait(_TURN):
        found = _application()
        if found.status == "RUNNING":
            return True
        if found.status == "DEPLOY_FAILED":
            raise _failure(found)
    return False


def _application() -> Any:
    """What Ray Serve says of the service."""
    try:
        found = _serve().status().applications.get(APP)
    except Exception as error:  # each way of losing a cluster has its own kind
        raise EngineStopped(f"Ray Serve cannot be reached any more: {first_line(error)}.") from error
    if found is None or found.status == "DELETING":
        raise EngineStopped("The service was deleted from the cluster. Start it again.")
    return found


class _Owner:
    """Which command's replicas are those that run; it is written down on the cluster."""

    _PLACE = b"soar-serve-owner"

    def __init__(self) -> None:
        import_ray()
        from ray.experimental import internal_kv

        self._name, self._kept = uuid.uuid4().bytes, internal_kv

    def take(self) -> None:
        self._kept._internal_kv_put(self._PLACE, self._name)

    def leave(self) -> None:
        self._kept._internal_kv_del(self._PLACE)

    @property
    def known(self) -> bool:
        """Whether Ray Serve was started by a command like this."""
        return self._kept._internal_kv_get(self._PLACE) is not None

    @property
    def replaced(self) -> bool:
        return bool(self._kept._internal_kv_get(self._PLACE) != self._name)


def _failure(found: Any) -> SoarError:
    """What keeps replicas from starting, as the error that they raise tells it."""
    messages = [one.message for one in found.deployments.values()] + [found.message]
    for message in messages:
        if own := _OWN_ERROR.findall(message):
            return SoarError(own[-1])
    return SoarError(f"The replicas cannot be started: {' '.join(' '.join(messages).split())[-400:]}")


def _until_replaced(owner: _Owner, stop: Stop, keep: bool) -> bool:
    """Wait until it is to stop; False if the replicas of another command have taken the place of its own."""
    while not stop.wait(5 * _TURN):
        if not keep and owner.replaced:
            return False
        _application()
    return True


def _drain(stop: Stop) -> None:
    """Take no more requests, and wait for those that run."""
    serve, pause = _serve(), threading.Event()
    serve.delete(APP, _blocking=False)
    while APP in serve.status().applications and not stop.urgent:
        pause.wait(_TURN)


def _shut_down(owner: _Owner, here: bool) -> None:
    """End Ray Serve, which has no other application; where the cluster was started here, it ends with it."""
    owner.leave()
    if not here:
        _serve().shutdown()
