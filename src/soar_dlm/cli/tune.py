"""``soar tune``: the setting to take from sweeps, as a preset or as the defaults of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from soar_dlm.cli.loading import import_library
from soar_dlm.cli.sweep import DELIBERATE, SOAR
from soar_dlm.errors import SettingsError
from soar_dlm.files import explained

if TYPE_CHECKING:
    from soar_dlm.evals.comparison import Summary
    from soar_dlm.evals.measured import Measured
    from soar_dlm.evals.results import Results
    from soar_dlm.presets import Preset


@dataclass(frozen=True)
class Wish:
    """What the setting must be like: fast enough, or accurate enough. ``beam`` is the one that SOAR must have."""

    forwards: float | None
    speed: float | None
    accuracy: float | None
    beam: int | None

    def __post_init__(self) -> None:
        if self.accuracy is not None and (self.speed is not None or self.forwards is not None):
            raise SettingsError("Ask for an accuracy, or for a speed or a share of forwards, but not for both.")

    @property
    def share(self) -> float | None:
        """The share of greedy's forwards: all of them unless something else is asked for."""
        return 1.0 if self.speed is None and self.forwards is None else self.forwards


@dataclass(frozen=True)
class Choice:
    """The setting that was taken, in a file and in words; ``save`` puts it into a checkpoint and says what that did."""

    preset: Preset
    words: str
    save: Callable[[Path], str]


def tune(
    results: Annotated[list[Path], typer.Argument(help="Folders written by 'soar sweep', each for a different task.")],
    output: Annotated[Optional[Path], typer.Option("--output", "-o", help="The preset file to write.")] = None,
    save_to_model: Annotated[
        Optional[Path], typer.Option(help="Folder of a checkpoint that gets the setting as its default.")
    ] = None,
    as_default: Annotated[
        bool,
        typer.Option("--as-default", help="Make deliberate the checkpoint's default strategy. SOAR always becomes it."),
    ] = False,
    forwards: Annotated[
        Optional[float],
        typer.Option(
            help="At most this share of greedy's forwards. Default: 1, unless --speed or --accuracy is given."
        ),
    ] = None,
    speed: Annotated[
        Optional[float],
        typer.Option(help="At least this many times as fast as greedy, by the wall time of the sweep (soar)."),
    ] = None,
    beam: Annotated[Optional[int], typer.Option(help="Consider only the settings with this beam (soar).")] = None,
    accuracy: Annotated[
        Optional[float],
        typer.Option(help="Instead: the fastest setting of at least this accuracy (0 to 1), both as measured."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a preset file that exists.")] = False,
) -> None:
    """Pick a setting from sweeps: as a preset for --preset, or as the defaults of a checkpoint.

    Of SOAR's settings that are fast enough, it takes the most cautious one that the sweep cannot tell from the most
    accurate: the highest threshold that is at most one standard error less accurate, on all tasks together and on each.

    Of Deliberate's, it takes the most accurate on all tasks together, and of these the one with the fewest forwards; on
    no single task may it be more than one standard error below the best.
    """
    import_library()
    from soar_dlm.evals.deliberate_sweeps import is_deliberate
    from soar_dlm.evals.results import ResultFolder
    from soar_dlm.presets import write_preset

    if output is None and save_to_model is None:
        raise SettingsError("Say where the setting goes: a preset file (--output), a checkpoint (--save-to-model).")
    if output is not None and not overwrite:
        with explained("write", output):
            if output.exists():
                raise SettingsError(f"{output} exists. Choose another file, or replace it with --overwrite.")
    if as_default and save_to_model is None:
        raise SettingsError("--as-default is about a checkpoint; name its folder with --save-to-model.")
    wish = Wish(forwards, speed, accuracy, beam)
    runs = [ResultFolder(folder).read() for folder in results]
    kinds = {is_deliberate(run) for run in runs}
    if len(kinds) > 1:
        raise SettingsError("Some of these sweeps are of SOAR and some of Deliberate; tune them one after the other.")
    choice = deliberate_choice(runs, wish, as_default) if kinds == {True} else soar_choice(runs, wish)
    typer.echo(f"{choice.preset.about}, with {choice.words}.")
    if output is not None:
        write_preset(output, choice.preset)
        typer.echo(f"Written to {output}.")
    if save_to_model is not None:
        typer.echo(choice.save(save_to_model))


def soar_choice(runs: Sequence[Results], wish: Wish) -> Choice:
    from soar_dlm.evals.model_defaults import save_to_model
    from soar_dlm.evals.sweeps import pooled
    from soar_dlm.presets import Preset

    found = pooled(runs) if wish.beam is None else pooled(runs).with_beam(wish.beam)
    if wish.accuracy is not None:
        chosen = found.fastest(wish.accuracy)
    else:
        chosen = found.within(wish.speed, wish.share).cautious()
    one = found.points[chosen]

    def save(folder: Path) -> str:
        save_to_model(folder, chosen, found.metric, weights_of(runs))
        return f"{folder} decodes with it by default."

    about = f"{about_point(found, one)}, {one.speed_up:.2f} times as fast"
    preset = Preset(SOAR, {**asdict(chosen), "metric": found.metric}, about)
    return Choice(preset, f"tau = {chosen.threshold} and K = {chosen.beam} by {found.metric}", save)


def deliberate_choice(runs: Sequence[Results], wish: Wish, as_default: bool) -> Choice:
    from soar_dlm.evals.deliberate_sweeps import pooled_deliberate
    from soar_dlm.evals.model_defaults import save_tuned
    from soar_dlm.presets import Preset

    if wish.speed is not None or wish.beam is not None:
        raise SettingsError("A sweep of Deliberate has no beams, and forwards in place of time; use --forwards.")
    found = pooled_deliberate(runs)
    if wish.accuracy is not None:
        chosen = found.cheapest(wish.accuracy)
    else:
        chosen = found.within(forwards=wish.share).most_accurate()
    settings = found.settings_of(chosen)

    def save(folder: Path) -> str:
        saved = save_tuned(folder, DELIBERATE, settings, weights_of(runs), as_default)
        when = "by default" if saved.strategy == DELIBERATE else f"when {DELIBERATE} is asked for"
        return f"{folder} decodes with it {when}."

    preset = Preset(DELIBERATE, settings, about_point(found, found.points[chosen]))
    return Choice(preset, f"tau = {chosen.threshold} by {found.metric}: {chosen.search}", save)


def about_point(found: Measured[Any], one: Summary) -> str:
    from soar_dlm.evals.comparison import ratio

    share = ratio(one.forwards, found.greedy.forwards)
    return (
        f"{found.model} on {', '.join(found.tasks)}: {one.accuracy:.1%} of {one.problems:,} problems "
        f"(greedy {found.greedy.accuracy:.1%}) with {share:.2f} of greedy's forwards"
    )


def weights_of(runs: Sequence[Results]) -> str | None:
    weights: str | None = runs[0].settings["weights_sha256"]
    return weights
