"""The paper's Table 2 in miniature: greedy and SOAR with each metric of confidence, at the paper's thresholds.

    python -m benchmarks.metrics --task mini-gsm                     on validation problems, to guide a choice
    python -m benchmarks.metrics --task mini-gsm --split test --problems 1000 --metrics probability,neg_entropy

Each SOAR is compared with greedy by the same metric, and all are compared with greedy by the first (the last column).
Methods decode the same problems in turns.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from soar_dlm.errors import SoarError
from soar_dlm.evals.comparison import compare, summary
from soar_dlm.evals.results import Record
from soar_dlm.lm import load
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.soar import Soar
from soar_dlm.search.strategy import Strategy
from soar_dlm.tasks.catalogue import make_task

METRICS = ("probability", "margin", "neg_entropy")


def named(method: str, metric: str) -> str:
    return f"{method}, {metric}"


def methods(metrics: Sequence[str]) -> dict[str, Strategy]:
    found: dict[str, Strategy] = {}
    for metric in metrics:
        found[named("Greedy", metric)] = Greedy(metric=metric)
        found[named("SOAR", metric)] = Soar(beam=2, metric=metric)  # the threshold is the paper's for model and metric
    return found


def rows(records: Sequence[Record], metrics: Sequence[str]) -> Iterator[str]:
    first = named("Greedy", metrics[0])
    overall = summary(records, first)
    yield f"| method | accuracy | forwards | speed-up | against its greedy | against greedy, {metrics[0]} |"
    yield "|---|---|---|---|---|---|"
    for metric in metrics:
        base = named("Greedy", metric)
        own = summary([record for record in records if record.method.endswith(f", {metric}")], base)
        for name, found in own.items():
            low, high = found.interval
            cells = [f"+{one.gained}/-{one.lost}, p = {one.p_value:.3f}" for one in (found, overall[name])]
            yield (
                f"| {name} | {found.accuracy:.1%} ({low:.1%} to {high:.1%}) | {found.forwards:.1f} | "
                f"{found.speed_up:.2f} | {'' if name == base else cells[0]} | {'' if name == first else cells[1]} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mini-llada", help="an embedded name, a folder or a Hub id")
    parser.add_argument("--task", default="mini-gsm")
    parser.add_argument("--split", default="validation", choices=["validation", "test"])
    parser.add_argument("--problems", type=int, default=300)
    parser.add_argument("--metrics", default=",".join(METRICS), help="names, with commas between")
    asked = parser.parse_args()
    metrics = [name.strip() for name in asked.metrics.split(",")]
    try:
        task = make_task(asked.task)
        records = compare(load(asked.model), task, task.distinct(asked.split, asked.problems), methods(metrics))
        print("\n".join(rows(records, metrics)))
    except SoarError as error:
        raise SystemExit(f"metrics: {error}") from error


if __name__ == "__main__":
    main()
