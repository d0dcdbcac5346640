"""The paper's Table 2 in miniature: greedy and SOAR with each metric of confidence, at the model's default thresholds.

    python -m benchmarks.metrics --task mini-gsm                     on validation problems, to guide a choice
    python -m benchmarks.metrics --task mini-gsm --split test --problems 1000 --metrics probability,neg_entropy

Each SOAR is compared with greedy by the same metric, and all methods with greedy by the first metric (the last column).
Methods decode the same problems in turns.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from soar_dlm.cli.lists import listed
from soar_dlm.errors import SoarError
from soar_dlm.evals.comparison import compare, summary
from soar_dlm.evals.reports import rate, significance, table
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
        found[named("SOAR", metric)] = Soar(
            beam=2, metric=metric
        )  # the threshold is the model's default for the metric
    return found


def rows(records: Sequence[Record], metrics: Sequence[str]) -> Iterator[list[str]]:
    first = named("Greedy", metrics[0])
    overall = summary(records, first)
    for metric in metrics:
        base = named("Greedy", metric)
        own = summary([record for record in records if record.method.endswith(f", {metric}")], base)
        for name, found in own.items():
            compared = [
                "" if name == base else significance(found),
                "" if name == first else significance(overall[name]),
            ]
            yield [name, rate(found), f"{found.forwards:.1f}", f"{found.speed_up:.2f}", *compared]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mini-llada", help="an embedded name, a folder or a Hub id")
    parser.add_argument("--task", default="mini-gsm")
    parser.add_argument("--split", default="validation", choices=["validation", "test"])
    parser.add_argument("--problems", type=int, default=300)
    parser.add_argument("--metrics", default=",".join(METRICS), help="names separated by commas")
    given = parser.parse_args()
    metrics = listed(given.metrics)
    try:
        task = make_task(given.task)
        records = compare(load(given.model), task, task.distinct(given.split, given.problems), methods(metrics))
        head = ["method", "accuracy", "forwards", "speed-up", "p against its greedy", f"p against greedy, {metrics[0]}"]
        print("\n".join(table(head, rows(records, metrics))))
    except SoarError as error:
        raise SystemExit(f"metrics: {error}") from error


if __name__ == "__main__":
    main()
