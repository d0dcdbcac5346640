"""``soar models``: what can be loaded."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table

from soar_dlm.cli.listing import AsJson
from soar_dlm.models.embedded import EMBEDDED
from soar_dlm.models.families import FAMILIES
from soar_dlm.strict_json import json_text


def models(as_json: AsJson = False) -> None:
    """List the models and model families that can be loaded."""
    if as_json:
        families = [{"family": f.name, "title": f.title, "examples": list(f.examples)} for f in FAMILIES]
        embedded = [{"name": name, "about": model.about} for name, model in EMBEDDED.items()]
        typer.echo(json_text({"families": families, "embedded": embedded}), nl=False)
        return
    console = Console(highlight=False)
    console.print("Embedded models, nothing to download:", style="bold")
    table = Table.grid(padding=(0, 2))
    for name, model in EMBEDDED.items():
        table.add_row("", f"[cyan]{name}[/cyan]", model.about)
    console.print(table)
    console.print("\nFamilies, by Hub id or local folder:", style="bold")
    for family in FAMILIES:
        console.print(f"  {family.title}")
        for example in family.examples:
            console.print(f"    [cyan]{example}[/cyan]")
    console.print('\nUse one with: soar generate --model NAME "your prompt"')
