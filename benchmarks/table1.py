"""The paper's Table 1 in miniature: accuracy and speed of every method on small tasks with a small model.

    python -m benchmarks.table1                                       mini-llada: decode, then report
    python -m benchmarks.table1 --show                                report again, decode nothing
    python -m benchmarks.table1 --model my-model --output my-table

1. On validation problems, thresholds are swept for Adaptive Parallel and for SOAR with K = 2. Of those that take at
   most half of greedy's forwards (of all, if none does) the highest is chosen that is less than one standard error
   below the most accurate. SOAR with K = 4 takes the threshold of K = 2.
2. On test problems, all methods decode the same problems in turns; see soar_dlm.evals.comparison.compare.
3. The same for greedy and *careful* SOAR, K = 2 with the threshold chosen among those that take fewer forwards than
   greedy: what the paper asks of SOAR is a speed-up above 1.
4. table1.md, table1.json and sweep.json are made from the results alone.

Run it again to go on after an interruption.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import Any

from benchmarks.confidence_gain import gain_rows
from soar_dlm.errors import SoarError
from soar_dlm.evals.comparison import Summary, compare, summary
from soar_dlm.evals.results import Record, ResultFolder, Results
from soar_dlm.evals.statistics import Bin, accuracy_by_confidence, rank_correlation
from soar_dlm.lm import LM, load
from soar_dlm.search.adaptive_parallel import AdaptiveParallel
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.position_beam import PositionBeam
from soar_dlm.search.soar import Soar
from soar_dlm.search.strategy import Strategy
from soar_dlm.tasks.catalogue import make_task
from soar_dlm.tasks.problem import Problem

THRESHOLDS = (0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999)
GREEDY, FORCED, ADAPTIVE = "Greedy", "Parallel, n=2", "Adaptive Parallel"
PBS, PBS_FORCED, SOAR_2, SOAR_4 = "PBS, K=2", "PBS parallel, K=2, n=2", "SOAR, K=2", "SOAR, K=4"
CAREFUL = "SOAR, K=2, careful"
STAGES = ("validation", "test", "careful")
BINS = 5


def sweep_methods() -> dict[str, Strategy]:
    methods: dict[str, Strategy] = {GREEDY: Greedy()}
    methods |= {swept(ADAPTIVE, tau): AdaptiveParallel(threshold=tau) for tau in THRESHOLDS}
    return methods | {swept(SOAR_2, tau): Soar(beam=2, threshold=tau) for tau in THRESHOLDS}


def swept(method: str, tau: float) -> str:
    return f"{method}, tau={tau}"


def table_methods(thresholds: Mapping[str, float]) -> dict[str, Strategy]:
    return {
        GREEDY: Greedy(),
        FORCED: Greedy(tokens_per_step=2),
        ADAPTIVE: AdaptiveParallel(threshold=thresholds[ADAPTIVE]),
        PBS: PositionBeam(beam=2),
        PBS_FORCED: PositionBeam(beam=2, tokens_per_step=2),
        SOAR_2: Soar(beam=2, threshold=thresholds[SOAR_2]),
        SOAR_4: Soar(beam=4, threshold=thresholds[SOAR_2]),
    }


def chosen_threshold(sweep: Mapping[float, Summary], greedy: Summary, share: float = 0.5) -> float:
    """The most cautious threshold that validation cannot tell from the best, within a share of greedy's forwards.

    Cannot tell: its accuracy is less than one standard error below the best. With a few hundred problems the most
    accurate one alone is often a low threshold in luck.
    """
    quick = {tau: found for tau, found in sweep.items() if found.forwards <= greedy.forwards * share}
    among = quick or dict(sweep)
    best = max(found.accuracy for found in among.values())
    error = sqrt(best * (1 - best) / greedy.problems)
    return max(tau for tau, found in among.items() if found.accuracy >= best - error)


def chosen_thresholds(sweep: Mapping[str, Summary]) -> dict[str, float]:
    return {
        method: chosen_threshold({tau: sweep[swept(method, tau)] for tau in THRESHOLDS}, sweep[GREEDY])
        for method in (ADAPTIVE, SOAR_2)
    }


def careful_threshold(sweep: Mapping[str, Summary]) -> float:
    return chosen_threshold({tau: sweep[swept(SOAR_2, tau)] for tau in THRESHOLDS}, sweep[GREEDY], share=1.0)


def careful_methods(threshold: float) -> dict[str, Strategy]:
    return {GREEDY: Greedy(), CAREFUL: Soar(beam=2, threshold=threshold)}


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
    careful: Results

    @cached_property
    def sweep(self) -> dict[str, Summary]:
        return summary(self.validation.records, GREEDY)

    @cached_property
    def table(self) -> dict[str, Summary]:
        return summary(self.test.records, GREEDY)

    @cached_property
    def thresholds(self) -> dict[str, float]:
        return chosen_thresholds(self.sweep)

    @cached_property
    def careful_soar(self) -> Summary:
        return summary(self.careful.records, GREEDY)[CAREFUL]

    def of(self, method: str) -> list[Record]:
        return [record for record in self.test.records if record.method == method]

    @cached_property
    def bins(self) -> list[Bin]:
        greedy = self.of(GREEDY)
        return accuracy_by_confidence(
            [record.mean_confidence for record in greedy], [record.correct for record in greedy], BINS
        )

    @cached_property
    def correlation(self) -> float | None:
        greedy = self.of(GREEDY)
        return rank_correlation([record.mean_confidence for record in greedy], [record.correct for record in greedy])

    def by_kind(self, method: str) -> dict[str, tuple[int, int]]:
        """For each kind of problem: how many there are, how many the method got right."""
        total = Counter(record.kind for record in self.of(method))
        right = Counter(record.kind for record in self.of(method) if record.correct)
        return {kind: (total[kind], right[kind]) for kind in sorted(total, key=number_order)}

    def claims(self) -> Iterator[Claim]:
        greedy, pbs, forced = self.table[GREEDY], self.table[PBS], self.table[FORCED]
        holds = pbs.correct >= greedy.correct
        yield Claim("PBS is at least as accurate as greedy", self.name, holds, against(pbs, greedy))
        for method in (SOAR_2, SOAR_4):
            soar = self.table[method]
            holds = soar.correct >= greedy.correct and soar.speed_up > 1
            figures = f"{against(soar, greedy)}; speed-up {soar.speed_up:.2f}"
            yield Claim(f"{method}: at least as accurate as greedy, and faster", self.name, holds, figures)
        careful = self.careful_soar
        holds = careful.correct >= greedy.correct and careful.speed_up > 1
        figures = f"{against(careful, greedy)}; speed-up {careful.speed_up:.2f}"
        yield Claim(f"{CAREFUL}: at least as accurate as greedy, and faster", self.name, holds, figures)
        holds = forced.correct < greedy.correct
        yield Claim("Forcing two tokens per step costs accuracy", self.name, holds, against(forced, greedy))
        low, high = self.bins[0].accuracy, self.bins[-1].accuracy
        holds = self.correlation is not None and self.correlation > 0 and high > low
        figures = f"{low:.1%} in the lowest bin, {high:.1%} in the highest; {correlation_text(self.correlation)}"
        yield Claim("Accuracy grows with confidence", self.name, holds, figures)


def against(method: Summary, greedy: Summary) -> str:
    return f"{method.accuracy:.1%} against {greedy.accuracy:.1%}, p {p_text(method.p_value)}"


def p_text(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def number_order(label: str) -> list[tuple[int, str]]:
    """A sorting key by which "9 givens" comes before "10 givens"."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", label)]


