"""``soar train``: a small masked diffusion model from a recipe."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from soar_dlm.cli.canvas import clean
from soar_dlm.cli.problems import AllowCode, UnsafeSandbox, prepared
from soar_dlm.cli.screen import screen
from soar_dlm.errors import SettingsError

if TYPE_CHECKING:
    from soar_dlm.train.trainer import Trainer
    from soar_dlm.train.validation import Validation

SMOOTHING = 0.95


def train(
    recipe: Annotated[Path, typer.Argument(help="A TOML file; docs/training.md lists its settings.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the checkpoint. A run in it resumes.")],
    until: Annotated[
        Optional[int], typer.Option(help="Stop after this step of the recipe; the same command resumes.", min=1)
    ] = None,
    device: Annotated[
        Optional[str], typer.Option(help="cpu, cuda, cuda:1, mps. Default: the first accelerator.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only check the recipe and show what it would train; write nothing.")
    ] = False,
    allow_code_execution: AllowCode = False,
    unsafe_sandbox: UnsafeSandbox = False,
) -> None:
    """Train a small masked diffusion model, in the layout of LLaDA or Dream.

    For example: [cyan]soar train recipes/mini-llada.toml -o my-model[/cyan]

    Interrupt it whenever you like: the same command resumes from the last saved step.
    Then: [cyan]soar generate -m my-model "def solve(xs):"[/cyan]
    """
    from soar_dlm.train.processor import avoid_forbidden_instructions
    from soar_dlm.train.recipe import read_recipe

    console = screen()
    settings = read_recipe(recipe)
    if avoid_forbidden_instructions():
        console.print(
            "This machine reports AMX instructions but does not allow them; training without them.", style="dim"
        )
    from soar_dlm.tasks.catalogue import make_task
    from soar_dlm.train.trainer import Trainer

    code = [name for name in settings.data.tasks if make_task(name).runs_code]
    if code and not dry_run:
        prepared(code[0], None, allow_code_execution, console, unsafe_sandbox)
    trainer = Trainer(settings, output, device=device)
    last = min(until or settings.steps, settings.steps)
    console.print(_heading(trainer))
    if dry_run:
        trainer.check()
        if code:
            console.print(f"Validation runs what the model writes ({', '.join(code)}): add --allow-code-execution.")
        return
    if trainer.step >= last:
        raise SettingsError(f"{str(output)!r} is already at step {trainer.step}; nothing is left to train.")
    trainer.check()
    try:
        _follow(trainer, last, console)
    except KeyboardInterrupt:
        console.print("Stopped. The same command resumes from the last saved step.")
        raise typer.Exit(130) from None
    console.print(f'Done. Try it: soar generate -m {output} "..."', soft_wrap=True)


def _heading(trainer: Trainer) -> Text:
    """What is trained, for how long and where."""
    size = f"{trainer.parameters:,} parameters, {trainer.tokenizer.get_vocab_size():,} tokens"
    resumed = f", resuming after step {trainer.step:,}" if trainer.step else ""
    work = f"{trainer.recipe.steps:,} steps on {trainer.device}{resumed}"
    return Text.assemble((clean(trainer.recipe.name), "bold"), f": {size}, {work}")


def _follow(trainer: Trainer, last: int, console: Console) -> None:
    """Show progress as a bar in a terminal, else as a line for each validation."""
    from soar_dlm.train.validation import Validation

    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.3f}  {task.fields[speed]:,.0f} tokens/s"),
        TimeRemainingColumn(),
    )
    loss, tokens, started = None, 0, time.perf_counter()
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        shown = bar.add_task("training", total=last, completed=trainer.step, loss=float("nan"), speed=0.0)
        for event in trainer.run(last):
            if isinstance(event, Validation):
                _show(event, loss, console)
                continue
            loss = event.loss if loss is None else SMOOTHING * loss + (1 - SMOOTHING) * event.loss
            tokens += event.tokens
            speed = tokens / (time.perf_counter() - started)
            bar.update(shown, completed=event.step, loss=loss, speed=speed)


def _show(found: Validation, loss: float | None, console: Console) -> None:
    rates = ", ".join(f"{task} {share:.1%}" for task, share in found.accuracy.items())
    head = f"step {found.step:,}: loss {loss:.3f}" if loss is not None else f"step {found.step:,}"
    console.print(Text.assemble((head, "bold"), f"; held-out {rates}" if rates else ""))
    if found.sample is not None:
        prompt, text = found.sample
        console.print(Text.assemble((clean(prompt), "dim"), clean(text), "\n"))
