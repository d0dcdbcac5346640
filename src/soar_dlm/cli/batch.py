"""``soar batch``: prompts without number, in a folder of results that any run can be continued from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from soar_dlm import checks
from soar_dlm.cli import options as opt
from soar_dlm.cli import ray as ray_options
from soar_dlm.cli.groups import takes
from soar_dlm.cli.loading import import_library, loaded, status
from soar_dlm.cli.method import Method
from soar_dlm.cli.progress import prompts_bar
from soar_dlm.cli.screen import say, screen
from soar_dlm.errors import SettingsError
from soar_dlm.files import check_usable
from soar_dlm.options import GenerateOptions, make_options

if TYPE_CHECKING:
    from soar_dlm.lm import LM
    from soar_dlm.scale.inputs import Plan
    from soar_dlm.scale.worker import Done
    from soar_dlm.search.strategy import Strategy

PLACE = (
    "device",
    "device_map",
    "tensor_parallel",
    "token",
    "cache_dir",
    "local_files_only",
    "max_rows",
    "cache_budget",
)
"""Options of loading that say where a model runs, not what it writes."""


@takes(loading=opt.LOADING, method=opt.METHOD, decoding=opt.GENERATE)
def batch(
    *,
    prompts: Annotated[
        Optional[list[str]],
        typer.Argument(help="JSON lines or Parquet: files, folders, patterns in quotes.", show_default=False),
    ] = None,
    model: opt.MaybeModel = None,
    decoding: dict[str, Any],
    n: opt.Samples = None,
    method: dict[str, Any],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Folder for the results. A run that ended early resumes there.", show_default=False
        ),
    ],
    chunk: Annotated[int, typer.Option(help="Prompts in a file of results: what a kill can cost each worker.")] = 256,
    trace: Annotated[bool, typer.Option("--trace", help="Keep every step of the search, too.")] = False,
    merge: Annotated[
        bool, typer.Option("--merge", help="At the end, put all records in order into OUTPUT/results.jsonl.")
    ] = False,
    ray: ray_options.Address = None,
    workers: ray_options.Workers = None,
    cpus_per_worker: ray_options.CpusPerWorker = None,
    gpus_per_worker: ray_options.GpusPerWorker = None,
    loading: dict[str, Any],
) -> None:
    """Continue every prompt of files that may be long, on this machine or on a Ray cluster.

    For example: [cyan]soar batch prompts.jsonl -m GSAI-ML/LLaDA-8B-Instruct --chat -o out[/cyan]

    Interrupt it whenever you like: the same command resumes. On a cluster: [cyan]--ray auto --workers 8[/cyan]
    """
    if not prompts and merge:
        _merged(output)
        return
    if not prompts:
        raise SettingsError("There are no prompts. Name files, folders or patterns of JSON lines or Parquet.")
    if model is None:
        raise SettingsError("Name a model with --model.")
    pool = ray_options.checked(ray, workers, cpus_per_worker, gpus_per_worker)
    checks.whole_number("chunk", chunk, 1)
    make_options(GenerateOptions, decoding)
    import_library()
    from soar_dlm.scale.inputs import files_of, planned
    from soar_dlm.scale.shards import Shards, fingerprint
    from soar_dlm.scale.worker import Task, at_once

    chosen = Method(method)
    output = output.expanduser().absolute()
    files = files_of(prompts)
    _check_apart(files, output)
    check_usable(output)
    with status("Counting prompts ..."):
        plan = planned(files, chunk)
    settings = _settings(model, loading, chosen, decoding, n, trace, chunk, plan)
    shards = Shards(output, trace, fingerprint(settings))
    task = Task(_Ready(model, loading, chosen), shards, n, {**decoding, "trace": trace})
    together = at_once(chunk, loading.get("max_rows", 32))
    with ExitStack() as stack:
        stack.enter_context(shards.alone(settings))
        done = shards.done()
        left = [one for one in plan.chunks if one.number not in done]
        count = _Count(plan.prompts - sum(one.count for one in left), plan.prompts)
        if left and pool is not None:
            from soar_dlm.scale.on_ray import run_on_ray

            own_pool = stack.enter_context(ray_options.cluster(pool))
            with count:
                run_on_ray(task, left, together, own_pool, count.chunk_of_prompts)
        elif left:
            from soar_dlm.scale.here import run_here

            with count:
                run_here(task, left, together, count.chunk, count.prompt)
        failed = count.failed + sum(map(shards.failed, done))
        if merge:
            _say_merged(shards.merge(len(plan.chunks)))
    screen().print(f"{plan.prompts} prompts are done; the results are in {output}.", soft_wrap=True)
    if failed:
        screen().print(f'{failed} of them failed; see the records with "error".', style="red")
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Ready:
    """Loads the model in the process that is to run it."""

    model: str
    loading: Mapping[str, Any]
    method: Method

    def __call__(self) -> tuple[LM, Strategy]:
        lm = loaded(self.model, self.loading)
        return lm, self.method.strategy(lm)


class _Count:
    """Counts prompts that are done, on a bar or, where there is no terminal, in a line for every tenth."""

    def __init__(self, done: int, total: int) -> None:
        self._done, self._total, self._console = done, total, screen()
        self._bar = prompts_bar(self._console, done, total)
        self.failed = 0

    def __enter__(self) -> _Count:
        self._advance = self._bar.__enter__()
        return self

    def __exit__(self, *how: Any) -> None:
        self._bar.__exit__(*how)

    def prompt(self) -> None:
        self._advance()
        self._done += 1
        if not self._console.is_terminal and self._done * 10 // self._total > (self._done - 1) * 10 // self._total:
            self._console.print(f"{self._done} of {self._total} prompts", soft_wrap=True)

    def chunk(self, done: Done) -> None:
        self.failed += done.failed

    def chunk_of_prompts(self, done: Done) -> None:
        self.chunk(done)
        for _ in range(done.prompts):
            self.prompt()


def _check_apart(files: Sequence[Path], output: Path) -> None:
    inside = [path for path in files if output.resolve() in path.resolve().parents]
    if inside:
        raise SettingsError(f"{inside[0]} is in the folder of the results, {output}. Name another folder for them.")


def _settings(
    model: str,
    loading: Mapping[str, Any],
    method: Method,
    decoding: Mapping[str, Any],
    n: int | None,
    trace: bool,
    chunk: int,
    plan: Plan,
) -> dict[str, Any]:
    """Everything that the records depend on, known without loading the model."""
    from soar_dlm.evals.comparison import weights_fingerprint
    from soar_dlm.evals.provenance import versions
    from soar_dlm.models.loading import hub_commit

    fingerprint = weights_fingerprint(model)
    return {
        "model": model,
        "weights_sha256": fingerprint,
        "revision": hub_commit(model, loading) if fingerprint is None else None,
        "loading": {name: value for name, value in loading.items() if name not in PLACE},
        "method": method.described,
        "options": dict(decoding),
        "n": n,
        "traces": trace,
        "prompts": plan.prompts,
        "prompts_sha256": plan.sha256,
        "chunk": chunk,
        "versions": versions(),
    }


def _merged(output: Path) -> None:
    from soar_dlm.files import locked
    from soar_dlm.scale.shards import Shards

    found = Shards(output).settings()
    with locked(output):
        _say_merged(Shards(output, bool(found.get("traces"))).merge(-(-found["prompts"] // found["chunk"])))


def _say_merged(paths: Sequence[Path]) -> None:
    for path in paths:
        say("merged", str(path), "bold green")
