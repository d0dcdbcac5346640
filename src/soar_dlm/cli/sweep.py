"""``soar sweep``: SOAR over thresholds and beams, or Deliberate over thresholds, what it accepts and its tries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

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
from soar_dlm.errors import SettingsError, UnknownName
from soar_dlm.files import check_usable

if TYPE_CHECKING:
    from soar_dlm.evals.comparison import Method
    from soar_dlm.evals.results import Results
    from soar_dlm.tasks.problem import Split


SOAR, DELIBERATE = "soar", "deliberate"
SOAR_TAUS, DELIBERATE_TAUS = "0.8,0.85,0.9,0.95,0.98,0.99", "0.9,0.95,0.98,0.99,0.995,0.998"
OWN = {SOAR: ("thresholds", "beams"), DELIBERATE: ("thresholds", "tries", "drafts")}
"""The options that say which points of a strategy are measured."""


@takes(decoding=opt.MEASURED, loading=opt.LOADING)
def sweep(
    *,
    model: opt.Model,
    task: Annotated[str, typer.Option("--task", "-t", help="The task to measure on.", autocompletion=completion.tasks)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the results. A run that was interrupted there resumes.")
    ],
    strategy: Annotated[
        str, typer.Option("--strategy", "-s", help="What to measure beside greedy: soar or deliberate.")
    ] = "soar",
    thresholds: Annotated[
        Optional[str],
        typer.Option(
            help=f"Values of tau, separated by commas. Default: {SOAR_TAUS}; for deliberate {DELIBERATE_TAUS}."
        ),
    ] = None,
    beams: Annotated[Optional[str], typer.Option(help="Values of K, separated by commas (soar). Default: 2.")] = None,
    tries: Annotated[Optional[int], typer.Option(help="The most branches to follow (deliberate). Default: 8.")] = None,
    drafts: Annotated[
        Optional[str], typer.Option(help="Kinds of draft, separated by commas (deliberate). Default: open.")
    ] = None,
    metric: opt.Metric = None,
    length: Annotated[
        Optional[int], typer.Option("--length", "-n", help="Length of the canvas. Default: the task's.")
    ] = None,
    protocol: Protocol = "paper",
    decoding: dict[str, Any],
    limit: Annotated[int, typer.Option(help="Problems, from the validation split where the task has one.")] = 200,
    figure: Annotated[
        Optional[Path],
        typer.Option(help="Draw accuracy and speed-up into this file, such as sweep.svg; their data is in sweep.csv."),
    ] = None,
    data_dir: DataDir = None,
    chunk: Chunk = 50,
    seed: opt.Seed = 0,
    repair: Repair = False,
    allow_code_execution: AllowCode = False,
    unsafe_sandbox: UnsafeSandbox = False,
    loading: dict[str, Any],
) -> None:
    """Measure SOAR over thresholds and beam sizes (the paper's Figures 4 and 5), or Deliberate over its settings.

    For example: [cyan]soar sweep -m mini-llada -t mini-gsm --beams 2,4 -o sweep[/cyan]

    Or: [cyan]soar sweep -m mini-llada -t mini-sudoku -s deliberate -o sweep[/cyan]. Deliberate is decoded once for each
    threshold; that tells what every smaller number of tries, and every score to accept, would have answered.

    Then: [cyan]soar tune sweep --forwards 0.5 -o my-preset.toml[/cyan]

    For a sweep that is complete, the same command with --figure only draws it.
    """
    import_library()
    from soar_dlm.evals.comparison import compare
    from soar_dlm.evals.protocol import decoding_options
    from soar_dlm.evals.results import ResultFolder
    from soar_dlm.evals.runs import Run
    from soar_dlm.plots.figure import check_path
    from soar_dlm.plots.style import Theme
    from soar_dlm.plots.sweep import sweep_picture
    from soar_dlm.tasks.published import PublishedTask

    checks.whole_number("chunk", chunk, 1)
    console = screen()
    grid = opt.given(thresholds=thresholds, beams=beams, tries=tries, drafts=drafts)
    check_grid(strategy, grid, figure)
    if figure is not None:
        check_path(figure)
    chosen = prepared(task, data_dir, allow_code_execution, console, unsafe_sandbox)
    options = decoding_options(chosen, protocol, decoding)
    compared = methods_of(strategy, grid, metric or "probability", chosen.canvas if length is None else length, options)
    split: Split = "test" if isinstance(chosen, PublishedTask) else "validation"
    problems = problems_of(chosen, split, limit)
    check_usable(output)
    lm = loaded(model, loading)
    with bar(chosen.name, len(problems) * len(compared), console) as count:
        compare(lm, chosen, problems, compared, chunk=chunk, folder=output, seed=seed, on_record=count, repair=repair)
    found = ResultFolder(output).read()
    Console().print(shown(found) if strategy == SOAR else shown_deliberate(found))
    if figure is not None:
        picture, data = sweep_picture(Run(chosen.name, output, found)), figure.with_suffix(".csv")
        picture.write(figure, Theme())
        picture.write_csv(data)
        console.print(f"The figure is in {figure}, its data in {data}.", markup=False)


def check_grid(strategy: str, grid: Mapping[str, Any], figure: Path | None) -> None:
    """Refuse a strategy that cannot be swept, and options of another one."""
    if strategy not in OWN:
        raise UnknownName("strategy that can be swept called", strategy, list(OWN))
    for name in grid:
        if name not in OWN[strategy]:
            raise SettingsError(f"--{name} is not a setting of {strategy}; leave it out.")
    if figure is not None and strategy != SOAR:
        raise SettingsError("--figure draws thresholds and beams, so it needs a sweep of soar; leave it out.")


def methods_of(
    strategy: str, grid: Mapping[str, Any], metric: str, length: int, options: Mapping[str, Any]
) -> dict[str, Method]:
    """Greedy and the strategy at the points that the options ask for."""
    from soar_dlm.evals.deliberate_sweeps import deliberate_methods
    from soar_dlm.evals.sweeps import settings, sweep_methods

    if strategy == SOAR:
        thresholds = numbers_of(grid.get("thresholds", SOAR_TAUS), float)
        return sweep_methods(settings(thresholds, numbers_of(grid.get("beams", "2"), int)), metric, length, options)
    thresholds = numbers_of(grid.get("thresholds", DELIBERATE_TAUS), float)
    kinds = listed(grid.get("drafts", "open"))
    return deliberate_methods(thresholds, grid.get("tries", 8), kinds, metric, length, options)


def title(found: Results) -> str:
    from soar_dlm.evals.manifest import recorded_methods

    ways = dict.fromkeys(method.decoding for method in recorded_methods(found.settings).values())
    return ", ".join([found.settings["model"], found.settings["task"], *(way for way in ways if way)])


def shown(found: Results) -> Table:
    from soar_dlm.evals.reports import rate
    from soar_dlm.evals.sweeps import pooled
    from soar_dlm.evals.tables import grid

    table = Table(box=SIMPLE_HEAD, title=Text(title(found)))
    for column in ("tau", "K", "accuracy", "forwards", "tokens/forward", "SpeedUp", "p"):
        table.add_column(column, justify="right")
    for point, one in pooled([found]).points.items():
        cells = (str(point.threshold), str(point.beam), rate(one), f"{one.forwards:.1f}")
        table.add_row(*cells, f"{one.tokens_per_forward:.2f}", f"{one.speed_up:.2f}", f"{one.p_value:.3f}")
    told = (f"{row.label} {area.aup:.1f}" for (row, _), area in grid([found]).areas.items())
    table.caption = Text(f"AUP: {'; '.join(told)}.")
    return table


def shown_deliberate(found: Results) -> Table:
    """Greedy, and the points that no cheaper one is as accurate as."""
    from soar_dlm.evals.deliberate_sweeps import pooled_deliberate
    from soar_dlm.evals.reports import rate

    swept = pooled_deliberate([found])
    table = Table(box=SIMPLE_HEAD, title=Text(title(found)), caption="Settings that no cheaper one is as accurate as.")
    for column in ("tau", "accept", "tries", "accuracy", "forwards", "p"):
        table.add_column(column, justify="right")
    table.add_row("greedy", "", "", rate(swept.greedy), f"{swept.greedy.forwards:.1f}", "")
    for point, one in swept.front().items():
        own = (str(point.threshold), point.accepts, "" if point.skip is not None else str(point.tries))
        table.add_row(*own, rate(one), f"{one.forwards:.1f}", f"{one.p_value:.3f}")
    return table
