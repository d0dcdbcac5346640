"""The tasks with blanks: where their problems come from, and their two judges."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks import table3
from datasets import Dataset

from soar_dlm.errors import InputFileError, MissingExtra, SettingsError
from soar_dlm.evals.comparison import Method, compare
from soar_dlm.evals.results import Record, ResultFolder, Results
from soar_dlm.lm import LM
from soar_dlm.search.greedy import Greedy
from soar_dlm.solving import solve
from soar_dlm.tasks.catalogue import make_task
from soar_dlm.tasks.humaneval_infilling import MultiLine, SingleLine
from soar_dlm.tasks.mini_code import MiniCode
from soar_dlm.tasks.mini_infill import MiniInfill
from soar_dlm.tasks.mini_sums import MiniSums

TASK = MiniInfill()
PROBLEMS = TASK.distinct("test", 60)

ROWS = [
    {
        "task_id": "SingleLineInfilling/HumanEval/0/L0",
        "entry_point": "double",
        "prompt": "def double(x):\n",
        "suffix": "    return y\n",
        "canonical_solution": "    y = x + x\n",
        "test": "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(-1) == -2\n",
    },
    {
        "task_id": "SingleLineInfilling/HumanEval/1/L0",
        "entry_point": "last",
        "prompt": "def last(xs):\n",
        "suffix": "",
        "canonical_solution": "    return xs[-1]\n",
        "test": "def check(candidate):\n    assert candidate([1, 2]) == 2\n",
    },
]


def written(folder: Path, name: str = "HumanEval-SingleLineInfilling.jsonl.gz") -> Path:
    target = folder / "humaneval_infilling" / name
    target.parent.mkdir(exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
    target.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return folder


def test_blanks_are_whole_lines_of_functions_that_work() -> None:
    functions = {problem.key for problem in MiniCode().distinct("test", 300)}
    for problem in PROBLEMS:
        assert problem.prompt.endswith("\n")
        assert problem.answer.endswith("\n")
        assert problem.answer.count("\n") == int(problem.kind.split()[0])
        assert problem.split == "test"
    assert len({problem.key for problem in PROBLEMS}) == len(PROBLEMS)
    assert functions & {problem.key for problem in PROBLEMS}, "the split is that of the functions"
    assert {problem.kind for problem in PROBLEMS} == {"1 line", "2 lines", "3 lines"}
    assert any(problem.suffix for problem in PROBLEMS)


def test_the_answer_is_right_and_what_breaks_the_function_is_wrong() -> None:
    assert all(TASK.all_correct(PROBLEMS, [problem.answer for problem in PROBLEMS]))
    assert not any(TASK.all_correct(PROBLEMS, ["    raise ValueError\n"] * len(PROBLEMS)))
    assert TASK.correct(PROBLEMS[0], PROBLEMS[0].answer)


def test_exact_match_looks_at_the_text_alone() -> None:
    problem = PROBLEMS[0]
    assert TASK.exact(problem, problem.answer)
    assert not TASK.exact(problem, problem.answer.strip()), "a line without its indentation is another line"
    assert not TASK.exact(problem, problem.answer.strip() + "  # the same")
    assert TASK.correct(problem, problem.answer.rstrip("\n") + "  # the same\n"), "what only the tests can tell"


@pytest.mark.parametrize("name", ["HumanEval-SingleLineInfilling.jsonl.gz", "HumanEval-SingleLineInfilling.jsonl"])
def test_humaneval_infilling_is_read_and_judged(tmp_path: Path, name: str) -> None:
    task = make_task("humaneval-infilling-single", written(tmp_path, name))
    problems = task.distinct("test", 10)
    assert [(one.prompt, one.suffix) for one in problems] == [(row["prompt"], row["suffix"]) for row in ROWS]
    assert task.all_correct(problems, [problem.answer for problem in problems]) == [True, True]
    assert task.all_correct(problems, ["    y = x * 3\n", "    return xs[0]\n"]) == [False, False]
    assert task.all_correct(problems, ["    y = 2 * x\n", "    return xs[len(xs) - 1]\n"]) == [True, True]
    with pytest.raises(SettingsError, match="for testing only"):
        task.distinct("validation", 1)


def test_the_folder_may_be_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOAR_DATA_DIR", str(written(tmp_path)))
    assert len(SingleLine().distinct()) == 2
    with pytest.raises(InputFileError, match=r"no humaneval_infilling/HumanEval-MultiLineInfilling.jsonl.gz in"):
        MultiLine().distinct()


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    file = written(tmp_path) / "humaneval_infilling" / "HumanEval-SingleLineInfilling.jsonl.gz"
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(InputFileError, match="Cannot read"):
        SingleLine(tmp_path).distinct()


def test_without_a_folder_the_hub_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a folder in the place of the Hub, laid out as the Hub's parquet copies are."""
    monkeypatch.delenv("SOAR_DATA_DIR", raising=False)
    monkeypatch.setattr("soar_dlm.tasks.published.ON_THE_HUB", f"{tmp_path}/{{hub}}/{{subset}}/{{split}}/*.parquet")
    with pytest.raises(InputFileError, match="Hub"):
        SingleLine().distinct()
    folder = tmp_path / "loubnabnl" / "humaneval_infilling" / "HumanEval-SingleLineInfilling" / "test"
    folder.mkdir(parents=True)
    Dataset.from_list(ROWS).to_parquet(folder / "0000.parquet")
    assert SingleLine().distinct() == SingleLine(written(tmp_path)).distinct()


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOAR_DATA_DIR", raising=False)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"soar-dlm\[eval\]"):
        SingleLine().distinct()


