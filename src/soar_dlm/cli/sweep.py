"""``soar sweep`` and ``soar tune``: SOAR over thresholds and beams, and the setting to take from the sweep."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from soar_dlm import checks
from soar_dlm.cli import completion
from soar_dlm.cli import options as opt
from soar_dlm.cli.groups import takes
from soar_dlm.cli.lists import numbers_of
from soar_dlm.cli.loading import import_library, loaded
from soar_dlm.cli.problems import AllowCode, Chunk, DataDir, Protocol, prepared, problems_of
from soar_dlm.cli.progress import bar
from soar_dlm.errors import SettingsError

if TYPE_CHECKING:
    from soar_dlm.evals.results import Results
    from soar_dlm.tasks.problem import Split


@takes(loading=opt.LOADING)
def sweep(
    *,
    model: opt.Model,
    task: Annotated[str, typer.Option("--task", "-t", help="The task to measure on.", autocompletion=completion.tasks)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the results. A run that was interrupted there resumes.")
    ],
    thresholds: Annotated[
        str, typer.Option(help="Values of tau, separated by commas.")
    ] = "0.8,0.85,0.9,0.95,0.98,0.99",
    beams: Annotated[str, typer.Option(help="Values of K, separated by commas.")] = "2",
    metric: opt.Metric = None,
    length: Annotated[
        Optional[int], typer.Option("--length", "-n", help="Length of the canvas. Default: the task's.")
    ] = None,
    protocol: Protocol = "paper",
    limit: Annotated[int, typer.Option(help="Problems, from the validation split where the task has one.")] = 200,
    figure: Annotated[
        Optional[Path], typer.Option(help="Draw accuracy and speed-up into this file, such as sweep.svg.")
    ] = None,
    data_dir: DataDir = None,
    chunk: Chunk = 50,
    seed: opt.Seed = 0,
    allow_code_execution: AllowCode = False,
    loading: dict[str, Any],
) -> None:
    """Measure SOAR over thresholds and beam sizes: the paper's Figures 4 and 5.

    For example: [cyan]soar sweep -m mini-llada -t mini-gsm --beams 2,4 -o sweep[/cyan]

    Then: [cyan]soar tune sweep --forwards 0.5 -o my-preset.toml[/cyan]

    For a sweep that is complete, the same command with --figure only draws it.
    """
    import_library()
    from soar_dlm.evals.comparison import compare
    from soar_dlm.evals.protocol import decoding_options
    from soar_dlm.evals.results import ResultFolder
    from soar_dlm.evals.sweep_figure import check_drawable, draw_sweep
    from soar_dlm.evals.sweeps import pooled, settings, sweep_methods
    from soar_dlm.tasks.published import PublishedTask

    checks.whole_number("chunk", chunk, 1)
    console = Console(stderr=True, highlight=False)
    points = settings(numbers_of(thresholds, float), numbers_of(beams, int))
    if figure is not None:
        check_drawable(figure)
    chosen = prepared(task, data_dir, allow_code_execution, console)
    options = decoding_options(chosen, protocol)
    compared = sweep_methods(points, metric or "probability", chosen.canvas if length is None else length, options)
    split: Split = "test" if isinstance(chosen, PublishedTask) else "validation"
    problems = problems_of(chosen, split, limit)
    lm = loaded(model, loading)
    with bar(chosen.name, len(problems) * len(compared), console) as count:
        compare(lm, chosen, problems, compared, chunk=chunk, folder=output, seed=seed, on_record=count)
    found = ResultFolder(output).read()
    Console().print(shown(found))
    if figure is not None:
        draw_sweep(pooled([found]).points, title(found), figure)
        console.print(f"The figure is in {figure}.")


def tune(
    results: Annotated[list[Path], typer.Argument(help="Folders written by 'soar sweep', each for a different task.")],
    output: Annotated[Optional[Path], typer.Option("--output", "-o", help="The preset file to write.")] = None,
    save_to_model: Annotated[
        Optional[Path], typer.Option(help="Folder of a checkpoint that gets the setting as its default.")
    ] = None,
    forwards: Annotated[
        Optional[float],
        typer.Option(
            help="At most this share of greedy's forwards. Default: 1, unless --speed or --accuracy is given."
        ),
    ] = None,
    speed: Annotated[
        Optional[float],
        typer.Option(help="At least this many times as fast as greedy, by the wall time of the sweep."),
    ] = None,
    beam: Annotated[Optional[int], typer.Option(help="Consider only the settings with this beam.")] = None,
    accuracy: Annotated[
        Optional[float],
        typer.Option(help="Instead: the fastest setting of at least this accuracy (0 to 1), both as measured."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a preset file that exists.")] = False,
) -> None:
    """Pick a threshold and a beam from sweeps: as a preset for --preset, or as the defaults of a checkpoint.

    Of the settings that are fast enough, it takes the most cautious one that the sweep cannot tell from the most
    accurate: the highest threshold that is at most one standard error less accurate, on all tasks together and on each.
    """
    import_library()
    from soar_dlm.evals.model_defaults import save_to_model as save
    from soar_dlm.evals.results import ResultFolder
    from soar_dlm.evals.sweeps import pooled
    from soar_dlm.presets import Preset, write_preset

    if output is None and save_to_model is None:
        raise SettingsError("Say where the setting goes: a preset file (--output), a checkpoint (--save-to-model).")
    if output is not None and output.exists() and not overwrite:
        raise SettingsError(f"{output} exists. Choose another file, or replace it with --overwrite.")
    if accuracy is not None and (speed is not None or forwards is not None):
        raise SettingsError("Ask for an accuracy, or for a speed or a share of forwards, but not for both.")
    runs = [ResultFolder(folder).read() for folder in results]
    found = pooled(runs) if beam is None else pooled(runs).with_beam(beam)
    if accuracy is not None:
        chosen = found.fastest(accuracy)
    else:
        chosen = found.within(speed, 1.0 if speed is None and forwards is None else forwards).cautious()
    one = found.points[chosen]
    about = (
        f"{found.model} on {', '.join(found.tasks)}: {one.accuracy:.1%} of {one.problems:,} problems "
        f"(greedy {found.greedy.accuracy:.1%}) with {one.forwards / found.greedy.forwards:.2f} of greedy's forwards, "
        f"{one.speed_up:.2f} times as fast"
    )
    typer.echo(f"{about}, with tau = {chosen.threshold} and K = {chosen.beam} by {found.metric}.")
    if output is not None:
        write_preset(output, Preset("soar", {**asdict(chosen), "metric": found.metric}, about))
        typer.echo(f"Written to {output}.")
    if save_to_model is not None:
        save(save_to_model, chosen, found.metric, runs[0].settings["weights_sha256"])
        typer.echo(f"{save_to_model} decodes with it by default.")


def title(found: Results) -> str:
    return f"{found.settings['model']}, {found.settings['task']}"


def shown(found: Results) -> Table:
    from soar_dlm.evals.sweeps import pooled

    table = Table(box=SIMPLE_HEAD, title=title(found))
    for column in ("tau", "K", "accuracy", "forwards", "SpeedUp", "p"):
        table.add_column(column, justify="right")
    for point, one in pooled([found]).points.items():
        low, high = one.interval
        accuracy = f"{one.accuracy:.1%} ({low:.1%} to {high:.1%})"
        cells = (str(point.threshold), str(point.beam), accuracy, f"{one.forwards:.1f}", f"{one.speed_up:.2f}")
        table.add_row(*cells, f"{one.p_value:.3f}")
    return table
