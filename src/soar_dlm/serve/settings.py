"""What a server allows, and whom it lets in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from soar_dlm import checks
from soar_dlm.doors import guarded


@guarded
@dataclass(frozen=True)
class ServeSettings:
    """Whom a server lets in, and what for; None is no key, any host, or no limit of time.

    ``api_key`` must be sent as a bearer token for everything but pages and health. ``hosts`` are the names that a
    request may call the server by, without port: a page of another site that has its name point here is refused.
    ``cors`` are the origins whose pages may call the API from a browser.

    A request has at most ``max_body`` bytes, asks for ``max_choices`` texts and takes ``timeout`` seconds; what a
    search may take is up to :class:`soar_dlm.AsyncLM`.

    ``log_prompts`` puts prompts and answers into the log.
    """

    api_key: str | None = None
    hosts: Sequence[str] | None = ("localhost", "127.0.0.1", "::1")
    cors: Sequence[str] = ()
    max_choices: int = 64
    max_body: int = 2**20
    timeout: float | None = 600.0
    log_prompts: bool = False

    def __post_init__(self) -> None:
        for name in ("max_choices", "max_body"):
            checks.field(self, name, checks.whole_number, 1)
        checks.field(self, "timeout", checks.real_number, 0.0, 1e9, open_low=True, optional=True)
        checks.field(self, "cors", checks.strings)
        checks.field(self, "hosts", checks.strings, optional=True)
        checks.field(self, "api_key", _key, optional=True)
        checks.field(self, "log_prompts", checks.true_or_false)


def _key(name: str, value: object) -> str:
    (key,) = checks.strings(name, value)
    return str(key)
