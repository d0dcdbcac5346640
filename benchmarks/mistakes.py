"""Why answers are wrong: where each method first departs from the solution of a sudoku, a task with one right text.

    python -m benchmarks.mistakes --problems 200

For each method, with the thresholds of docs/results/table1: how many answers are wrong; how many positions were filled
before the first wrong one (median); the share of first mistakes made in a parallel step; the median confidence of the
first wrong token; and the share of wrong answers for which that step left a candidate without a mistake, or the search
had completed one, so that the right way was lost by ranking and not by proposing.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median

from benchmarks.table1 import table_methods
from soar_dlm.evals.mistakes import Mistake, first_mistake
from soar_dlm.lm import LM, load
from soar_dlm.results import Result
from soar_dlm.tasks.catalogue import make_task
from soar_dlm.tasks.problem import Problem

TASK = "mini-sudoku"


def right_tokens(lm: LM, problem: Problem, result: Result) -> dict[int, int]:
    """Canvas position -> token of the solution, followed by EOS."""
    answer = lm.tokenizer(problem.answer)["input_ids"]
    filled = answer + [lm.model.facts.filler_id] * (len(result.token_ids) - len(answer))
    return {result.prompt_length + place: token for place, token in enumerate(filled)}


def row(name: str, problems: int, mistakes: list[Mistake]) -> str:
    if not mistakes:
        return f"| {name} | 0 of {problems} | | | | |"
    parallel = sum(mistake.mode == "parallel" for mistake in mistakes) / len(mistakes)
    beside = sum(mistake.beside for mistake in mistakes) / len(mistakes)
    return (
        f"| {name} | {len(mistakes)} of {problems} | {median(mistake.before for mistake in mistakes):g} | "
        f"{parallel:.0%} | {median(mistake.confidence for mistake in mistakes):.3f} | {beside:.0%} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mini-llada")
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--table", type=Path, default=Path("docs/results/table1/table1.json"))
    given = parser.parse_args()
    lm, task = load(given.model), make_task(TASK)
    problems = task.distinct("test", given.problems)
    methods = table_methods(json.loads(given.table.read_text())[TASK]["thresholds"])
    print("| method | wrong | filled before | in a parallel step | confidence | right way beside it |")
    print("|---|---|---|---|---|---|")
    for name, strategy in methods.items():
        results = lm.generate([problem.prompt for problem in problems], strategy, max_new_tokens=task.canvas)
        found = [
            first_mistake(result.trace, right_tokens(lm, problem, result))
            for problem, result in zip(problems, results, strict=True)
        ]
        print(row(name, len(problems), [mistake for mistake in found if mistake is not None]), flush=True)


if __name__ == "__main__":
    main()
