"""``soar bench``: how fast strategies and caches decode, in turns, beside loops written by hand."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from soar_dlm import checks, files
from soar_dlm.cli import completion
from soar_dlm.cli import options as opt
from soar_dlm.cli.files import check_apart
from soar_dlm.cli.groups import takes
from soar_dlm.cli.lists import listed, numbers_of
from soar_dlm.cli.loading import import_library, loaded, status
from soar_dlm.cli.method import several
from soar_dlm.cli.screen import screen
from soar_dlm.errors import SettingsError

if TYPE_CHECKING:
    from soar_dlm.bench.race import Lane, Measured
    from soar_dlm.bench.report import Report
    from soar_dlm.lm import LM
    from soar_dlm.search.strategy import Strategy

FORMATS = ("terminal", "markdown", "json")
WIDE = 130
"""Columns that a terminal needs for the whole table; in a narrower one it is in two parts."""
_WHO, _WHAT, _HOW, _OUT = "What is timed", "What is decoded", "How it is timed", "Output"


def _option(panel: str, text: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


@takes(settings=opt.SETTINGS, decoding=opt.BLOCKS, loading=opt.LOADING)
def bench(
    *,
    model: opt.MaybeModel = None,
    shape: Annotated[
        Optional[str],
        _option(
            _WHO,
            "Random weights of this shape instead of a model. Default: hidden=512, layers=8, heads=8, "
            "inner=1536, vocab=126464; what you leave out is as there.",
            metavar="NAME=N,...",
        ),
    ] = None,
    strategy: Annotated[
        str,
        _option(_WHO, "Names separated by commas.", "--strategy", "-s", autocompletion=completion.strategies),
    ] = "greedy",
    caches: Annotated[str, _option(_WHO, "none, prefix, dual; separate several by commas.")] = "none",
    baseline: Annotated[
        bool,
        _option(
            _WHO,
            "Also time plain loops: one request at a time, the head on all positions, a float64 softmax. They have no "
            "cache; one for greedy has a dual cache.",
            "--baseline",
        ),
    ] = False,
    one_by_one: Annotated[
        bool, _option(_WHO, "Also decode the requests one after the other, to see what a batch saves.", "--one-by-one")
    ] = False,
    task: Annotated[
        Optional[str],
        _option(_WHAT, "Take the prompts of a task.", "--task", "-t", autocompletion=completion.tasks),
    ] = None,
    data_dir: Annotated[
        Optional[Path], _option(_WHAT, "Folder with the files of published benchmarks. Default: the Hub.")
    ] = None,
    prompt: Annotated[Optional[int], _option(_WHAT, "Length of prompts of random tokens. Default: 512.")] = None,
    canvas: Annotated[
        Optional[int], _option(_WHAT, "Length of the canvas. Default: the task's, or 128.", "--canvas", "-n")
    ] = None,
    requests: Annotated[int, _option(_WHAT, "How many requests are decoded together.")] = 1,
    mixed: Annotated[bool, _option(_WHAT, "Prompts from half to one and a half times the length.", "--mixed")] = False,
    over: Annotated[
        Optional[str],
        _option(_WHAT, "Vary prompt, canvas, requests or beam, such as prompt=128,512,1024.", metavar="NAME=N,..."),
    ] = None,
    settings: dict[str, Any],
    decoding: dict[str, Any],
    repeats: Annotated[int, _option(_HOW, "Rounds; in each, every entrant has a turn.")] = 3,
    against: Annotated[
        Optional[str], _option(_HOW, "The entrant that speed-ups are against, such as plain. Default: the first.")
    ] = None,
    threads: Annotated[Optional[int], _option(_HOW, "Threads of PyTorch on a CPU. Default: its own choice.")] = None,
    seed: Annotated[int, _option(_HOW, "Seed of random weights and prompts.")] = 0,
    style: Annotated[str, _option(_OUT, "terminal, markdown or json.", "--format")] = "terminal",
    json_file: Annotated[Optional[Path], _option(_OUT, "Also write everything here, as JSON.", "--json")] = None,
    figure: Annotated[
        Optional[Path],
        _option(_OUT, "Draw curves over what varies into this file, such as bench.svg; their data is in bench.csv."),
    ] = None,
    loading: dict[str, Any],
) -> None:
    """Time strategies and caches: seconds, tokens per second, forwards, where the time goes, memory.

    For example: [cyan]soar bench -s greedy,soar --caches none,dual --block-length 32 --baseline --threads 1[/cyan]

    Or: [cyan]soar bench -m mini-llada -t mini-gsm -s greedy,soar --over requests=1,4,16 --figure bench.svg[/cyan]

    Every canvas is decoded to its end. Entrants have turns, in another order in each round, and every ratio is between
    turns of one round. If a plain loop does not write what the engine writes, there is no ratio but an error.
    """
    varied, values = read_over(over)
    names = listed(strategy)
    check_asked(names, style, model, shape)
    several(names, {**settings, **({"beam": values[0]} if varied == "beam" else {})})
    import_library()
    from soar_dlm.bench.entrants import NO_CACHE
    from soar_dlm.bench.plan import Plan
    from soar_dlm.bench.race import set_threads
    from soar_dlm.bench.report import Report
    from soar_dlm.options import Options, make_options
    from soar_dlm.tasks.catalogue import make_task

    check_outputs(json_file, figure, varied)
    kinds = listed(caches)
    make_options(Options, {**decoding, "cache": next((kind for kind in kinds if kind != NO_CACHE), None)})
    plan = Plan(
        caches=kinds,
        task=None if task is None else make_task(task, data_dir),
        prompt=prompt,
        canvas=canvas,
        requests=requests,
        mixed=mixed,
        options=decoding,
        baseline=baseline,
        one_by_one=one_by_one,
        over=varied,
        values=values,
        seed=seed,
    )
    set_threads(threads)
    lm = loaded(model, loading) if model is not None and shape is None else shaped(shape or "", loading, seed)

    def strategies(more: Mapping[str, Any]) -> dict[str, Strategy]:
        return {name: one.strategy(lm) for name, one in several(names, {**settings, **more}).items()}

    lanes = plan.lanes(lm, strategies)
    found = timed(lm, lanes, repeats, against)
    own = {name: " ".join(value) if name == "settings" else value for name, value in settings.items()}
    made = Report(found, {**plan.settings(lm), **own}, against, varied)
    show(made, style)
    if json_file is not None:
        files.write_text(json_file, made.json())
    if figure is not None:
        draw(made, figure)


def read_over(text: str | None) -> tuple[str | None, list[int]]:
    """The variable and the values of ``--over NAME=N,...``."""
    if text is None:
        return None, []
    name, equals, values = text.partition("=")
    if not equals or not listed(values):
        raise SettingsError(f"--over takes a name and values, such as prompt=128,512,1024, not {text!r}.")
    return name.strip(), numbers_of(values, int)


def check_asked(names: list[str], style: str, model: str | None, shape: str | None) -> None:
    """Refuse mistakes that can be seen without a model."""
    checks.known_name("format", style, FORMATS)
    if not names or len(set(names)) < len(names):
        raise SettingsError("Name one or more different strategies, such as greedy,soar.")
    if shape is not None and model is not None and model != os.environ.get(opt.ENVIRONMENT):
        raise SettingsError("A shape takes the place of a model; give --model or --shape, not both.")


def check_outputs(json_file: Path | None, figure: Path | None, varied: str | None) -> None:
    """Refuse files that cannot be written, before the work for them starts."""
    from soar_dlm.plots.figure import check_path

    if figure is not None:
        if varied is None:
            raise SettingsError("--figure shows curves over something that varies; add --over, such as prompt=128,512.")
        check_path(figure)
    if json_file is not None:
        with files.explained("write", json_file):
            has_folder = json_file.parent.is_dir()
        if not has_folder:
            raise SettingsError(f"There is no folder {str(json_file.parent)!r} for the JSON file.")
    data = None if figure is None else figure.with_suffix(".csv")
    check_apart({}, {"--json": json_file, "--figure": figure, "the figure's data": data})


def shaped(text: str, given: Mapping[str, Any], seed: int) -> LM:
    """Random weights of a shape, as a model."""
    from soar_dlm.bench.shape import Shape, random_checkpoint
    from soar_dlm.engine.settings import EngineSettings
    from soar_dlm.lm import LM

    own = dict(given)
    rows, device, dtype = (own.pop(name, None) for name in ("max_rows", "device", "dtype"))
    if own:
        name = next(iter(own)).replace("_", "-")
        raise SettingsError(f"--{name} is about a checkpoint, and random weights come from none; leave it out.")
    shape = Shape.read(text)
    with status("Making random weights ..."):
        made = random_checkpoint(shape, seed, device, dtype)
    return LM(made, EngineSettings() if rows is None else EngineSettings(max_rows=rows))


def timed(lm: LM, lanes: list[Lane], repeats: int, against: str | None) -> list[Measured]:
    """The race; a terminal shows whose turn it is."""
    from soar_dlm.bench.race import Measured, race, reference

    reference([Measured(lane) for lane in lanes], against)  # an unknown name does not wait for the race
    console = screen()
    if not console.is_terminal:
        return race(lm.model, lanes, repeats)
    with console.status(Text("Warming up ...")) as line:
        return race(lm.model, lanes, repeats, lambda text: line.update(Text(f"{text} ...")))


def show(made: Report, style: str) -> None:
    if style != "terminal":
        typer.echo(made.markdown() if style == "markdown" else made.json(), nl=False)
        return
    console = Console(highlight=False)
    for table in tables(made, console.width):
        console.print(table)
    for note in made.notes:
        console.print(note, markup=False)


def tables(made: Report, width: int) -> list[Table]:
    """The whole table, or in a narrow terminal the speeds, and then where the time and the memory go."""
    rows, titles = made.rows(), made.head
    first = titles.index("entrant") + 1
    parts = [titles] if width >= WIDE else [titles[: first + 3], [*titles[:first], *titles[first + 3 :]]]
    found = []
    for part in parts:
        table = Table(box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
        for title in part:
            named = title == "entrant"
            head = Text(title.replace("/", "/\n").replace(" ", "\n"))
            table.add_column(head, justify="left" if named else "right", no_wrap=not named)
        for row in rows:
            cells = dict(zip(titles, row, strict=True))
            table.add_row(*(Text(cells[title]) for title in part))
        found.append(table)
    return found


def draw(made: Report, figure: Path) -> None:
    from soar_dlm.plots.bench import bench_picture
    from soar_dlm.plots.style import Theme

    picture, data = bench_picture(made), figure.with_suffix(".csv")
    picture.write(figure, Theme())
    picture.write_csv(data)
    screen().print(f"The figure is in {figure}, its data in {data}.")