def correlation_text(value: float | None) -> str:
    return "rank correlation undefined" if value is None else f"rank correlation {value:.2f}"


@dataclass
class Progress:
    """A line on stderr for each chunk; the time left is what the records so far took, judging not counted."""

    task: str
    stage: str
    chunk: int
    methods: Sequence[str]
    problems: int
    done: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.right = Counter[str]()

    def __call__(self, record: Record) -> None:
        self.done += 1
        self.seconds += record.seconds
        self.right[record.method] += record.correct
        if self.done % (self.chunk * len(self.methods)) and self.done < self.problems * len(self.methods):
            return
        decoded = self.done // len(self.methods)
        left = self.seconds / decoded * (self.problems - decoded)
        rates = " | ".join(f"{name} {self.right[name] / decoded:.1%}" for name in self.methods)
        chunks = f"chunk {-(-decoded // self.chunk)} of {-(-self.problems // self.chunk)}"
        print(f"{self.task} {self.stage}, {chunks}, {left / 60:.1f} min left: {rates}", file=sys.stderr, flush=True)


def result_folder(output: Path, task: str, stage: str) -> Path:
    return output / "results" / f"{task}.{stage}"


def decode(lm: LM, name: str, limit: int, validation: int, chunk: int, output: Path) -> None:
    """The sweep, then the test runs with the thresholds it chose; the result folders are the outcome."""
    task = make_task(name)

    def stage(label: str, problems: Sequence[Problem], methods: Mapping[str, Strategy]) -> list[Record]:
        watch = Progress(name, label, chunk, list(methods), len(problems))
        folder = result_folder(output, name, label)
        return compare(lm, task, problems, methods, chunk=chunk, folder=folder, on_record=watch)

    sweep = summary(stage("validation", task.distinct("validation", validation), sweep_methods()), GREEDY)
    problems = task.distinct("test", limit)
    stage("test", problems, table_methods(chosen_thresholds(sweep)))
    stage("careful", problems, careful_methods(careful_threshold(sweep)))


