"""Names with a line about each, as text for people or as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from soar_dlm.strict_json import json_text, plain

AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON.")]


@dataclass(frozen=True)
class Entry:
    """A name, a line about it, and its settings with their defaults."""

    name: str
    about: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def print_listing(kind: str, entries: Sequence[Entry], as_json: bool) -> None:
    if as_json:
        typer.echo(json_text(plain({kind: [asdict(entry) for entry in entries]})), nl=False)
        return
    console = Console(highlight=False)
    for entry in entries:
        about = f"{entry.about[:1].upper()}{entry.about[1:].removesuffix('.')}."
        settings = ", ".join(f"{name}={_shown(value)}" for name, value in entry.settings.items())
        console.print(Text(entry.name, style="bold cyan"))
        for line in filter(None, (about, settings)):
            console.print(Padding(Text(line), (0, 0, 0, 2), expand=False))


def _shown(value: Any) -> str:
    """A value as ``--set`` takes it."""
    if isinstance(value, (list, tuple, Mapping)):
        return json.dumps(value, separators=(",", ":"), default=repr)
    return str(value)
