"""The paper's Table 1 in miniature: accuracy and speed of every method on small tasks with a small model.

    python -m benchmarks.table1                                       mini-llada: decode, then report
    python -m benchmarks.table1 --show                                only report, from the results that are there
    python -m benchmarks.table1 --model my-model --output my-table

1. On validation problems, a sweep over thresholds for Adaptive Parallel (K = 1) and SOAR (K = 2).
2. Both take the cautious choice (soar_dlm.evals.sweeps) among the thresholds with at most half of greedy's forwards,
   or among all if none is that fast. SOAR with K = 4 takes the threshold of K = 2. *Careful* SOAR may take as many
   forwards as greedy: what the paper asks of SOAR is a speed-up above 1.
3. On test problems, all methods decode the same problems in turns (soar_dlm.evals.comparison.compare).
4. table1.md, table1.json and sweep.json are made from the results alone.

Interrupt it whenever you like: the same command resumes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console

from soar_dlm.cli.lists import listed
from soar_dlm.cli.progress import bar
from soar_dlm.errors import SettingsError, SoarError
from soar_dlm.evals.breakdown import by_kind, gains
from soar_dlm.evals.comparison import Method, Summary, compare, summary
from soar_dlm.evals.reports import MEASURES, SIGNS, made_with, methods_table, significance, table
from soar_dlm.evals.results import Record, ResultFolder, Results
from soar_dlm.evals.statistics import Bin, accuracy_by_confidence, rank_correlation
from soar_dlm.evals.sweeps import Sweep, pooled, settings, sweep_methods
from soar_dlm.evals.tables import sign
from soar_dlm.lm import LM, load
from soar_dlm.search.adaptive_parallel import AdaptiveParallel
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.position_beam import PositionBeam
from soar_dlm.search.soar import Soar
from soar_dlm.search.strategy import Strategy
from soar_dlm.tasks.catalogue import make_task
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.task import Task

THRESHOLDS = (0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999)
GREEDY, FORCED, ADAPTIVE = "Greedy", "Parallel, n=2", "Adaptive Parallel"
PBS, PBS_FORCED, SOAR_2, SOAR_4 = "PBS, K=2", "PBS parallel, K=2, n=2", "SOAR, K=2", "SOAR, K=4"
CAREFUL = "SOAR, K=2, careful"


def chosen_thresholds(sweep: Sweep) -> dict[str, float]:
    shares = {ADAPTIVE: (1, 0.5), SOAR_2: (2, 0.5), CAREFUL: (2, 1.0)}
    return {
        method: quick(sweep.with_beam(beam), share).cautious().threshold for method, (beam, share) in shares.items()
    }


def quick(sweep: Sweep, share: float) -> Sweep:
    """The points with at most this share of greedy's forwards, or all if there are none."""
    try:
        return sweep.within(forwards=share)
    except SettingsError:
        return sweep


def table_methods(thresholds: Mapping[str, float]) -> dict[str, Strategy]:
    return {
        GREEDY: Greedy(),
        FORCED: Greedy(tokens_per_step=2),
        ADAPTIVE: AdaptiveParallel(threshold=thresholds[ADAPTIVE]),
        PBS: PositionBeam(beam=2),
        PBS_FORCED: PositionBeam(beam=2, tokens_per_step=2),
        SOAR_2: Soar(beam=2, threshold=thresholds[SOAR_2]),
        SOAR_4: Soar(beam=4, threshold=thresholds[SOAR_2]),
        CAREFUL: Soar(beam=2, threshold=thresholds[CAREFUL]),
    }


@dataclass(frozen=True)
class Claim:
    """One thing the paper says, whether it holds on a task, and the figures that decide it."""

    text: str
    task: str
    holds: bool
    figures: str