def test_problems_are_solved_the_way_their_task_asks_for(random_llada: LM, random_dreamon: LM) -> None:
    results = solve(random_dreamon, TASK, PROBLEMS[:2], Greedy(), [3, 5])
    assert [len(result.trace.steps) > 0 for result in results] == [True, True]
    fixed = solve(random_llada, TASK, PROBLEMS[:2], Greedy(), 4)
    assert [len(result.token_ids) for result in fixed] == [4, 4]
    sums = MiniSums().distinct("test", 2)
    assert [len(result.token_ids) for result in solve(random_llada, MiniSums(), sums, Greedy(), 5)] == [5, 5]
    with pytest.raises(SettingsError, match="continues prompts"):
        solve(random_llada, MiniSums(), sums, Greedy(), [3, 5])


def test_methods_may_start_from_lengths_of_their_own(random_llada: LM, tmp_path: Path) -> None:
    problems = [problem for problem in PROBLEMS if problem.suffix][:3]
    methods = {"right": Method(Greedy(), "right"), "four": Method(Greedy(), 4)}
    records = compare(random_llada, TASK, problems, methods, chunk=2, folder=tmp_path)
    right = [len(random_llada.tokenizer(one.answer, add_special_tokens=False)["input_ids"]) for one in problems]
    assert [record.forwards for record in records if record.method == "right"] == right
    assert [record.forwards for record in records if record.method == "four"] == [4, 4, 4]
    assert all(record.exact is False for record in records)
    assert ResultFolder(tmp_path).read().records == records


def test_table_3_reports_both_judges(tmp_path: Path) -> None:
    def record(index: int, method: str, exact: bool, correct: bool) -> Record:
        seconds = 2.0 if method.startswith("Greedy") else 1.0
        return Record(index, method, "1 line", "", correct, 5, 5, 1.0, 0.9, "stop", seconds, "x", exact)

    names = list(table3.methods(["right", "8"]))
    soar = table3.named("SOAR", "8")
    records = [record(0, name, name == soar, True) for name in names] + [
        record(1, name, False, False) for name in names
    ]
    order = {"task": "t", "problems": 2, "chunk": 2, "order": names}
    settings: dict[str, Any] = {"model": "m", "dtype": "d", "threads": 1, "versions": {}, **order}
    run = Results(settings, {"cpu": "c", "cores": 2}, records, len(names), 0)
    text = table3.markdown(run)
    assert "| 8 | Greedy | 0.0% (0.0% to 65.8%) | 50.0% (9.5% to 90.5%) | 5.0 | 1.00 |  |" in text
    assert "| 8 | SOAR | 50.0% (9.5% to 90.5%) | 50.0% (9.5% to 90.5%) | 5.0 | 2.00 | 1.000 (+1/-0) |" in text
    assert "| right | SOAR |" in text
    assert "| 8 | SOAR | 50.0% of 2 |" in text
    assert "| 8 | Greedy | 0.0% of 2 |" in text
    with pytest.raises(SettingsError, match="A length is a number"):
        table3.methods(["long"])
    found = json.loads(json.dumps(table3.figures(run)))
    assert found["exact_match"]["8"]["SOAR"]["gained"] == 1
    assert found["pass_at_1"]["8"]["SOAR"]["gained"] == 0
