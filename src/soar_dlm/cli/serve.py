"""``soar serve``: a model behind OpenAI's API, in this process or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from soar_dlm.cli import options as opt
from soar_dlm.cli import ray as ray_options
from soar_dlm.cli.groups import takes
from soar_dlm.cli.loading import import_library, loaded
from soar_dlm.cli.screen import say
from soar_dlm.errors import MissingExtra, SettingsError

if TYPE_CHECKING:
    from soar_dlm.async_lm import AsyncLM
    from soar_dlm.serve.settings import ServeSettings

_SERVER, _LIMITS = "Server", "Limits"
KEY_VARIABLE = "SOAR_API_KEY"
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def _server(text: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=_SERVER, **more)


def _limit(text: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=_LIMITS, **more)


@takes(loading=opt.LOADING)
def serve(
    *,
    model: Annotated[str, opt.MODEL] = "mini-llada",
    host: Annotated[str, _server("Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, _server("Port to listen on; 0 chooses a free one.", min=0, max=65535)] = 8000,
    api_key: Annotated[
        Optional[str], _server("Key that requests must bring, as a bearer token.", envvar=KEY_VARIABLE, metavar="KEY")
    ] = None,
    no_api_key: Annotated[
        bool,
        _server("Listen beyond this machine without a key: whoever can reach it may use it.", "--no-api-key"),
    ] = False,
    cors: Annotated[
        Optional[list[str]],
        _server("Let pages of this origin call the API; repeatable.", metavar="ORIGIN"),
    ] = None,
    allow_host: Annotated[
        Optional[list[str]],
        _server("A name that this server is called by, as through a proxy; repeatable.", metavar="NAME"),
    ] = None,
    log_prompts: Annotated[bool, _server("Put prompts and answers into the log.", "--log-prompts")] = False,
    queue: Annotated[int, _limit("Requests that may wait for a row; more are asked to come back later.", min=0)] = 64,
    max_tokens: Annotated[int, _limit("Tokens of prompt and canvas of one request.", min=1)] = 4096,
    max_request_rows: Annotated[int, _limit("Rows of a forward that one request may take.", min=1)] = 64,
    max_choices: Annotated[int, _limit("Texts that one request may ask for.", min=1)] = 64,
    max_body: Annotated[int, _limit("Bytes of a request's body.", min=1)] = 2**20,
    timeout: Annotated[float, _limit("Seconds that one request may take.", metavar="SECONDS")] = 600.0,
    ray: ray_options.Address = None,
    replicas: ray_options.Replicas = None,
    cpus_per_worker: ray_options.CpusPerWorker = None,
    gpus_per_worker: ray_options.GpusPerWorker = None,
    loading: dict[str, Any],
) -> None:
    """Serve a model by OpenAI's API, with a page on which to watch it decode.

    Try it offline: [cyan]soar serve[/cyan], then open http://127.0.0.1:8000

    A model of the Hub, for other machines:
    [cyan]SOAR_API_KEY=... soar serve -m GSAI-ML/LLaDA-8B-Instruct --host 0.0.0.0[/cyan]

    Several of them behind one address, on a Ray cluster: [cyan]--ray auto --replicas 4[/cyan]
    """
    pool = ray_options.checked(ray, replicas, cpus_per_worker, gpus_per_worker, "replicas")
    if host not in LOOPBACK and api_key is None and not no_api_key:
        raise SettingsError(
            f"Whoever can reach {host} could use the model. Give a key with --api-key or {KEY_VARIABLE}, or allow it "
            "with --no-api-key."
        )
    import_library()
    try:
        from soar_dlm.serve import run
        from soar_dlm.serve.app import make_app
        from soar_dlm.serve.settings import ServeSettings
        from soar_dlm.serve.watch import log_to_stderr
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "fastapi", "serve", "The server") from error
    own = host in LOOPBACK
    settings = ServeSettings(
        api_key=api_key,
        hosts=(*LOOPBACK, *(allow_host or ())) if own else allow_host or None,
        cors=cors or (),
        max_choices=max_choices,
        max_body=max_body,
        timeout=timeout,
        log_prompts=log_prompts,
    )
    make = _Engine(model, loading, queue, max_tokens, max_request_rows)
    if pool is not None:
        _on_ray(pool, make, settings, host, port)
        return
    listener = run.bound(host, port)  # before the weights are read
    lm = make()
    log_to_stderr()
    app = make_app(lm, settings)
    run.serve(app, listener, lambda address: say("serving", f"{model} at {address}", "bold green"))


@dataclass(frozen=True)
class _Engine:
    """Loads the model in the process that is to run it."""

    model: str
    loading: Mapping[str, Any]
    queue: int
    max_tokens: int
    max_rows: int

    def __call__(self) -> AsyncLM:
        from soar_dlm.async_lm import AsyncLM

        lm = loaded(self.model, self.loading)
        return AsyncLM(lm, queue=self.queue, max_tokens=self.max_tokens, max_rows=self.max_rows)


def _on_ray(asked: ray_options.Asked, make: _Engine, settings: ServeSettings, host: str, port: int) -> None:
    """Serve on a cluster until a signal comes, or another command has taken over."""
    from soar_dlm.engine.settings import EngineSettings
    from soar_dlm.scale.serving import Service, Signals, serve_on_ray
    from soar_dlm.serve import run

    started_here = not asked.address
    if started_here:
        run.bound(host, port).close()  # before the cluster is started
    rows = make.loading.get("max_rows", EngineSettings().max_rows)
    stop = Signals()
    with ray_options.cluster(asked) as pool, stop.heard():
        service = Service(make, settings, pool, rows, make.queue, host, port, started_here)
        count = f"{pool.least}" if pool.least == pool.most else f"{pool.least} to {pool.most}"
        told = f"{count} replicas of {make.model} at "
        ended = serve_on_ray(service, stop, lambda address: say("serving", told + address, "bold green"))
    if not ended:
        say("replaced", "Another command serves on this cluster now.", "bold yellow")
