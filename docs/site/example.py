"""The site has an example of a report: the one that ``soar report docs/results/example`` makes.

Pages link to that folder, which is what GitHub has. On the site these links lead to the report.
"""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from soar_dlm.evals.runs import read_runs
from soar_dlm.report import figures_of, report_page

RESULTS, REPORT = "results/example", "results/example.html"


def on_files(files: Files, config: MkDocsConfig) -> None:
    runs = read_runs([Path(config.docs_dir) / RESULTS])
    files.append(File.generated(config, REPORT, content=report_page(runs, figures_of(runs))))
