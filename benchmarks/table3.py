"""The paper's Table 3: filling a blank from different initial lengths, with a model that changes them itself.

    python -m benchmarks.table3                                         mini-dreamon on mini-infill
    python -m benchmarks.table3 --show                                  only report, from the results that are there
    python -m benchmarks.table3 --model Dream-org/DreamOn-v0-7B --task humaneval-infilling-single
        --lengths 8,16,32,64 --output dreamon     HumanEval-Infilling (one line)

Greedy and SOAR (K = 2) use negative entropy, tau = -0.1, as in the paper; a blank grows to at most 64. All methods
decode the same problems in turns (soar_dlm.evals.comparison.compare). "right" starts from the length of the answer
that was taken out. Interrupt it whenever you like: the same command resumes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from soar_dlm.cli.lists import listed
from soar_dlm.cli.progress import bar
from soar_dlm.errors import SettingsError, SoarError
from soar_dlm.evals.breakdown import by_kind
from soar_dlm.evals.comparison import Method, Summary, compare, summary
from soar_dlm.evals.reports import made_with, rate, significance, table
from soar_dlm.evals.results import Record, ResultFolder, Results
from soar_dlm.lm import load
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.soar import Soar
from soar_dlm.tasks.catalogue import make_task

RIGHT: Literal["right"] = "right"
LENGTHS = f"{RIGHT},4,8,16,32,64"
GREEDY, SOAR = "Greedy", "SOAR"
STRATEGIES = {GREEDY: Greedy(metric="neg_entropy"), SOAR: Soar(beam=2, threshold=-0.1, metric="neg_entropy")}


def named(strategy: str, length: str) -> str:
    return f"{strategy} from {length}"


def methods(lengths: Sequence[str]) -> dict[str, Method]:
    found: dict[str, Method] = {}
    for length in lengths:
        if length != RIGHT and not length.isdigit():
            raise SettingsError(f"A length is a number or {RIGHT!r}, not {length!r}.")
        start = RIGHT if length == RIGHT else int(length)
        for name, strategy in STRATEGIES.items():
            found[named(name, length)] = Method(strategy, start, label=name)
    return found


def lengths_of(run: Results) -> list[str]:
    """The initial lengths that were compared, in their order."""
    return list(dict.fromkeys(name.rpartition(" ")[2] for name in run.settings["order"]))


def records_of(run: Results, length: str, exact: bool) -> list[Record]:
    """The records from one initial length by the name of their strategy, judged by exact match or by the task."""
    mine = {named(name, length): name for name in STRATEGIES}
    return [
        replace(record, method=mine[record.method], correct=bool(record.exact) if exact else record.correct)
        for record in run.whole_chunks()
        if record.method in mine
    ]


def measured(run: Results, exact: bool) -> dict[str, dict[str, Summary]]:
    """For each initial length both strategies, SOAR compared with greedy."""
    return {length: summary(records_of(run, length, exact), GREEDY) for length in lengths_of(run)}


def markdown(run: Results) -> str:
    by_text, by_judge = measured(run, exact=True), measured(run, exact=False)
    count = next(iter(by_text.values()))[GREEDY].problems
    lines = [
        "# Table 3: filling blanks of unknown length",
        "",
        f"{made_with(run)} Task {run.settings['task']}, {count} problems.",
        "",
        "Exact match and pass@1 with their 95% intervals, forwards per problem, and greedy's time over SOAR's for the",
        "same problems, decoded in turns. p is McNemar's exact test of SOAR against greedy by exact match.",
        "",
    ]
    rows = [
        [length, name, rate(text), rate(by_judge[length][name]), f"{text.forwards:.1f}", f"{text.speed_up:.2f}"]
        + ["" if name == GREEDY else significance(text)]
        for length, both in by_text.items()
        for name, text in both.items()
    ]
    head = ["initial length", "method", "exact match", "pass@1", "forwards", "speed-up", "p (gained, lost)"]
    lines += [*table(head, rows), "", "## Exact match by what is missing", "", *kind_section(run)]
    return "\n".join(lines) + "\n"


def kind_section(run: Results) -> Iterator[str]:
    """Exact match: rows are methods, columns are kinds of problems."""
    found = {
        (length, name): by_kind([one for one in records_of(run, length, exact=True) if one.method == name])
        for length in lengths_of(run)
        for name in STRATEGIES
    }
    kinds = list(next(iter(found.values())))
    rows = [
        [*method, *(f"{counts[kind][1] / counts[kind][0]:.1%} of {counts[kind][0]}" for kind in kinds)]
        for method, counts in found.items()
    ]
    yield from table(["initial length", "method", *kinds], rows)


def figures(run: Results) -> dict[str, Any]:
    """Everything that table3.md shows, and where it comes from."""
    judged = {
        judge: {
            length: {name: one.as_dict() for name, one in both.items()} for length, both in measured(run, exact).items()
        }
        for judge, exact in (("exact_match", True), ("pass_at_1", False))
    }
    known = {"settings": run.settings, "machine": run.machine, "library": run.libraries, "complete": run.complete}
    return {**known, **judged}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mini-dreamon", help="an embedded name, a folder or a Hub id")
    parser.add_argument("--task", default="mini-infill", help="a task that fills blanks")
    parser.add_argument("--data-dir", type=Path, help="folder with the files of a published benchmark; else the Hub")
    parser.add_argument("--lengths", default=LENGTHS, help="masks a blank starts with; 'right' for the answer's length")
    parser.add_argument("--limit", type=int, default=1000, help="test problems")
    parser.add_argument("--chunk", type=int, default=50, help="problems that a method decodes in one turn")
    parser.add_argument("--output", type=Path, default=Path("docs/results/table3"))
    parser.add_argument("--show", action="store_true", help="only report, from the results that are there")
    given = parser.parse_args()
    folder = given.output / "results" / given.task
    try:
        if not given.show:
            task = make_task(given.task, given.data_dir)
            problems = task.distinct("test", given.limit)
            compared = methods(listed(given.lengths))
            console = Console(stderr=True, highlight=False)
            with bar(given.task, len(problems) * len(compared), console) as count:
                compare(load(given.model), task, problems, compared, chunk=given.chunk, folder=folder, on_record=count)
        run = ResultFolder(folder).read()
        (given.output / "table3.md").write_text(markdown(run))
        (given.output / "table3.json").write_text(json.dumps(figures(run), indent=2) + "\n")
        print(markdown(run))
    except SoarError as error:
        raise SystemExit(f"table3: {error}") from error


if __name__ == "__main__":
    main()
