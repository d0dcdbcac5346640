"""Sweeps over thresholds and beams, and the setting that is taken from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from soar_dlm.errors import InputFileError, SettingsError
from soar_dlm.evals.comparison import Method, Summary, weights_fingerprint
from soar_dlm.evals.measured import BASELINE
from soar_dlm.evals.model_defaults import save_to_model, with_setting
from soar_dlm.evals.results import Record, Results
from soar_dlm.evals.sweeps import Setting, Sweep, pooled, settings, sweep_methods
from soar_dlm.lm import load
from soar_dlm.models.defaults import DecodingDefaults
from soar_dlm.models.random_checkpoint import write_llada


def test_a_sweep_has_greedy_and_every_pair() -> None:
    points = settings([0.9, 0.8], [2, 4])
    assert points == [Setting(0.9, 2), Setting(0.8, 2), Setting(0.9, 4), Setting(0.8, 4)]
    methods = sweep_methods(points, "margin", 16)
    assert list(methods) == ["Greedy", *(point.name for point in points)]
    assert {(method.length, method.strategy.metric) for method in methods.values()} == {(16, "margin")}
    with pytest.raises(SettingsError, match="at least one threshold"):
        sweep_methods([], "margin", 16)
    with pytest.raises(SettingsError, match="length"):
        sweep_methods(points, "margin", 0)


def measured(correct: int, forwards: float = 1.0, speed_up: float = 1.0, problems: int = 10) -> Summary:
    return Summary(problems, correct, (0.0, 1.0), forwards, forwards, 1.0, 1.0, speed_up, 0, 0, 1.0)


def swept(points: Mapping[Setting, Summary], *tasks: Mapping[Setting, Summary]) -> Sweep:
    """A sweep in which greedy takes 8 forwards; with one task it is that of the points."""
    named = {f"task {number}": own for number, own in enumerate(tasks or (points,))}
    return Sweep("m", "probability", measured(9, 8.0), points, named)


@pytest.mark.parametrize(
    ("points", "chosen"),
    [
        ({0.6: (7, 2.0), 0.8: (8, 4.0), 0.9: (9, 4.1)}, 0.8),  # 0.9 takes more than half of greedy's 8 forwards
        ({0.6: (9, 2.0), 0.8: (9, 3.0), 0.9: (8, 4.0)}, 0.8),  # one standard error of 9 in 10 is 0.095
        ({0.6: (8, 2.0), 0.8: (7, 3.0), 0.9: (6, 4.0)}, 0.8),  # of 8 in 10, it is 0.126
    ],
)
def test_the_highest_threshold_that_is_level_with_the_best(
    points: dict[float, tuple[int, float]], chosen: float
) -> None:
    """The most accurate one alone lost 23 problems and gained 10 on the test set."""
    sweep = swept({Setting(tau, 2): measured(*figures) for tau, figures in points.items()})
    assert sweep.within(forwards=0.5).cautious() == Setting(chosen, 2)


def test_among_beams_accuracy_decides_and_then_cost() -> None:
    sweep = swept(
        {Setting(0.9, 1): measured(8, 2.0), Setting(0.9, 2): measured(9, 4.0), Setting(0.9, 4): measured(9, 6.0)}
    )
    assert sweep.cautious() == Setting(0.9, 2)
    assert sweep.with_beam(4).cautious() == Setting(0.9, 4)
    with pytest.raises(SettingsError, match="no points with a beam of 3; its beams are 1, 2, 4"):
        sweep.with_beam(3)


def test_a_speed_is_by_wall_time_and_a_share_by_forwards() -> None:
    slow, fast = Setting(0.9, 2), Setting(0.8, 2)
    sweep = swept({slow: measured(9, 4.0, 1.5), fast: measured(9, 5.0, 3.0)})
    assert sweep.cautious() == slow
    assert sweep.within(speed=2.0).cautious() == fast
    assert sweep.within(forwards=0.5).cautious() == slow
    with pytest.raises(
        SettingsError, match=r"No setting of the sweep is that fast.*share of greedy's forwards is 0\.50"
    ):
        sweep.within(speed=4.0)
    with pytest.raises(SettingsError, match="No setting"):
        sweep.within(forwards=0.4)
    with pytest.raises(SettingsError, match="speed must be a number of at least 0"):
        sweep.within(speed=-1.0)


def test_a_wanted_accuracy_gets_the_fastest_as_measured() -> None:
    slow, fast = Setting(0.9, 2), Setting(0.7, 2)
    sweep = swept({slow: measured(9, 4.0, 1.2), fast: measured(8, 2.0, 3.0)})
    assert sweep.fastest(0.9) == slow
    assert sweep.fastest(0.8) == fast
    with pytest.raises(SettingsError, match=r"the best has 90\.0%"):
        sweep.fastest(0.95)
    with pytest.raises(SettingsError, match="accuracy must be a number from 0 to 1, not 75"):
        sweep.fastest(75)


def test_no_task_may_pay_for_the_others() -> None:
    """Together the points are level, but the highest threshold is far below the best on one of the tasks."""
    low, middle, high = (Setting(tau, 2) for tau in (0.8, 0.9, 0.99))
    together = {
        low: measured(150, problems=200),
        middle: measured(149, problems=200),
        high: measured(148, problems=200),
    }
    first = {low: measured(70, problems=100), middle: measured(68, problems=100), high: measured(90, problems=100)}
    second = {low: measured(80, problems=100), middle: measured(81, problems=100), high: measured(58, problems=100)}
    assert swept(together).cautious() == high
    assert swept(together, second).cautious() == middle
    assert swept(together, first, second).cautious() == high, "no point is level on both, so all problems decide"


METHODS = sweep_methods(settings([0.8, 0.9], [2]), "margin", 8)


def run(task: str, right: Mapping[str, int], problems: int = 4, methods: Mapping[str, Method] = METHODS) -> Results:
    """A sweep in which each method gets the first problems right."""
    described = {
        name: {"threshold": method.strategy.threshold, "beam": method.strategy.beam, "metric": method.strategy.metric}
        for name, method in methods.items()
    }
    records = [
        Record(index, name, "", "", index < right.get(name, 0), 8, 8, 1.0, 0.5, "stop", 1.0, "")
        for name in methods
        for index in range(problems)
    ]
    known = {"model": "m", "revision": None, "weights_sha256": "w", "task": task, "methods": described}
    order = {"order": list(methods), "problems": problems, "chunk": problems}
    return Results({**known, **order}, {}, records, len(methods), 0)


def test_sweeps_of_several_tasks_are_pooled() -> None:
    low, high = Setting(0.8, 2), Setting(0.9, 2)
    found = pooled([run("a", {low.name: 3, BASELINE: 2}), run("b", {high.name: 4, low.name: 1}, problems=6)])
    assert (found.model, found.metric) == ("m", "margin")
    assert (found.greedy.correct, found.greedy.problems) == (2, 10)
    assert {point: one.correct for point, one in found.points.items()} == {low: 4, high: 4}
    assert (found.points[low].gained, found.points[high].lost) == (2, 2)
    assert [found.tasks[name][low].correct for name in ("a", "b")] == [3, 1]


def test_only_sweeps_that_belong_together_are_pooled() -> None:
    first = run("a", {})
    other = sweep_methods(settings([0.8, 0.9], [2]), "probability", 8)
    for second, message in (
        (run("a", {}), "Two of these sweeps are on a"),
        (Results({**run("b", {}).settings, "model": "n"}, {}, first.records, 3, 0), "different model: m and n"),
        (Results({**run("b", {}).settings, "weights_sha256": "v"}, {}, first.records, 3, 0), "weights_sha256"),
        (run("b", {}, methods=sweep_methods(settings([0.8], [2]), "margin", 8)), "different metrics, thresholds"),
        (run("b", {}, methods=other), "different metrics"),
        (Results(run("b", {}).settings, {}, [], 0, 0), "has not finished its first chunk"),
    ):
        with pytest.raises(SettingsError, match=message):
            pooled([first, second])


def test_a_setting_joins_the_defaults_of_a_checkpoint() -> None:
    """Thresholds of other metrics, options and other settings stay; another default metric keeps its strategy."""
    point = Setting(0.99, 4)
    new = with_setting(DecodingDefaults(options={"block_length": 8}), point, "probability")
    assert new == DecodingDefaults("soar", {"beam": 4}, {"probability": 0.99}, {"block_length": 8})
    assert with_setting(DecodingDefaults(), point, "margin").settings == {"metric": "margin", "beam": 4}
    assert with_setting(DecodingDefaults("greedy", {"tokens_per_step": 2}), point, "probability").settings == {
        "beam": 4
    }
    known = DecodingDefaults("soar", {"beam": 2, "released": "llada"}, {"probability": 0.9, "margin": 0.8})
    again = with_setting(known, point, "probability")
    assert again.settings == {"beam": 4, "released": "llada"}
    assert again.thresholds == {"probability": 0.99, "margin": 0.8}
    other = with_setting(known, Setting(-0.2, 4), "neg_entropy")
    assert (other.strategy, other.settings) == (known.strategy, known.settings)
    assert other.thresholds == {"probability": 0.9, "margin": 0.8, "neg_entropy": -0.2}


def test_a_checkpoint_decodes_with_the_setting_it_was_given(tmp_path: Path) -> None:
    write_llada(tmp_path)
    weights = weights_fingerprint(str(tmp_path))
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": 1}')
    save_to_model(tmp_path, Setting(0.99, 4), "probability", weights)
    save_to_model(tmp_path, Setting(0.8, 2), "margin", None)
    content = json.loads((tmp_path / "generation_config.json").read_text())
    assert content["eos_token_id"] == 1
    assert content["soar_dlm"]["thresholds"] == {"probability": 0.99, "margin": 0.8}
    thresholds = load(tmp_path, "cpu").model.facts.thresholds
    assert (thresholds["probability"], thresholds["margin"]) == (0.99, 0.8)
    with pytest.raises(SettingsError, match="not those of the sweep"):
        save_to_model(tmp_path, Setting(0.9, 2), "probability", "other weights")
    with pytest.raises(InputFileError, match=r"no config\.json"):
        save_to_model(tmp_path / "nowhere", Setting(0.9, 2), "probability", None)
