"""The reports of benchmarks.table1, from crafted results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks import table1

from soar_dlm.evals.comparison import Method, Summary
from soar_dlm.evals.results import Record, Results
from soar_dlm.evals.sweeps import Setting, Sweep, settings, sweep_methods


def swept(correct: int, forwards: float) -> Summary:
    return Summary(10, correct, (0.0, 1.0), forwards, forwards, 1.0, 1.0, 1.0, 0, 0, 1.0)


def test_methods_have_their_shares_of_greedys_forwards() -> None:
    """Adaptive Parallel and SOAR take at most half of greedy's 8 forwards, careful SOAR takes at most all of them."""
    points = {
        Setting(0.9, 1): swept(5, 3.0),
        Setting(0.99, 1): swept(9, 4.1),
        Setting(0.9, 2): swept(5, 4.0),
        Setting(0.95, 2): swept(8, 7.9),
        Setting(0.99, 2): swept(9, 8.1),
    }
    sweep = Sweep("m", "probability", swept(9, 8.0), points, {"t": points})
    assert table1.chosen_thresholds(sweep) == {table1.ADAPTIVE: 0.9, table1.SOAR_2: 0.9, table1.CAREFUL: 0.95}


def test_where_none_is_that_fast_all_are_considered() -> None:
    points = {Setting(tau, beam): swept(9, 7.0) for tau in (0.9, 0.99) for beam in (1, 2)}
    sweep = Sweep("m", "probability", swept(9, 8.0), points, {"t": points})
    assert table1.chosen_thresholds(sweep) == {table1.ADAPTIVE: 0.99, table1.SOAR_2: 0.99, table1.CAREFUL: 0.99}


def run(methods: dict[str, Any], records: list[Record], problems: int) -> Results:
    described = {
        name: {"threshold": one.threshold, "beam": one.beam, "metric": one.metric}
        for name, method in methods.items()
        for one in [method.strategy if isinstance(method, Method) else method]
    }
    known = {"model": "m", "revision": None, "weights_sha256": None, "dtype": "d", "threads": 1, "canvas": 8}
    order = {"task": "t", "problems": problems, "chunk": problems, "order": list(methods), "methods": described}
    return Results({**known, **order, "versions": {}}, {"cpu": "c", "cores": 1}, records, len(methods), 0)


def crafted_result(greedy: int, others: int, seconds: float) -> table1.TaskResult:
    """Of ten problems the most confident ones are solved: this many by greedy, this many by the other methods."""
    methods = table1.table_methods({table1.ADAPTIVE: 0.9, table1.SOAR_2: 0.8, table1.CAREFUL: 0.7})
    records = [
        Record(place, name, f"{place} steps", "", place >= 10 - right, 8, 8, 1.0, place / 10, "stop", took, "")
        for name in methods
        for right, took in [(greedy, 1.0) if name == table1.GREEDY else (others, seconds)]
        for place in range(10)
    ]
    points = sweep_methods(settings(table1.THRESHOLDS, (1, 2)), "probability", 8)
    validation = [Record(0, name, "any", "", True, 8, 8, 1.0, 0.5, "stop", 1.0, "") for name in points]
    return table1.TaskResult("crafted", run(points, validation, 1), run(methods, records, 10))


@pytest.mark.parametrize(
    ("greedy", "others", "seconds", "verdicts"),
    [
        (5, 6, 0.5, [True, True, True, True, False, True]),
        (5, 4, 0.5, [False, False, False, False, True, True]),
        (5, 5, 2.0, [True, False, False, False, False, True]),
        (0, 0, 0.5, [True, True, True, True, False, False]),
    ],
)
def test_claims_follow_the_figures(greedy: int, others: int, seconds: float, verdicts: list[bool]) -> None:
    assert [claim.holds for claim in crafted_result(greedy, others, seconds).claims()] == verdicts


def test_the_report_shows_what_the_records_say(tmp_path: Path) -> None:
    text = table1.write_report([crafted_result(5, 6, 0.5)], tmp_path)
    assert (tmp_path / "table1.md").read_text() == text
    assert "| SOAR, K=4 | 60.0% | 8.0 |" in text
    assert "| SOAR, K=4 | 60.0% (31.3% to 83.2%) | 8.0 | 8.0 | 1.00 | 2.00 | 1.000 (+1/-0) |" in text
    assert f"SOAR, K=2, careful: {table1.THRESHOLDS[-1]}." in text
    assert "| 0.000 to 0.100 | 2 | 0.0% |" in text
    assert "| PBS is at least as accurate as greedy | crafted | yes | 60.0% against 50.0%, p 1.000 (+1/-0) |" in text
    figures = json.loads((tmp_path / "table1.json").read_text())["crafted"]
    assert (figures["methods"]["SOAR, K=2"]["accuracy"], figures["methods"]["SOAR, K=2"]["speed_up"]) == (0.6, 2.0)
    chosen = dict.fromkeys((table1.ADAPTIVE, table1.SOAR_2, table1.CAREFUL), table1.THRESHOLDS[-1])
    assert json.loads((tmp_path / "sweep.json").read_text())["crafted"]["chosen"] == chosen


def test_the_report_marks_significant_losses(tmp_path: Path) -> None:
    assert "| SOAR, K=2 | 0.0%↓ |" in table1.write_report([crafted_result(10, 0, 0.5)], tmp_path)
