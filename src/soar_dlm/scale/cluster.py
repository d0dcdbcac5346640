"""Connecting to Ray."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from soar_dlm.errors import MissingExtra, SettingsError, SoarError, first_line


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
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anyone
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # what Ray warns of, unless it is decided
    ray = import_ray()
    own: dict[str, Any] = {} if address else {"include_dashboard": False}
    try:
        ray.init(address=address or "local", logging_level=logging.ERROR, log_to_driver=False, **own)
    except Exception as error:  # each way of not reaching a cluster has its own kind
        raise SettingsError(
            f"The Ray cluster at {address or 'this machine'} cannot be used: {first_line(error)}. Start one with 'ray "
            "start --head', or leave the address out to have one started here."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def resources() -> dict[str, float]:
    """What the machines of the cluster have: "CPU", "GPU"..."""
    return dict(import_ray().cluster_resources())


def check_fits(what: str, count: int, each: dict[str, float]) -> None:
    """Refuse ``count`` workers that the cluster, as it is now, could never hold at a time."""
    found = resources()
    for name, need in each.items():
        if need * count > found.get(name, 0.0):
            raise SettingsError(
                f"{count} {what} with {need:g} {name} each need {need * count:g} {name}; the cluster has "
                f"{found.get(name, 0.0):g}. Ask for fewer, or add machines."
            )


@contextmanager
def told_plainly() -> Iterator[None]:
    """What went wrong in a worker as the error that it raised there, not as Ray's report of it."""
    try:
        yield
    except SoarError:
        raise
    except Exception as error:
        found = own_error(error)
        if found is None:
            raise
        raise found from error


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