def read_result(output: Path, task: str) -> TaskResult:
    return TaskResult(task, *(ResultFolder(result_folder(output, task, stage)).read() for stage in STAGES))


def markdown(results: Sequence[TaskResult]) -> str:
    first = results[0].test
    versions = ", ".join(f"{name} {version}" for name, version in first.settings["versions"].items())
    lines = [
        "# Table 1 in miniature",
        "",
        f"Model {first.settings['model']} ({first.settings['dtype']}); {first.machine['cpu']}, "
        f"{first.machine['cores']} cores; {versions}.",
        "",
        "Accuracy with its 95% interval (Wilson). Forwards (evaluations of one candidate) and steps are means per",
        "problem. Speed-up is greedy's time over the method's, for the same problems decoded in turns. p is McNemar's",
        "exact test against greedy, with the problems gained and lost.",
    ]
    lines += ["", *short_section(results)]
    for result in results:
        lines += ["", *table_section(result)]
    lines += ["", "## Accuracy and confidence", "", "Greedy, problems sorted by the mean confidence of their tokens."]
    for result in results:
        lines += ["", *confidence_section(result)]
    lines += ["", *gain_section(results)]
    lines += ["", "## Accuracy by kind"]
    for result in results:
        lines += ["", *kind_section(result)]
    lines += [
        "",
        "## What the paper claims, here",
        "",
        "Yes or no by the figures as they are; p says how sure that is.",
    ]
    lines += ["", "| claim | task | holds | figures |", "|---|---|---|---|"]
    for same_claim in zip(*(result.claims() for result in results), strict=True):
        for claim in same_claim:
            lines.append(f"| {claim.text} | {claim.task} | {'yes' if claim.holds else 'no'} | {claim.figures} |")
    return "\n".join(lines) + "\n"


def short_section(results: Sequence[TaskResult]) -> Iterator[str]:
    """All tasks side by side: accuracy, forwards per problem, and a star where the difference from greedy is sure."""
    yield "## In short"
    yield ""
    yield "Accuracy and forwards per problem; a star marks p < 0.05 against greedy."
    yield ""
    yield f"| method | {' | '.join(f'{result.name} | forwards' for result in results)} |"
    yield "|---|" + "---|---|" * len(results)
    for name in results[0].table:
        cells = []
        for result in results:
            found = result.table[name]
            star = " *" if name != GREEDY and found.p_value < 0.05 else ""
            cells.append(f"{found.accuracy:.1%}{star} | {found.forwards:.1f}")
        yield f"| {name} | {' | '.join(cells)} |"


def table_section(result: TaskResult) -> Iterator[str]:
    count, asked = result.table[GREEDY].problems, result.test.settings["problems"]
    yield f"## {result.name}"
    yield ""
    yield (
        f"{count if result.test.complete else f'{count} of {asked}'} problems, "
        f"canvas {result.test.settings['canvas']}, threads {result.test.settings['threads']}. Thresholds chosen on "
        f"{result.sweep[GREEDY].problems} validation problems: "
        f"{', '.join(f'{method}: {tau}' for method, tau in result.thresholds.items())}."
    )
    yield ""
    yield "| method | accuracy | forwards | steps | tokens/forward | speed-up | p (gained, lost) |"
    yield "|---|---|---|---|---|---|---|"
    for name, found in result.table.items():
        low, high = found.interval
        test = "" if name == GREEDY else f"{p_text(found.p_value).removeprefix('= ')} (+{found.gained}/-{found.lost})"
        yield (
            f"| {name} | {found.accuracy:.1%} ({low:.1%} to {high:.1%}) | {found.forwards:.1f} | {found.steps:.1f} | "
            f"{found.tokens_per_forward:.2f} | {found.speed_up:.2f} | {test} |"
        )
    careful, tau = result.careful_soar, careful_threshold(result.sweep)
    low, high = careful.interval
    yield ""
    yield (
        f"Careful SOAR (K=2, at most greedy's forwards on validation instead of half of them: threshold {tau}): "
        f"{careful.accuracy:.1%} ({low:.1%} to {high:.1%}) at {careful.forwards:.1f} forwards, "
        f"speed-up {careful.speed_up:.2f}, p {p_text(careful.p_value)} (+{careful.gained}/-{careful.lost})."
    )


