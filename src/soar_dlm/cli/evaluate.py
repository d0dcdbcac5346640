"""``soar eval``: methods compared on benchmarks, with result files that survive interruptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from soar_dlm import checks
from soar_dlm.cli import completion
from soar_dlm.cli import options as opt
from soar_dlm.cli import ray as ray_options
from soar_dlm.cli.groups import takes
from soar_dlm.cli.lists import listed, numbers_of
from soar_dlm.cli.loading import import_library, loaded
from soar_dlm.cli.problems import (
    AllowCode,
    Chunk,
    DataDir,
    Protocol,
    Repair,
    UnsafeSandbox,
    prepared,
    problems_of,
)
from soar_dlm.cli.progress import bar
from soar_dlm.cli.screen import screen
from soar_dlm.errors import SettingsError
from soar_dlm.files import check_usable

if TYPE_CHECKING:
    from soar_dlm.evals.comparison import Contest
    from soar_dlm.evals.comparison import Method as CompareMethod
    from soar_dlm.models.defaults import DecodingDefaults
    from soar_dlm.presets import Preset
    from soar_dlm.tasks.task import Task


@takes(decoding=opt.MEASURED, loading=opt.LOADING)
def evaluate(
    *,
    model: opt.Model,
    task: Annotated[
        str,
        typer.Option(
            "--task",
            "-t",
            help="Names from 'soar tasks', or humaneval_infilling; separate several by commas.",
            autocompletion=completion.tasks,
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the results. A run that was interrupted there resumes.")
    ],
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            "-s",
            help="Names separated by commas. The others are compared with greedy.",
            autocompletion=completion.strategies,
        ),
    ] = "greedy,adaptive,pbs,pbs-parallel,soar",
    length: Annotated[
        Optional[str],
        typer.Option("--length", "-n", help="Length of the canvas, or masks of a blank; separate several by commas."),
    ] = None,
    protocol: Protocol = "paper",
    limit: Annotated[Optional[int], typer.Option(help="Only the first problems of each task. Default: all.")] = None,
    data_dir: DataDir = None,
    preset: Annotated[
        Optional[list[Path]],
        typer.Option(help="Also measure this file written by 'soar tune'; repeatable.", metavar="<path>"),
    ] = None,
    beam: opt.Beam = None,
    threshold: opt.Threshold = None,
    metric: opt.Metric = None,
    decoding: dict[str, Any],
    chunk: Chunk = 50,
    seed: opt.Seed = 0,
    traces: Annotated[
        bool, typer.Option("--traces", help="Keep how each problem was decoded, for 'soar plot' and 'soar report'.")
    ] = False,
    repair: Repair = False,
    allow_code_execution: AllowCode = False,
    unsafe_sandbox: UnsafeSandbox = False,
    ray: ray_options.Address = None,
    workers: ray_options.Workers = None,
    cpus_per_worker: ray_options.CpusPerWorker = None,
    gpus_per_worker: ray_options.GpusPerWorker = None,
    loading: dict[str, Any],
) -> None:
    """Measure the accuracy and speed of decoding methods on benchmarks.

    For example: [cyan]soar eval -m GSAI-ML/LLaDA-8B-Base -t gsm8k -s greedy,soar -n 256 -o results[/cyan]

    Interrupt it whenever you like: the same command resumes. Then: [cyan]soar table results[/cyan]
    """
    pool = ray_options.checked(ray, workers, cpus_per_worker, gpus_per_worker)
    if repair and ray is not None:
        raise SettingsError("A repair decodes a few problems in this process: run it without --ray first.")
    import_library()
    from soar_dlm.evals.comparison import compare
    from soar_dlm.evals.protocol import named_presets, task_names

    checks.whole_number("chunk", chunk, 1)
    console = screen()
    tasks = [
        prepared(name, data_dir, allow_code_execution, console, unsafe_sandbox) for name in task_names(listed(task))
    ]
    if not tasks:
        raise SettingsError("Name at least one task.")
    presets = named_presets(preset or ())
    settings = opt.given(beam=beam, threshold=threshold, metric=metric)
    names, lengths = listed(strategy), numbers_of(length or "", int)
    chosen = _Chosen(names, lengths, protocol, presets, decoding, settings)
    counts = [len(chosen.methods(one)) for one in tasks]  # a mistake does not wait for the weights
    problems = [problems_of(one, "test", limit) for one in tasks]
    for one in tasks:
        check_usable(output / one.name)
    if pool is None:
        lm = loaded(model, loading)
        for one, own, count in zip(tasks, problems, counts, strict=True):
            with bar(one.name, len(own) * count, console) as on_record:
                compare(
                    lm,
                    one,
                    own,
                    chosen.methods(one, lm.defaults),
                    chunk=chunk,
                    folder=output / one.name,
                    seed=seed,
                    on_record=on_record,
                    repair=repair,
                    traces=traces,
                )
    else:
        from soar_dlm.scale.evaluation import compare_on_ray

        with ray_options.cluster(pool) as own_pool:
            for one, own, count in zip(tasks, problems, counts, strict=True):
                trusted = (data_dir, allow_code_execution, unsafe_sandbox)
                make = _Elsewhere(model, loading, one.name, trusted, limit, chosen, chunk, seed, traces)
                planned = {"order": list(chosen.methods(one)), "chunk": chunk, "problems": len(own)}
                with bar(one.name, len(own) * count, console) as on_record:
                    compare_on_ray(make, planned, own_pool, output / one.name, on_record)
    console.print(f"The results are in {output}. To see them: soar table {output}")


@dataclass(frozen=True)
class _Chosen:
    """The methods that the command names."""

    names: Sequence[str]
    lengths: Sequence[int]
    protocol: str
    presets: Mapping[str, Preset]
    decoding: Mapping[str, Any]
    settings: Mapping[str, Any]

    def methods(self, task: Task, defaults: DecodingDefaults | None = None) -> dict[str, CompareMethod]:
        """As they decode a task; without the model's defaults, only to be counted and checked."""
        from soar_dlm.evals.protocol import methods

        given = (self.names, self.lengths, task, self.protocol, self.presets)
        return methods(*given, defaults, self.decoding, **self.settings)


@dataclass(frozen=True)
class _Elsewhere:
    """Loads the model and a task's problems in the process that is to decode them."""

    model: str
    loading: Mapping[str, Any]
    task: str
    trusted: tuple[Path | None, bool, bool]
    limit: int | None
    chosen: _Chosen
    chunk: int
    seed: int
    traces: bool

    def __call__(self) -> Contest:
        from soar_dlm.evals.comparison import Contest

        data_dir, allow_code, unsafe = self.trusted
        task = prepared(self.task, data_dir, allow_code, screen(), unsafe)
        problems = problems_of(task, "test", self.limit)
        lm = loaded(self.model, self.loading)
        return Contest.of(
            lm, task, problems, self.chosen.methods(task, lm.defaults), self.chunk, self.seed, self.traces
        )
