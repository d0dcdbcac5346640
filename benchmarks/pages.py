"""Pages of measured results in ``docs/results``: a title, and a section for each thing that was measured."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from soar_dlm.evals.provenance import library, machine

RESULTS = Path(__file__).parents[1] / "docs" / "results"
SCALE = RESULTS.parent / "scale.md"
"""The guide that shows what the cluster and its simulation were measured to cost."""
LIBRARIES = ("torch", "transformers")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


def conditions() -> str:
    """The machine and the versions that a measurement was made with."""
    system = f"{platform.system()} {'.'.join(platform.release().split('.')[:2])} ({platform.machine()})"
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        f"Measured on {machine()['cpu']}, {os.cpu_count()} cores, {system}; "
        f"soar-dlm {library()['version']}, Python {platform.python_version()}, {versions}."
    )


def fill(page: Path, name: str, text: str) -> None:
    """Put ``text`` between ``<!-- table NAME -->`` and ``<!-- end -->`` of a page that is written by hand."""
    whole = page.read_text(encoding="utf-8")
    head, found, rest = whole.partition(f"<!-- table {name} -->\n")
    assert found, f"{page} has no place for {name}"
    page.write_text(
        f"{head}{found}\n{text.strip()}\n\n<!-- end -->{rest.partition('<!-- end -->')[2]}", encoding="utf-8"
    )


def write(page: Path, title: str, section: str, text: str) -> None:
    """Put ``text`` under the heading ``section`` of a page; its other sections stay as they are."""
    _, *others = page.read_text(encoding="utf-8").split("\n## ") if page.exists() else [""]
    sections = {one.partition("\n")[0]: one.partition("\n")[2].strip() for one in others}
    sections[section] = text.strip()
    parts = [f"# {title}", *(f"## {heading}\n\n{own}" for heading, own in sections.items())]
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def table_of(page: Path, section: str) -> str:
    """The table under a heading of a page."""
    text = page.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return "\n".join(line for line in text.splitlines() if line.startswith("|"))