@dataclass(frozen=True)
class TaskResult:
    """What the result folders of a task say."""

    name: str
    validation: Results
    test: Results

    @cached_property
    def sweep(self) -> Sweep:
        return pooled([self.validation])

    @cached_property
    def table(self) -> dict[str, Summary]:
        return summary(self.test.whole_chunks(), GREEDY)

    @cached_property
    def thresholds(self) -> dict[str, float]:
        return chosen_thresholds(self.sweep)

    def of(self, method: str) -> list[Record]:
        return [record for record in self.test.whole_chunks() if record.method == method]

    @cached_property
    def bins(self) -> list[Bin]:
        """Greedy's problems, sorted by the mean confidence of their tokens."""
        greedy = self.of(GREEDY)
        return accuracy_by_confidence([one.mean_confidence for one in greedy], [one.correct for one in greedy])

    @cached_property
    def correlation(self) -> float | None:
        greedy = self.of(GREEDY)
        return rank_correlation([one.mean_confidence for one in greedy], [one.correct for one in greedy])

    def claims(self) -> Iterator[Claim]:
        greedy, pbs, forced = self.table[GREEDY], self.table[PBS], self.table[FORCED]
        holds = pbs.correct >= greedy.correct
        yield Claim("PBS is at least as accurate as greedy", self.name, holds, against(pbs, greedy))
        for method in (SOAR_2, SOAR_4, CAREFUL):
            soar = self.table[method]
            holds = soar.correct >= greedy.correct and soar.speed_up > 1
            figures = f"{against(soar, greedy)}; speed-up {soar.speed_up:.2f}"
            yield Claim(f"{method}: at least as accurate as greedy, and faster", self.name, holds, figures)
        holds = forced.correct < greedy.correct
        yield Claim("Forcing two tokens per step costs accuracy", self.name, holds, against(forced, greedy))
        low, high = self.bins[0].accuracy, self.bins[-1].accuracy
        holds = self.correlation is not None and self.correlation > 0 and high > low
        figures = f"{low:.1%} in the lowest bin, {high:.1%} in the highest; {correlation_text(self.correlation)}"
        yield Claim("Accuracy grows with confidence", self.name, holds, figures)


def against(method: Summary, greedy: Summary) -> str:
    return f"{method.accuracy:.1%} against {greedy.accuracy:.1%}, p {significance(method)}"


def correlation_text(value: float | None) -> str:
    return "rank correlation undefined" if value is None else f"rank correlation {value:.2f}"


def result_folder(output: Path, task: str, stage: str) -> Path:
    return output / "results" / f"{task}.{stage}"


def decode(lm: LM, name: str, limit: int, validation: int, chunk: int, output: Path) -> None:
    """The sweep, then the test run with the thresholds it chose; the result folders are the outcome."""
    task = make_task(name)
    swept = sweep_methods(settings(THRESHOLDS, (1, 2)), "probability", task.canvas)
    folder = result_folder(output, name, "validation")
    decode_stage(lm, task, task.distinct("validation", validation), swept, chunk, folder)
    chosen = table_methods(chosen_thresholds(pooled([ResultFolder(folder).read()])))
    compared = {label: Method(strategy, task.canvas, label=label) for label, strategy in chosen.items()}
    folder = result_folder(output, name, "test")
    decode_stage(lm, task, task.distinct("test", limit), compared, chunk, folder)


def decode_stage(
    lm: LM, task: Task, problems: Sequence[Problem], methods: Mapping[str, Method], chunk: int, folder: Path
) -> None:
    with bar(folder.name, len(problems) * len(methods), Console(stderr=True, highlight=False)) as count:
        compare(lm, task, problems, methods, chunk=chunk, folder=folder, on_record=count)


def read_result(output: Path, task: str) -> TaskResult:
    validation, test = (ResultFolder(result_folder(output, task, stage)).read() for stage in ("validation", "test"))
    return TaskResult(task, validation, test)


def markdown(results: Sequence[TaskResult]) -> str:
    lines = ["# Table 1 in miniature", "", made_with(results[0].test), "", MEASURES, "", SIGNS]
    lines += ["", "## In short", "", "Accuracy and forwards per problem.", "", *short_section(results)]
    for result in results:
        lines += ["", f"## {result.name}", "", *task_section(result)]
    lines += ["", "## Accuracy and confidence", "", "Greedy, problems sorted by the mean confidence of their tokens."]
    for result in results:
        lines += ["", *confidence_section(result)]
    lines += ["", "## What search finds", "", *gain_section(results), "", "## Accuracy by kind"]
    for result in results:
        lines += ["", *kind_section(result)]
    lines += ["", "## What the paper claims, here", "", *claim_section(results)]
    return "\n".join(lines) + "\n"


def short_section(results: Sequence[TaskResult]) -> Iterator[str]:
    head = ["method", *(cell for result in results for cell in (result.name, "forwards"))]
    rows = []
    for name in results[0].table:
        found = [result.table[name] for result in results]
        rows.append(
            [name, *(cell for one in found for cell in (f"{one.accuracy:.1%}{sign(one)}", f"{one.forwards:.1f}"))]
        )
    yield from table(head, rows)


