"""Connecting to Ray."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from soar_dlm.errors import MissingExtra, SettingsError, SoarError, first_line
from soar_dlm.scale.tokens import SECONDS, shown_to

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is reported to anyone
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # Ray warns unless this is decided
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # warnings and errors of processes; the files have what workers say
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # what other processes write into the terminal, such as why a worker died
}
"""What Ray is told, unless the user has told it otherwise, so that the terminal has only what we say."""


def import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("ray", "scale", "Working on several machines") from error
    return ray


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Use a Ray cluster inside: that of an address ("auto": the one this machine belongs to).

    Without an address, one is started on this machine, which ends with the block.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    ray = import_ray()
    own: dict[str, Any] = {} if address else {"include_dashboard": False}
    with ExitStack() as stack:
        try:
            place = _found(address) if address else None
            stack.enter_context(shown_to(place))
            with _no_stderr(), _same_signals():
                ray.init(address=place or "local", logging_level=logging.ERROR, log_to_driver=False, **own)
        except SettingsError:
            raise
        except Exception as error:  # each way of not reaching a cluster has its own kind
            raise _unusable(address, error) from error
        stack.callback(ray.shutdown)
        yield


@contextmanager
def _no_stderr() -> Iterator[None]:
    """Drop what is written to standard error, below Python too: Ray says there how much it will say."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _same_signals() -> Iterator[None]:
    """Keep what this process does when it is told to end; Ray would write a report and leave with another code."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    if threading.current_thread() is threading.main_thread():
        for number, handler in before.items():
            signal.signal(number, handler)


def _found(address: str) -> str:
    """The cluster's HOST:PORT, where something answers; where nothing does, Ray would try for minutes."""
    from ray._private.services import canonicalize_bootstrap_address

    place = str(canonicalize_bootstrap_address(address))
    host, _, port = place.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), SECONDS).close()
    return place


def _unusable(address: str | None, error: Exception) -> SettingsError:
    place = f"at {address}" if address not in (None, "auto") else "of this machine"
    return SettingsError(
        f"The Ray cluster {place} cannot be used: {first_line(error)}. Start one with "
        "'ray start --head', or leave the address out to have one started here."
    )


def resources() -> dict[str, float]:
    """What the machines of the cluster have: "CPU", "GPU"..."""
    return dict(import_ray().cluster_resources())


def room_for(each: dict[str, float]) -> int:
    """How many workers that take so much the machines of the cluster hold at a time; none is spread over two."""
    ray, wanted = import_ray(), {name: need for name, need in each.items() if need}
    found = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return sum(min((int(own.get(name, 0.0) // need) for name, need in wanted.items()), default=1) for own in found)


def check_fits(what: str, count: int, each: dict[str, float]) -> None:
    """Refuse ``count`` workers that the cluster, as it is now, could never hold at a time."""
    room = room_for(each)
    if any(each.values()) and count > room:
        need = " and ".join(f"{need:g} {name}" for name, need in each.items())
        has = ", ".join(f"{resources().get(name, 0.0):g} {name}" for name in each)
        raise SettingsError(
            f"The machines of the cluster have room for {room} {what} with {need} each, not for {count}; together they "
            f"have {has}. Ask for fewer or smaller ones, or add machines."
        )


@contextmanager
def told_plainly() -> Iterator[None]:
    """What went wrong in a worker or between machines as an error of ours, not as Ray's report of it."""
    try:
        yield
    except SoarError:
        raise
    except Exception as error:
        found = own_error(error)
        if found is not None:
            raise found from error
        if isinstance(error, import_ray().exceptions.RayError):
            raise SoarError(
                f"Workers on the Ray cluster died too often, or the cluster is gone ({first_line(error)}). What was "
                "finished is kept, and the same command resumes. If it happens again, a worker may lack memory: see "
                "its machine's log, or try a smaller --max-rows."
            ) from error
        raise


def own_error(error: BaseException | None) -> SoarError | None:
    """The library's error behind one of Ray's, if there is one."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, SoarError):
            # Ray makes a class that is both its own and the original, whose text is a report
            cause = getattr(error, "cause", None)
            return cause if isinstance(cause, SoarError) else error
        seen.add(id(error))
        error = getattr(error, "cause", None) or error.__cause__
    return None
