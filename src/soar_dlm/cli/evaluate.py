"""``soar eval``: methods compared on benchmarks, with result files that survive interruptions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from soar_dlm import checks
from soar_dlm.cli import completion
from soar_dlm.cli import options as opt
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
    loading: dict[str, Any],
) -> None:
    """Measure the accuracy and speed of decoding methods on benchmarks.

    For example: [cyan]soar eval -m GSAI-ML/LLaDA-8B-Base -t gsm8k -s greedy,soar -n 256 -o results[/cyan]

    Interrupt it whenever you like: the same command resumes. Then: [cyan]soar table results[/cyan]
    """
    import_library()
    from soar_dlm.evals.comparison import compare
    from soar_dlm.evals.protocol import methods, named_presets, task_names

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
    for one in tasks:
        methods(
            names, lengths, one, protocol, presets, decoding=decoding, **settings
        )  # a mistake does not wait for the weights
    problems = [problems_of(one, "test", limit) for one in tasks]
    for one in tasks:
        check_usable(output / one.name)
    lm = loaded(model, loading)
    for one, own in zip(tasks, problems, strict=True):
        wanted = methods(names, lengths, one, protocol, presets, lm.defaults, decoding, **settings)
        with bar(one.name, len(own) * len(wanted), console) as count:
            compare(
                lm,
                one,
                own,
                wanted,
                chunk=chunk,
                folder=output / one.name,
                seed=seed,
                on_record=count,
                repair=repair,
                traces=traces,
            )
    console.print(f"The results are in {output}. To see them: soar table {output}")
