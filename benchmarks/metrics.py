"""The paper's Table 2 in miniature: greedy and SOAR with each metric of confidence, at the paper's thresholds.

    python -m benchmarks.metrics --task mini-gsm

On validation problems, so that it can guide a choice. Each SOAR is compared with greedy by the same metric, and all are
compared with greedy by probability (the last column).
"""

from __future__ import annotations

import argparse

from soar_dlm.evals.comparison import compare, summary
from soar_dlm.lm import load
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.soar import Soar
from soar_dlm.search.strategy import Strategy
from soar_dlm.tasks.catalogue import make_task

METRICS = ("probability", "margin", "neg_entropy")


def named(method: str, metric: str) -> str:
    return f"{method}, {metric}"


def methods() -> dict[str, Strategy]:
    found: dict[str, Strategy] = {}
    for metric in METRICS:
        found[named("Greedy", metric)] = Greedy(metric=metric)
        found[named("SOAR", metric)] = Soar(beam=2, metric=metric)  # the threshold is the paper's for model and metric
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mini-llada", help="an embedded name, a folder or a Hub id")
    parser.add_argument("--task", default="mini-gsm")
    parser.add_argument("--problems", type=int, default=300)
    asked = parser.parse_args()
    task = make_task(asked.task)
    records = compare(load(asked.model), task, task.distinct("validation", asked.problems), methods())
    first = named("Greedy", "probability")
    overall = summary(records, first)
    print("| method | accuracy | forwards | speed-up | against its greedy | against greedy, probability |")
    print("|---|---|---|---|---|---|")
    for metric in METRICS:
        base = named("Greedy", metric)
        own = summary([record for record in records if record.method.endswith(f", {metric}")], base)
        for name, found in own.items():
            cells = [f"+{one.gained}/-{one.lost}, p = {one.p_value:.3f}" for one in (found, overall[name])]
            print(
                f"| {name} | {found.accuracy:.1%} | {found.forwards:.1f} | {found.speed_up:.2f} | "
                f"{'' if name == base else cells[0]} | {'' if name == first else cells[1]} |"
            )


if __name__ == "__main__":
    main()
