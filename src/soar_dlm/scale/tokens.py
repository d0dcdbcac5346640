"""Tokens, by which a Ray cluster knows who may use it.

Some clusters ask for a token and others do not. Ray looks for this machine's in ``RAY_AUTH_TOKEN``, in the file that
``RAY_AUTH_TOKEN_PATH`` names and in ``~/.ray/auth_token``, but shows it only if ``RAY_AUTH_MODE`` is ``token``. So we
ask the cluster, and set the mode it takes; one that asks for no token is shown none.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from soar_dlm.errors import SettingsError, first_line

MODE, TOKEN, PLACE = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
HOME = "~/.ray/auth_token"
SECONDS = 10.0
"""How long a cluster may take to answer."""


@contextmanager
def shown_to(address: str | None) -> Iterator[None]:
    """Inside, Ray shows what the cluster at HOST:PORT asks for; None is a cluster that is about to be started here.

    Raises:
        SettingsError: the cluster takes no token that this machine has.
        ConnectionError: no cluster answers there.
    """
    before = {name: os.environ.get(name) for name in (MODE, TOKEN)}
    try:
        if address is None:
            _make_sure_of_one()
        else:
            _agree(address)
        yield
    finally:
        _set("disabled")
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _make_sure_of_one() -> None:
    """Provide a token for a cluster of our own, unless the user has turned tokens off.

    Left to itself, Ray writes one into the home folder, and every cluster that this user starts later asks for it.
    """
    wanted = os.environ.get(MODE, "token")
    _set("disabled")
    if wanted.lower() == "token" and not _have_one():
        os.environ[TOKEN] = secrets.token_hex(32)
    _set(wanted)


def _agree(address: str) -> None:
    """Find the mode that the cluster takes."""
    for mode in ("disabled", "token"):
        _set(mode)
        if mode == "token" and not _have_one():
            raise _refused(address, "asks for a token, and this machine has none")
        if _is_taken(address):
            return
    source = TOKEN if os.environ.get(TOKEN) else os.environ.get(PLACE) or HOME
    raise _refused(address, f"asks for another token than that of this machine, which is from {source}")


def _refused(address: str, why: str) -> SettingsError:
    return SettingsError(
        f"The Ray cluster at {address} {why}. Copy {HOME} from the machine that started the cluster, or set {TOKEN} to "
        "what is in it."
    )


def _is_taken(address: str) -> bool:
    """Whether the cluster answers us as we are now."""
    import grpc
    from ray._private.grpc_utils import init_grpc_channel
    from ray.core.generated import gcs_service_pb2, gcs_service_pb2_grpc

    with init_grpc_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        cluster = gcs_service_pb2_grpc.NodeInfoGcsServiceStub(channel)
        try:
            cluster.CheckAlive(gcs_service_pb2.CheckAliveRequest(), timeout=SECONDS)
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.UNAUTHENTICATED:
                return False
            raise ConnectionError(f"what answers there is not one ({first_line(error.details())})") from error
    return True


def _have_one() -> bool:
    """Whether this machine has a token."""
    from ray.exceptions import AuthenticationError

    try:
        return bool(_core().AuthenticationTokenLoader.instance().has_token(ignore_auth_mode=True))
    except AuthenticationError as error:
        raise SettingsError(f"Ray's token cannot be read: {error.message}.") from error


def _set(mode: str) -> None:
    """Set the mode, and have Ray, which remembers both, look for mode and token again.

    The token comes last: if there is none in mode "token", a connection that is still ending would end the process.
    """
    os.environ[MODE] = mode
    _core().Config.initialize("")
    _core().AuthenticationTokenLoader.instance().reset_cache()


def _core() -> Any:
    """Ray's compiled part, whose types are not told in full."""
    return import_module("ray._raylet")
