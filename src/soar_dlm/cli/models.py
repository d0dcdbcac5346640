"""``soar models``: what can be loaded."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from soar_dlm.models.embedded import EMBEDDED
from soar_dlm.models.families import FAMILIES


def models(
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the models and model families that can be loaded."""
    if as_json:
        families = [{"family": f.name, "title": f.title, "examples": list(f.examples)} for f in FAMILIES]
        embedded = [{"name": name, "about": model.about} for name, model in EMBEDDED.items()]
        typer.echo(json.dumps({"families": families, "embedded": embedded}, indent=2))
        return
    console = Console()
    table = Table(title="Embedded models (no download)", title_justify="left", box=None, header_style="bold")
    table.add_column("name", no_wrap=True, style="cyan")
    table.add_column("what it is")
    for name, model in EMBEDDED.items():
        table.add_row(name, model.about)
    console.print(table)
    console.print()
    table = Table(title="Model families (Hub id or local folder)", title_justify="left", box=None, header_style="bold")
    table.add_column("family", no_wrap=True)
    table.add_column("for example", no_wrap=True, style="cyan")
    table.add_column("default threshold (probability)", justify="right")
    for family in FAMILIES:
        table.add_row(family.title, "\n".join(family.examples), f"{family.thresholds['probability']:g}")
    console.print(table)
    console.print('\nUse one with: soar generate --model NAME "your prompt"', highlight=False)
