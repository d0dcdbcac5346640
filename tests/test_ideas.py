"""The benchmark of ideas for a better Deliberate."""

from __future__ import annotations

import pytest
from benchmarks import ideas

from soar_dlm.evals.replay import Course, Spent, Stage
from tests.test_deliberate import deliberated, model_with_ends


@pytest.mark.parametrize("name", ["better texts first", "doubts first", "earlier first", "repairs"])
def test_an_idea_verifies_what_it_answers(name: str) -> None:
    strategy = ideas.ideas(tries=6)[name]
    plain = ideas.ideas(tries=6)["the rule"]
    differ = 0
    for seed in range(12):
        found, usual = (deliberated(model_with_ends(seed), one) for one in (strategy, plain))
        verdicts = [entry.verdict for record in found.trace for entry in record.beam if entry.verdict is not None]
        assert found.details["score"] == pytest.approx(max(verdicts))
        assert found.details["branches"] <= 6
        differ += found.forwards != usual.forwards
    assert differ, "the idea changes what is read"


def test_each_budget_has_the_most_accurate_setting_within_it() -> None:
    stages = (Stage(-0.5, 0, Spent(2, 5), "a", False), Stage(-0.1, 1, Spent(5, 9), "b", True))
    courses = [Course(Spent(1, 2), stages, (Spent(2, 5),), Spent(5, 9))]
    assert list(ideas.front(courses, 1, [1, 2, 5, 8, 9, 20])) == [
        "",
        "0.0% at 2.0",
        "0.0% at 2.0",
        "0.0% at 2.0",
        "100.0% at 9.0",
        "100.0% at 9.0",
    ]


def test_a_table_of_two_ideas(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--task", "mini-sudoku", "--problems", "2", "--tries", "1", "--first", "0", "--budgets", "30"]
    ideas.main([*asked, "--ideas", "the rule,repairs"])
    shown = capsys.readouterr().out
    assert "| idea | at most 30 |" in shown
    assert "| repairs | " in shown
    with pytest.raises(SystemExit, match="repairs"):
        ideas.main([*asked, "--ideas", "repair"])
