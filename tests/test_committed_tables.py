"""The tables in docs/results/eval follow from the results beside them, and these are about the fixed problems."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from typer.testing import CliRunner

from soar_dlm.cli.main import app
from soar_dlm.evals.comparison import problems_fingerprint
from soar_dlm.evals.results import ResultFolder
from soar_dlm.evals.runs import read_runs
from soar_dlm.plots.sweep import sweep_picture
from soar_dlm.tasks.catalogue import make_task
from soar_dlm.tasks.problem import Split

RESULTS = Path(__file__).parent.parent / "docs" / "results" / "eval"
FOLDERS = sorted(path.parent for path in RESULTS.rglob("manifest.json"))


@pytest.mark.parametrize("number", ["1", "2", "3"])
@pytest.mark.parametrize(("style", "ending"), [("markdown", "md"), ("latex", "tex"), ("json", "json")])
def test_a_committed_table_comes_out_again(number: str, style: str, ending: str) -> None:
    asked = ["table", str(RESULTS / f"table{number}"), "--table", number, "--format", style]
    made = CliRunner().invoke(app, asked, catch_exceptions=False)
    assert made.stdout == (RESULTS / f"table{number}.{ending}").read_text()


def test_the_data_of_the_committed_figure_comes_out_again() -> None:
    (run,) = read_runs([RESULTS / "sweep"])
    assert sweep_picture(run).csv == (RESULTS / "sweep.csv").read_text()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(RESULTS)))
def test_committed_results_are_whole(folder: Path) -> None:
    found = ResultFolder(folder).read()
    assert found.complete
    assert found.size == (folder / "results.jsonl").stat().st_size


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(RESULTS)))
def test_committed_results_are_about_the_fixed_problems(folder: Path) -> None:
    found = ResultFolder(folder).read()
    split: Split = "validation" if folder.name == "sweep" else "test"
    problems = make_task(found.settings["task"]).distinct(split, found.settings["problems"])
    assert found.settings["problems_sha256"] == problems_fingerprint(problems)
    for record in found.records:
        problem = problems[record.index]
        prompt_sha256 = sha256((problem.prompt + problem.suffix).encode()).hexdigest()
        assert (record.kind, record.prompt_sha256) == (problem.kind, prompt_sha256)


def test_the_readme_shows_the_committed_tables() -> None:
    text = (RESULTS / "README.md").read_text()
    for number in (1, 2, 3):
        assert (RESULTS / f"table{number}.md").read_text() in text
