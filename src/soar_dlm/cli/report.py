"""``soar report``: one page with tables, figures and every decoding, made from result folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from soar_dlm import files
from soar_dlm.cli.loading import import_library, status
from soar_dlm.errors import SettingsError


def report(
    results: Annotated[list[Path], typer.Argument(help="Folders written by 'soar eval', best with --traces.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write, such as report.html.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a page that exists.")] = False,
) -> None:
    """Write a page that shows results and how each problem was decoded; it opens in any browser, without a network.

    For example: [cyan]soar report results -o report.html[/cyan]
    """
    if output.exists() and not overwrite:
        raise SettingsError(f"{output} exists. Choose another file, or replace it with --overwrite.")
    import_library()
    from soar_dlm.evals.runs import read_runs
    from soar_dlm.plots.style import drawable
    from soar_dlm.report import figures_of, report_page

    with status("Reading the results ..."):
        runs = read_runs(results)
        page = report_page(runs, figures_of(runs))
    files.write_text(output, page)
    console = Console(stderr=True, highlight=False)
    without = [run.name for run in runs if not run.traced]
    if without:
        console.print(
            f"There are no traces of {', '.join(without)}, so the page cannot show the steps; 'soar eval --traces' "
            "keeps them.",
            markup=False,
        )
    if not drawable():
        console.print("The page has no figures: pip install 'soar-dlm[plots]' adds them.", markup=False)
    console.print(f"The report is in {output} ({len(page) / 1e6:.1f} MB). Open it in a browser.", markup=False)