def confidence_section(result: TaskResult) -> Iterator[str]:
    yield f"{result.name}: {correlation_text(result.correlation)}."
    yield ""
    yield "| mean confidence | problems | accuracy |"
    yield "|---|---|---|"
    for part in result.bins:
        yield f"| {part.low:.3f} to {part.high:.3f} | {part.count} | {part.accuracy:.1%} |"


def gain_section(results: Sequence[TaskResult]) -> Iterator[str]:
    yield "## What search finds"
    yield ""
    yield f"{PBS}: problems in which it writes another text than greedy, by whether the model is surer of it (mean"
    yield "confidence of its tokens), and how many of them only one of the two got right."
    yield ""
    yield "| task | text of the beam | problems | gained | lost |"
    yield "|---|---|---|---|---|"
    for result in results:
        yield from gain_rows(result.name, result.of(PBS), result.of(GREEDY))


def kind_section(result: TaskResult) -> Iterator[str]:
    methods = (GREEDY, SOAR_2, SOAR_4)
    counts = {method: result.by_kind(method) for method in methods}
    yield f"| {result.name} | problems | {' | '.join(methods)} |"
    yield "|---|---|---|---|---|"
    for kind, (total, _) in counts[GREEDY].items():
        yield f"| {kind} | {total} | {' | '.join(f'{counts[method][kind][1] / total:.1%}' for method in methods)} |"


def figures(results: Sequence[TaskResult]) -> dict[str, Any]:
    """All that table1.md shows, and where it comes from."""
    return {
        result.name: {
            "settings": result.test.settings,
            "machine": result.test.machine,
            "complete": result.test.complete,
            "thresholds": result.thresholds,
            "methods": summaries(result.table),
            "careful": {"threshold": careful_threshold(result.sweep), **asdict(result.careful_soar)},
            "confidence": {
                "rank_correlation": result.correlation,
                "bins": [{**asdict(part), "accuracy": part.accuracy} for part in result.bins],
            },
            "kinds": {method: result.by_kind(method) for method in result.table},
            "claims": [asdict(claim) for claim in result.claims()],
        }
        for result in results
    }


def sweep_figures(results: Sequence[TaskResult]) -> dict[str, Any]:
    return {
        result.name: {
            "settings": result.validation.settings,
            "machine": result.validation.machine,
            "chosen": result.thresholds,
            "methods": summaries(result.sweep),
        }
        for result in results
    }


def summaries(found: Mapping[str, Summary]) -> dict[str, Any]:
    return {name: {"accuracy": one.accuracy, **asdict(one)} for name, one in found.items()}


def write_report(results: Sequence[TaskResult], output: Path) -> str:
    text = markdown(results)
    (output / "table1.md").write_text(text)
    (output / "table1.json").write_text(json.dumps(figures(results), indent=2) + "\n")
    (output / "sweep.json").write_text(json.dumps(sweep_figures(results), indent=2) + "\n")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mini-llada", help="an embedded name, a folder or a Hub id")
    parser.add_argument("--tasks", default="mini-gsm,mini-code,mini-sudoku", help="names, with commas between")
    parser.add_argument("--limit", type=int, default=1000, help="test problems per task")
    parser.add_argument("--validation", type=int, default=300, help="problems per task to choose thresholds on")
    parser.add_argument("--chunk", type=int, default=50, help="problems that a method decodes in one turn")
    parser.add_argument("--output", type=Path, default=Path("docs/results/table1"))
    parser.add_argument("--show", action="store_true", help="report from the results that are there")
    asked = parser.parse_args()
    names = [name.strip() for name in asked.tasks.split(",") if name.strip()]
    try:
        if not asked.show:
            lm = load(asked.model)
            for name in names:
                decode(lm, name, asked.limit, asked.validation, asked.chunk, asked.output)
        print(write_report([read_result(asked.output, name) for name in names], asked.output))
    except SoarError as error:
        raise SystemExit(f"table1: {error}") from error


if __name__ == "__main__":
    main()
