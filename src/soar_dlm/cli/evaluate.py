"""``soar eval``: methods compared on benchmarks, with result files that survive interruptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from soar_dlm import checks
from soar_dlm.cli import options as opt
from soar_dlm.errors import SettingsError

if TYPE_CHECKING:
    from soar_dlm.evals.results import Record
    from soar_dlm.lm import LM
    from soar_dlm.tasks.problem import Problem, Split
    from soar_dlm.tasks.task import Task

Tasks = Annotated[
    str,
    typer.Option(
        "--task",
        "-t",
        help="humaneval, mbpp, gsm8k, humaneval_infilling, mini-gsm, mini-code, ...; several with commas between.",
    ),
]
DataDir = Annotated[
    Optional[Path], typer.Option(help="Folder with the files of published benchmarks; default: the Hub.")
]
Limit = Annotated[Optional[int], typer.Option(help="Problems of each task, from the first on; default: all.")]
Protocol = Annotated[str, typer.Option(help="'paper' decodes the whole canvas, 'library' ends with the text.")]
Chunk = Annotated[int, typer.Option(help="Problems that a method decodes in one turn.")]
AllowCode = Annotated[
    bool, typer.Option("--allow-code-execution", help="Run what the model wrote, to judge it. Needed for code tasks.")
]


def evaluate(
    model: opt.Model,
    task: Tasks,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the results; a run in it goes on.")],
    strategy: Annotated[
        str, typer.Option("--strategy", "-s", help="Names with commas between; greedy is what the others are held to.")
    ] = "greedy,adaptive,pbs,pbs-parallel,soar",
    length: Annotated[
        Optional[str], typer.Option("--length", "-n", help="Canvas, or masks of a blank; several with commas.")
    ] = None,
    protocol: Protocol = "paper",
    limit: Limit = None,
    data_dir: DataDir = None,
    preset: Annotated[
        Optional[list[Path]], typer.Option(help="A file of 'soar tune' to measure, too; repeatable.", metavar="<path>")
    ] = None,
    beam: opt.Beam = None,
    threshold: opt.Threshold = None,
    metric: opt.Metric = None,
    chunk: Chunk = 50,
    seed: opt.Seed = 0,
    allow_code_execution: AllowCode = False,
    device: opt.Device = None,
    dtype: opt.Dtype = None,
    device_map: opt.DeviceMap = None,
    revision: opt.Revision = None,
    attn_implementation: opt.Attention = None,
    mask_token_id: opt.MaskTokenId = None,
    max_rows: opt.MaxRows = 32,
) -> None:
    """Measure accuracy and speed of decoding methods on benchmarks.

    For example: [cyan]soar eval -m GSAI-ML/LLaDA-8B-Base -t gsm8k -s greedy,soar -n 256 -o results[/cyan]

    Stop it whenever you like: the same command goes on. Then: [cyan]soar table results[/cyan]
    """
    from soar_dlm.evals.comparison import compare
    from soar_dlm.evals.protocol import methods, task_names
    from soar_dlm.presets import read_preset

    checks.whole_number("chunk", chunk, 1)
    console = Console(stderr=True, highlight=False)
    tasks = [prepared(name, data_dir, allow_code_execution, console) for name in task_names(listed(task))]
    if not tasks:
        raise SettingsError("Name at least one task to measure on.")
    presets = {path.stem: read_preset(path) for path in preset or ()}
    chosen = opt.given(beam=beam, threshold=threshold, metric=metric)
    names, lengths = listed(strategy), numbers_of(length or "", int)
    compared = [methods(names, lengths, one, protocol, presets, **chosen) for one in tasks]
    problems = [problems_of(one, "test", limit, console) for one in tasks]
    lm = loaded(model, device, dtype, max_rows, device_map, revision, attn_implementation, mask_token_id)
    for one, asked, own in zip(tasks, problems, compared, strict=True):
        with bar(one.name, len(asked) * len(own), console) as tell:
            compare(lm, one, asked, own, chunk=chunk, folder=output / one.name, seed=seed, on_record=tell)
    console.print(f"Results are in {output}. See them with: soar table {output}")


def prepared(name: str, data_dir: Path | None, allow_code: bool, console: Console) -> Task:
    """A task whose problems are there, and whose answers may be run if that is how they are judged."""
    from soar_dlm.tasks.catalogue import make_task

    task = make_task(name, data_dir)
    if task.runs_code:
        if not allow_code:
            raise SettingsError(
                f"{task.name} is judged by running what the model wrote. "
                "If you want that on this machine, add --allow-code-execution."
            )
        tell_walls(console)
    return task


def problems_of(task: Task, split: Split, limit: int | None, console: Console) -> list[Problem]:
    """The first problems of a split, or the whole test set; those that are made by code take a moment."""
    if limit is not None:
        checks.whole_number("limit", limit, 1)
    with console.status(f"Getting the problems of {task.name} ..."):
        return task.test_set() if limit is None else task.distinct(split, limit)


def tell_walls(console: Console) -> None:
    """Say what programs are kept from, and what this system does not allow."""
    from soar_dlm.tasks.execution import missing_walls
    from soar_dlm.tasks.isolation import WALLS

    missing = [WALLS[wall] for wall in WALLS if wall in missing_walls()]
    if missing:
        console.print(f"[yellow]Not possible on this system for model-written code:[/yellow] {'; '.join(missing)}.")


def loaded(
    model: str,
    device: str | None,
    dtype: str | None,
    max_rows: int,
    device_map: str | None,
    revision: str | None,
    attention: str | None,
    mask_token_id: int | None,
) -> LM:
    from soar_dlm.engine.settings import EngineSettings
    from soar_dlm.lm import load

    more = opt.given(
        device_map=device_map, revision=revision, attn_implementation=attention, mask_token_id=mask_token_id
    )
    return load(model, device, dtype, engine=EngineSettings(max_rows=max_rows), **more)


@contextmanager
def bar(title: str, total: int, console: Console) -> Iterator[Callable[[Record], None]]:
    """A bar with accuracy, forwards per example and time left, to be told of every record; a summary at its end.

    Where there is no terminal, such as in the log of a job, a line for every tenth takes the bar's place.
    """
    done, right, forwards = Counter[str](), Counter[str](), Counter[str]()

    def rates(name: str) -> str:
        return f"{name}: {right[name] / done[name]:.1%}, {forwards[name] / done[name]:.1f} forwards"

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[rates]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        shown = progress.add_task(title, total=total, rates="")

        def tell(record: Record) -> None:
            done[record.method] += 1
            right[record.method] += record.correct
            forwards[record.method] += record.forwards
            progress.update(shown, advance=1, rates=rates(record.method))
            count = done.total()
            if not console.is_terminal and count * 10 // total > (count - 1) * 10 // total:
                console.print(f"{title}: {count} of {total}; {rates(record.method)}")

        yield tell
    for name, count in done.items():
        console.print(f"{title}, {rates(name)} each, {count} problems")


def listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def numbers_of(text: str, kind: Callable[[str], Any]) -> list[Any]:
    """Numbers with commas between."""
    try:
        return [kind(part) for part in listed(text)]
    except ValueError as error:
        raise SettingsError(f"{text!r} is not a list of numbers with commas between.") from error


def result_folders(paths: Sequence[Path]) -> list[Path]:
    """The result folders among paths and in the folders they name."""
    from soar_dlm.evals.results import MANIFEST

    found = [file.parent for path in paths for file in sorted(path.rglob(MANIFEST))]
    if not found:
        raise SettingsError(f"There are no results in {', '.join(map(str, paths))}; make some with soar eval.")
    return found
