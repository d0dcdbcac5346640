"""The paper's Table 3: filling a blank from different initial lengths, with a model that changes them itself.

    python -m benchmarks.table3                                         mini-dreamon on mini-infill
    python -m benchmarks.table3 --show                                  report again, decode nothing
    python -m benchmarks.table3 --model Dream-org/DreamOn-v0-7B --task humaneval-infilling-single
        --lengths 8,16,32,64 --output dreamon     HumanEval-Infilling (one line)

Greedy and SOAR (K = 2) read negative entropy, tau = -0.1, as in the paper; a blank grows to 64 at most. All methods
decode the same problems in turns; see soar_dlm.evals.comparison.compare. "right" starts from the length of the answer
that was taken out. Run it again to go on after an interruption.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.table1 import Progress, p_text
from soar_dlm.errors import SettingsError, SoarError
from soar_dlm.evals.comparison import Method, Summary, compare, summary
from soar_dlm.evals.results import ResultFolder, Results
from soar_dlm.lm import load
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.soar import Soar
from soar_dlm.tasks.catalogue import make_task

RIGHT = "right"
LENGTHS = f"{RIGHT},4,8,16,32,64"
STRATEGIES = {"Greedy": Greedy(metric="neg_entropy"), "SOAR": Soar(beam=2, threshold=-0.1, metric="neg_entropy")}


def named(strategy: str, length: str) -> str:
    return f"{strategy} from {length}"


def methods(lengths: Sequence[str]) -> dict[str, Method]:
    found: dict[str, Method] = {}
    for length in lengths:
        if length != RIGHT and not length.isdigit():
            raise SettingsError(f"A length is a number or {RIGHT!r}, not {length!r}.")
        start: Any = RIGHT if length == RIGHT else int(length)
        found |= {named(name, length): Method(strategy, start) for name, strategy in STRATEGIES.items()}
    return found


def lengths_of(run: Results) -> list[str]:
    """The initial lengths that were compared, in their order."""
    return list(dict.fromkeys(name.rpartition(" ")[2] for name in run.settings["order"]))


def measured(run: Results, exact: bool) -> dict[str, dict[str, Summary]]:
    """For each initial length: both strategies, SOAR against greedy, by exact match or by the task's own judge."""
    records = [replace(record, correct=bool(record.exact)) if exact else record for record in run.records]
    found = {}
    for length in lengths_of(run):
        mine = {named(name, length): name for name in STRATEGIES}
        own = [replace(record, method=mine[record.method]) for record in records if record.method in mine]
        found[length] = summary(own, "Greedy")
    return found


def markdown(run: Results) -> str:
    settings = run.settings
    by_text, by_judge = measured(run, exact=True), measured(run, exact=False)
    count = next(iter(by_text.values()))["Greedy"].problems
    lines = [
        "# Table 3: filling blanks of unknown length",
        "",
        f"Model {settings['model']}, task {settings['task']}, {count} problems; {run.machine['cpu']}, "
        f"{run.machine['cores']} cores, {settings['threads']} threads.",
        "",
        "Exact match and pass@1 with their 95% intervals, forwards per problem, and greedy's time over SOAR's for the",
        "same problems decoded in turns. p is McNemar's exact test of SOAR against greedy by exact match.",
        "",
        "| initial length | method | exact match | pass@1 | forwards | speed-up | p (gained, lost) |",
        "|---|---|---|---|---|---|---|",
    ]
    for length in by_text:
        for name in STRATEGIES:
            text, judge = by_text[length][name], by_judge[length][name]
            p_value = f"{p_text(text.p_value).removeprefix('= ')} (+{text.gained}/-{text.lost})"
            cells = [rate(text), rate(judge), f"{text.forwards:.1f}", f"{text.speed_up:.2f}"]
            lines.append(f"| {length} | {name} | {' | '.join(cells)} | {'' if name == 'Greedy' else p_value} |")
    return "\n".join([*lines, "", *kind_section(run)]) + "\n"


def kind_section(run: Results) -> Iterator[str]:
    """Exact match by what is missing: rows are methods, columns are kinds of problems."""
    kinds = sorted({record.kind for record in run.records})
    counts = Counter((record.method, record.kind) for record in run.records)
    exact = Counter((record.method, record.kind) for record in run.records if record.exact)
    yield "## Exact match by what is missing"
    yield ""
    yield f"| initial length | method | {' | '.join(kinds)} |"
    yield "|---|---|" + "---|" * len(kinds)
    for length in lengths_of(run):
        for name in STRATEGIES:
            method = named(name, length)
            cells = [f"{exact[method, kind] / counts[method, kind]:.1%} of {counts[method, kind]}" for kind in kinds]
            yield f"| {length} | {name} | {' | '.join(cells)} |"


def rate(found: Summary) -> str:
    low, high = found.interval
    return f"{found.accuracy:.1%} ({low:.1%} to {high:.1%})"


def figures(run: Results) -> dict[str, Any]:
    return {
        "settings": run.settings,
        "machine": run.machine,
        "complete": run.complete,
        **{
            judge: {
                length: {name: {"accuracy": one.accuracy, **asdict(one)} for name, one in both.items()}
                for length, both in measured(run, exact).items()
            }
            for judge, exact in (("exact_match", True), ("pass_at_1", False))
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mini-dreamon", help="an embedded name, a folder or a Hub id")
    parser.add_argument("--task", default="mini-infill", help="a task that fills blanks")
    parser.add_argument("--data-dir", type=Path, help="folder with the files of a published benchmark; else the Hub")
    parser.add_argument("--lengths", default=LENGTHS, help="masks a blank starts with; 'right' for the answer's own")
    parser.add_argument("--limit", type=int, default=1000, help="test problems")
    parser.add_argument("--chunk", type=int, default=50, help="problems that a method decodes in one turn")
    parser.add_argument("--output", type=Path, default=Path("docs/results/table3"))
    parser.add_argument("--show", action="store_true", help="report from the results that are there")
    asked = parser.parse_args()
    folder = asked.output / "results" / asked.task
    try:
        if not asked.show:
            task = make_task(asked.task, asked.data_dir)
            problems = task.distinct("test", asked.limit)
            compared = methods([length.strip() for length in asked.lengths.split(",")])
            watch = Progress(asked.task, "test", asked.chunk, list(compared), len(problems))
            compare(load(asked.model), task, problems, compared, chunk=asked.chunk, folder=folder, on_record=watch)
        run = ResultFolder(folder).read()
        (asked.output / "table3.md").write_text(markdown(run))
        (asked.output / "table3.json").write_text(json.dumps(figures(run), indent=2) + "\n")
        print(markdown(run))
    except SoarError as error:
        raise SystemExit(f"table3: {error}") from error


if __name__ == "__main__":
    main()