def task_section(result: TaskResult) -> Iterator[str]:
    count, wanted = result.table[GREEDY].problems, result.test.settings["problems"]
    chosen = ", ".join(f"{method}: {tau}" for method, tau in result.thresholds.items())
    yield (
        f"{count if count == wanted else f'{count} of {wanted}'} problems, canvas {result.test.settings['canvas']}. "
        f"Thresholds chosen on {result.sweep.greedy.problems} validation problems: {chosen}."
    )
    yield ""
    yield from methods_table(result.table)


def confidence_section(result: TaskResult) -> Iterator[str]:
    yield f"{result.name}: {correlation_text(result.correlation)}."
    yield ""
    rows = [[f"{one.low:.3f} to {one.high:.3f}", str(one.count), f"{one.accuracy:.1%}"] for one in result.bins]
    yield from table(["mean confidence", "problems", "accuracy"], rows)


def gain_section(results: Sequence[TaskResult]) -> Iterator[str]:
    yield f"Problems for which {PBS} writes another text than greedy: by whether the model is surer of that text (the"
    yield "mean confidence of its tokens), and how many of them only one of the two solved."
    yield ""
    rows = [
        [result.name, "surer" if gain.surer else "less sure", str(gain.problems), str(gain.gained), str(gain.lost)]
        for result in results
        for gain in gains(result.of(PBS), result.of(GREEDY))
    ]
    yield from table(["task", "text of the beam", "problems", "gained", "lost"], rows)


def kind_section(result: TaskResult) -> Iterator[str]:
    methods = (GREEDY, SOAR_2, SOAR_4)
    counts = {method: by_kind(result.of(method)) for method in methods}
    rows = [
        [kind, str(total), *(f"{counts[method][kind][1] / total:.1%}" for method in methods)]
        for kind, (total, _) in counts[GREEDY].items()
    ]
    yield from table([result.name, "problems", *methods], rows)


def claim_section(results: Sequence[TaskResult]) -> Iterator[str]:
    yield "Yes or no by the figures as they are; p says how certain that is."
    yield ""
    claims = [claim for same in zip(*(result.claims() for result in results), strict=True) for claim in same]
    rows = [[claim.text, claim.task, "yes" if claim.holds else "no", claim.figures] for claim in claims]
    yield from table(["claim", "task", "holds", "figures"], rows)


def figures(result: TaskResult) -> dict[str, Any]:
    """Everything that table1.md shows of a task, and where it comes from."""
    return {
        "settings": result.test.settings,
        "machine": result.test.machine,
        "library": result.test.libraries,
        "complete": result.test.complete,
        "thresholds": result.thresholds,
        "methods": {name: one.as_dict() for name, one in result.table.items()},
        "confidence": {
            "rank_correlation": result.correlation,
            "bins": [{**asdict(part), "accuracy": part.accuracy} for part in result.bins],
        },
        "kinds": {method: by_kind(result.of(method)) for method in result.table},
        "claims": [asdict(claim) for claim in result.claims()],
    }


def sweep_figures(result: TaskResult) -> dict[str, Any]:
    points = {GREEDY: result.sweep.greedy} | {point.name: one for point, one in result.sweep.points.items()}
    return {
        "settings": result.validation.settings,
        "machine": result.validation.machine,
        "library": result.validation.libraries,
        "chosen": result.thresholds,
        "methods": {name: one.as_dict() for name, one in points.items()},
    }


def write_report(results: Sequence[TaskResult], output: Path) -> str:
    text = markdown(results)
    (output / "table1.md").write_text(text)
    for file, of_task in (("table1.json", figures), ("sweep.json", sweep_figures)):
        (output / file).write_text(json.dumps({result.name: of_task(result) for result in results}, indent=2) + "\n")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mini-llada", help="an embedded name, a folder or a Hub id")
    parser.add_argument("--tasks", default="mini-gsm,mini-code,mini-sudoku", help="names separated by commas")
    parser.add_argument("--limit", type=int, default=1000, help="test problems of each task")
    parser.add_argument("--validation", type=int, default=300, help="problems of each task to choose thresholds on")
    parser.add_argument("--chunk", type=int, default=50, help="problems that a method decodes in one turn")
    parser.add_argument("--output", type=Path, default=Path("docs/results/table1"))
    parser.add_argument("--show", action="store_true", help="only report, from the results that are there")
    given = parser.parse_args()
    try:
        if not given.show:
            lm = load(given.model)
            for name in listed(given.tasks):
                decode(lm, name, given.limit, given.validation, given.chunk, given.output)
        print(write_report([read_result(given.output, name) for name in listed(given.tasks)], given.output))
    except SoarError as error:
        raise SystemExit(f"table1: {error}") from error


if __name__ == "__main__":
    main()
