"""Do the judges of the published benchmarks judge right?

    python -m benchmarks.scorers --data-dir DATA

Prints what it finds and, of all four benchmarks, also writes it to ``docs/results/scorers.md``.

All reference answers must be judged right and all wrong answers wrong, or the exit code is 1. "Not plain" names the
problems whose tests use objects of the program that cannot cross to the judge as plain values; they cross by reference.
The judge of GSM8K must agree with that of lm-evaluation-harness on texts of many shapes, the judge of HumanEval with
code_eval, which the harness fetches from the Hub, where that is possible.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.pages import RESULTS, conditions, table, write
from soar_dlm.errors import SoarError
from soar_dlm.tasks.catalogue import make_task
from soar_dlm.tasks.gsm8k import final_number
from soar_dlm.tasks.humaneval import HumanEval
from soar_dlm.tasks.humaneval_infilling import HumanEvalInfilling
from soar_dlm.tasks.mbpp import Mbpp
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.sandbox.launch import current
from soar_dlm.tasks.task import Task
from soar_dlm.tasks.unit_tests import TEST_LIMITS

TASKS = ("gsm8k", "humaneval", "mbpp", "humaneval-infilling-single")
WRONG = {"gsm8k": "#### -12345", "humaneval": "    return 'wrong'\n", "mbpp": "wrong = True\n"}
HEAD = ("benchmark", "problems", "reference answers right", "wrong answers right", "not plain", "seconds")
LEGEND = (
    "Every problem is judged twice: with its reference answer, and with an answer that cannot be right. "
    '"Not plain" counts the problems whose tests use objects of the program, which cross to the judge by reference.'
)
IGNORED = (",", r"\$", "(?s).*#### ", r"\.$")


def wrong_answers(task: Task, problems: Sequence[Problem]) -> list[str]:
    """An answer to each problem that cannot be right.

    A blank gets text that is not Python: HumanEval's tests never reach some lines, so an exception would go unnoticed.
    """
    return [WRONG.get(task.name, "    ? wrong ?\n")] * len(problems)


def references(task: Task, problems: Sequence[Problem]) -> str:
    """The problems whose tests use objects of the program, if the task runs code."""
    if not isinstance(task, (HumanEval, HumanEvalInfilling, Mbpp)):
        return "-"
    found = []
    for problem in problems:
        program = problem.answer if isinstance(task, Mbpp) else problem.prompt + problem.answer + problem.suffix
        asserts = task.asserts(problem)
        request = ("tests", program, asserts.given, asserts.text, list(asserts.names))
        if current().run(request, TEST_LIMITS)[1] != [0]:
            found.append(problem.key)
    return f"{len(found)} {', '.join(found[:5])}".strip()


def shapes(problem: Problem) -> Iterator[str]:
    """Texts that a model could write about a word problem."""
    number = problem.checks["number"]
    yield problem.answer
    yield problem.answer.replace("####", "")
    yield f"The answer is {number}."
    yield f"The answer is ${number}, I think. #### {number}"
    yield f"#### {number}\n\nThen there were 7 more."
    yield f"{number} and then 12"
    yield "no idea"
    yield f"#### {int(float(number)) + 1}"


def harness_verdict(text: str, reference: str) -> bool:
    """The verdict of lm-evaluation-harness: by its strict match where the mark is present, else by its flexible one."""
    from lm_eval.api.metrics import exact_match_hf_evaluate
    from lm_eval.filters.extraction import RegexFilter

    strict = RegexFilter(r"#### (\-?[0-9\.\,]+)")
    flexible = RegexFilter(r"(-?[$0-9.,]{2,})|(-?[0-9]+)", group_select=-1)
    chosen = strict if strict.regex.search(text) else flexible
    found = chosen.apply([[text]], [{}])[0]
    scores = exact_match_hf_evaluate(found, [reference], regexes_to_ignore=list(IGNORED), ignore_case=True)
    return bool(scores["exact_match"] == 1)


def gsm8k_agreement(problems: Sequence[Problem]) -> str:
    texts = [(text, problem) for problem in problems for text in shapes(problem)]
    differ = [
        text[-80:]
        for text, problem in texts
        if (final_number(text) == problem.checks["number"]) != harness_verdict(text, problem.answer)
    ]
    agreed = f"{len(texts) - len(differ)} of {len(texts)} texts judged as lm-evaluation-harness does"
    return f"{agreed}; not: {differ[:5]}" if differ else agreed


def code_agreement(problems: Sequence[Problem]) -> str:
    """The judge and code_eval on reference solutions and on wrong ones."""
    import evaluate

    os.environ["HF_ALLOW_CODE_EVAL"] = "1"
    try:
        judge = evaluate.load("code_eval")
    except Exception as error:
        return f"code_eval is not available here ({type(error).__name__})"
    texts = [problem.answer for problem in problems] + [WRONG["humaneval"]] * len(problems)
    both = [*problems, *problems]
    ours = make_task("humaneval").all_correct(both, texts)
    programs = [[problem.prompt + text] for problem, text in zip(both, texts, strict=True)]
    _, found = judge.compute(references=[problem.checks["test"] for problem in both], predictions=programs, k=[1])
    theirs = [bool(found[place][0][1]["passed"]) for place in range(len(both))]
    same = sum(mine == their for mine, their in zip(ours, theirs, strict=True))
    return f"{same} of {len(both)} programs judged as code_eval does"


def judged(task: Task) -> tuple[list[object], int]:
    """The row of a benchmark, and how many answers were judged wrongly."""
    problems = list(task.problems("test"))
    started = time.perf_counter()
    right = sum(task.all_correct(problems, [problem.answer for problem in problems]))
    wrong = sum(task.all_correct(problems, wrong_answers(task, problems)))
    seconds = time.perf_counter() - started
    rates = (f"{count} ({count / len(problems):.0%})" for count in (right, wrong))
    return [task.name, len(problems), *rates, references(task, problems), f"{seconds:.0f}"], len(
        problems
    ) - right + wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, help="folder with the benchmarks' files; else the Hub")
    parser.add_argument("--tasks", default=",".join(TASKS))
    given = parser.parse_args()
    names = given.tasks.split(",")
    misjudged, rows = 0, []
    try:
        for name in names:
            row, missed = judged(make_task(name, given.data_dir))
            misjudged += missed
            rows.append(row)
            print(" | ".join(map(str, row)), flush=True)
        agreed = (
            f"GSM8K: {gsm8k_agreement(list(make_task('gsm8k', given.data_dir).problems('test')))}.",
            f"HumanEval: {code_agreement(list(make_task('humaneval', given.data_dir).problems('test')))}.",
        )
    except SoarError as error:
        raise SystemExit(f"scorers: {error}") from error
    found = "\n\n".join([table(HEAD, rows), *agreed])
    print(f"\n{found}")
    if set(TASKS) <= set(names):
        about = f"`python -m benchmarks.scorers --data-dir DATA`. {conditions()} {LEGEND}"
        write(RESULTS / "scorers.md", "Judges", "Reference answers and wrong ones", f"{about}\n\n{found}")
    raise SystemExit(misjudged > 0)


if __name__ == "__main__":
    main()
